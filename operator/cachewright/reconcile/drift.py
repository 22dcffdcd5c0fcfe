"""Whether a live child still is what we want. Pure; called by plan and by planned.

The API server adds defaults and other managers add fields, so a child is as wanted when it *contains* what
we render. Fields that we stop rendering leave no trace in such a comparison; a digest of the last rendering,
kept as an annotation on the child, finds those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
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
    return next(differences(live, wanted), None) is None


def differences(live: Manifest, wanted: Manifest) -> Iterator[str]:
    """Yield the paths, such as `spec.template.spec.containers[redis].image`, where wanted things lack."""
    return (path.removeprefix(".") for path in _differences(live, wanted, "", ""))


def _differences(live: Any, wanted: Any, parent: str, path: str) -> Iterator[str]:  # noqa: ANN401 - JSON
    if parent not in _WHOLE and isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            if not (value is None and key not in live):
                within = parent if parent in _QUANTITY_PARENTS else key
                yield from _differences(live.get(key), value, within, f"{path}.{key}")
    elif parent not in _WHOLE and isinstance(wanted, list) and isinstance(live, list):
        yield from _list_differences(live, wanted, _LIST_KEYS.get(parent), path)
    elif parent in _QUANTITY_PARENTS:
        if not _same_quantity(live, wanted):
            yield path
    elif live != wanted:
        yield path


def _list_differences(live: list[Any], wanted: list[Any], key: str | None, path: str) -> Iterator[str]:
    if key is None:
        pairs = zip(live, wanted, strict=False)
        if len(live) != len(wanted) or any(any(_differences(a, b, "", "x")) for a, b in pairs):
            yield path
        return
    by_key = {item.get(key): item for item in live if isinstance(item, dict)}
    for item in wanted:
        place = f"{path}[{item[key]}]"
        if item[key] in by_key:
            yield from _differences(by_key[item[key]], item, "", place)
        else:
            yield place


def _same_quantity(live: Any, wanted: Any) -> bool:  # noqa: ANN401 - JSON
    try:
        return live is not None and parse_quantity(live) == parse_quantity(wanted)
    except InvalidSpec:
        return bool(live == wanted)
