"""From the structural schema to the CRD: as an object, as a YAML file, and as a template of the Helm chart.

Called by `python -m cachewright.crd` and by `cachewright crd`.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from cachewright.api.names import CATEGORY, CRD_NAME, GROUP, KIND, PLURAL, SHORT_NAME, SINGULAR, VERSION
from cachewright.crd.schema import object_schema

CRD_PATH: Final = f"crds/{GROUP}_{PLURAL}.yaml"
CHART_PATH: Final = "charts/cachewright/templates/crds.yaml"

_NOTE: Final = "Generated from the models in operator/cachewright/api by `make generate`; do not edit."

_CHART_METADATA: Final = """\
  labels:
    {{- include "cachewright.labels" . | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    # Without this, uninstalling the chart would delete every InferenceCache of the cluster.
    helm.sh/resource-policy: keep
  {{- end }}
"""


def build_crd() -> dict[str, Any]:
    """Return the CustomResourceDefinition of InferenceCache."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": SINGULAR,
                "shortNames": [SHORT_NAME],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": _printer_columns(),
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": object_schema()},
                }
            ],
        },
    }


def crd_yaml() -> str:
    """Return the CRD as a file for `kubectl apply -f`."""
    return f"# {_NOTE}\n{_dump(build_crd())}"


def chart_template() -> str:
    """Return the CRD as a template that the chart's values `crds.enabled` and `crds.keep` govern."""
    # Helm would read braces in a description as its own.
    text = _dump(build_crd()).replace("{{", '{{ "{{" }}')
    name = f"  name: {CRD_NAME}\n"
    body = text.replace(name, name + _CHART_METADATA, 1)
    return f"{{{{- /* {_NOTE} */}}}}\n{{{{- if .Values.crds.enabled }}}}\n{body}{{{{- end }}}}\n"


def _printer_columns() -> list[dict[str, Any]]:
    ready = '.status.conditions[?(@.type=="Ready")]'
    return [
        {"name": "Ready", "type": "string", "jsonPath": f"{ready}.status"},
        {"name": "Reason", "type": "string", "jsonPath": f"{ready}.reason"},
        {"name": "Version", "type": "string", "jsonPath": ".spec.model.version"},
        {"name": "Endpoint", "type": "string", "jsonPath": ".status.endpoint"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Message", "type": "string", "jsonPath": f"{ready}.message", "priority": 1},
    ]


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that occurs twice out twice; anchors would only confuse readers."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the parent's signature
        return True


def _dump(document: dict[str, Any]) -> str:
    text = yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, width=110, allow_unicode=True)
    return str(text)
