"""The command line reads YAML as kubectl does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cachewright.cli.manifests import read_manifests
from e2e.cluster.apiserver import ApiServer
from tests.api.admin import Admin
from tests.api.documents import MINIMAL, changed
from tests.support.scalars import SCALARS

pytestmark = pytest.mark.api

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_kubectl_reads_plain_scalars_alike(api_server: ApiServer, admin: Admin) -> None:
    """Booleans, dates, octals and the like mean the same to `cachewright validate` as to the API server."""
    del admin
    # Affinity keeps whatever it is given; beyond 64 bits kubectl itself gives up.
    texts = [
        text for text, value in SCALARS.items() if not isinstance(value, float | int) or abs(value) < 2**63
    ]
    lines = "".join(f"      k{number}: {text}\n" for number, text in enumerate(texts))
    document = yaml.safe_dump(changed(MINIMAL, spec__gateway__affinity="HERE"))
    text = document.replace("affinity: HERE\n", f"affinity:\n{lines}      yes: key\n      1: key\n")
    printed = api_server.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=text)
    (manifest,) = read_manifests(text)
    assert manifest.value["spec"]["gateway"]["affinity"] == json.loads(printed)["spec"]["gateway"]["affinity"]


def test_every_example_is_admitted(api_server: ApiServer, admin: Admin) -> None:
    """Schema and rules of the API server let each InferenceCache of examples/ in."""
    del admin
    documents = [
        document
        for file in sorted(EXAMPLES.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
        if document and document["kind"] == "InferenceCache"
    ]
    for document in documents:
        document["metadata"].pop("namespace", None)
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    printed = api_server.kubectl("create", "--dry-run=server", "-o", "name", "-f", "-", stdin=items)
    assert len(printed.split()) == len(documents)
    assert len(documents) >= 4
