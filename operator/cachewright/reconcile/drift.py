"""Whether a live child still is what we want. Pure; called by plan.

The API server adds defaults and other managers add fields, so a child is as wanted when it *contains* what
we render. Fields that we stop rendering leave no trace in such a comparison; a digest of the last rendering,
kept as an annotation on the child, finds those.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from cachewright.api.quantities import parse_quantity
from cachewright.errors import InvalidSpec
from cachewright.reconcile.state import Manifest

RENDERED_ANNOTATION: Final = "cachewright.dev/rendered"
"""On a child: digest of the manifest that was applied last."""

_LIST_KEYS: Final = {
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "ownerReferences": "uid",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists to which others may add items of their own, with the field that identifies an item.

All other lists are taken whole, as the API server does with atomic ones.
"""

_WHOLE: Final = frozenset({"selector", "podSelector", "namespaceSelector", "labelSelector", "nodeSelector"})
"""Maps that are taken whole: one more label in a selector selects something else."""

_QUANTITY_PARENTS: Final = frozenset({"requests", "limits"})


def with_rendered_digest(manifest: Manifest) -> Manifest:
    """Return the manifest with the digest of itself as an annotation."""
    digest = hashlib.sha256(orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), RENDERED_ANNOTATION: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def is_as_wanted(live: Manifest, wanted: Manifest) -> bool:
    """Tell whether the live object contains all that is wanted."""
    return _contains(live, wanted, "")


def _contains(live: Any, wanted: Any, parent: str) -> bool:  # noqa: ANN401 - JSON
    if parent in _WHOLE:
        return bool(live == wanted)
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            _contains(live.get(key), value, parent if parent in _QUANTITY_PARENTS else key)
            for key, value in wanted.items()
            if not (value is None and key not in live)
        )
    if isinstance(wanted, list):
        return isinstance(live, list) and _contains_list(live, wanted, _LIST_KEYS.get(parent))
    if parent in _QUANTITY_PARENTS:
        return _same_quantity(live, wanted)
    return bool(live == wanted)


def _contains_list(live: list[Any], wanted: list[Any], key: str | None) -> bool:
    if key is None:
        return len(live) == len(wanted) and all(
            _contains(a, b, "") for a, b in zip(live, wanted, strict=True)
        )
    by_key = {item.get(key): item for item in live if isinstance(item, dict)}
    return all(item[key] in by_key and _contains(by_key[item[key]], item, "") for item in wanted)


def _same_quantity(live: Any, wanted: Any) -> bool:  # noqa: ANN401 - JSON
    try:
        return live is not None and parse_quantity(live) == parse_quantity(wanted)
    except InvalidSpec:
        return bool(live == wanted)
