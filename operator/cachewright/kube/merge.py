"""Server-side apply in small: what an object becomes when our manager's wish changes.

`kube.memory` calls it. Unlike the API server it knows our own fields only: a field that somebody else claims
too goes away with ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

LIST_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "layers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("port", "containerPort", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""Lists that merge by key, by the name of their field; every other list is replaced whole."""


def merged(live: Any, before: Any, after: Any, field: str = "") -> Any:  # noqa: ANN401
    """Return `live` with `after` in it and without what only `before` asked for; nothing given is changed."""
    if isinstance(after, dict):
        return _merged_mapping(_mapping(live), _mapping(before), after)
    if isinstance(after, list) and field in LIST_KEYS:
        keys = LIST_KEYS[field]
        wanted = _keyed(after, keys)
        return list(_merged_mapping(_keyed(live, keys), _keyed(before, keys), wanted, order=wanted).values())
    return deepcopy(after)


def _merged_mapping(
    live: dict[Any, Any],
    before: dict[Any, Any],
    after: dict[Any, Any],
    order: Iterable[Any] = (),
) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key in dict.fromkeys([*order, *live, *after]):
        field = key if isinstance(key, str) else ""
        if key in after:
            result[key] = merged(live.get(key), before.get(key), after[key], field)
        elif key in before:
            rest = _without(live[key], before[key], field)
            if rest:
                result[key] = rest
        else:
            result[key] = deepcopy(live[key])
    return result


def _without(live: Any, before: Any, field: str) -> Any:  # noqa: ANN401
    """Return what remains of `live` when we stop asking for `before`; None for nothing."""
    if isinstance(before, dict) and isinstance(live, dict):
        return _merged_mapping(live, before, {})
    if isinstance(before, list) and isinstance(live, list) and field in LIST_KEYS:
        keys = LIST_KEYS[field]
        # An item that we made goes as a whole: what is left of it could not stand without its key.
        return list({k: v for k, v in _keyed(live, keys).items() if k not in _keyed(before, keys)}.values())
    return None


def _mapping(value: Any) -> dict[Any, Any]:  # noqa: ANN401
    return value if isinstance(value, dict) else {}


def _keyed(items: Any, keys: tuple[str, ...]) -> dict[Any, Any]:  # noqa: ANN401
    if not isinstance(items, list):
        return {}
    return {tuple(item.get(key) for key in keys): item for item in items}
