"""`delivery: Inject`: which settings are to be there, and when a pod template comes to name them. Pure.

Settings come in three steps, and each is kept in annotations of their ConfigMap: they are written; a pod
proves that the policy acts on them (`stamps`), from when on the policy lets the pod template name them with
its user's next change, or the operator does at once; and the template was seen to name them (`reached`).
A template that named them and does so no more was taken back by somebody, and is left alone.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import (
    ANNOTATION_PREFIX_REACHED,
    ANNOTATION_PREFIX_REPLACES,
    ANNOTATION_PREFIX_SETTINGS,
    ANNOTATION_PREFIX_STAMPS,
)
from cachewright.engines.injection import blocking_flags, unwanted_flags, valued_flags
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.target import PrefixTarget
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.state import ChildId, Manifest, Observed, PrefixChildren
from cachewright.render.metadata import prefix_name
from cachewright.render.prefix_settings import SettingsWords, build_prefix_settings_config_map, settings_data

KEPT: Final = 5
"""Former settings that are kept although nothing names them now, for a rollout that is undone."""


def settings_words(wish: PrefixWish, target: PrefixTarget) -> SettingsWords:
    """Return what the policy is told; nothing where the engine cannot be told so."""
    config = wish.configuration
    if config is None:
        return SettingsWords(target.container, target.labels, (), (), (), ())
    return SettingsWords(
        container=target.container,
        labels=target.labels,
        unwanted=unwanted_flags(wish.engine, config),
        valued=valued_flags(config),
        blocking=blocking_flags(wish.engine, config),
        arguments=config.words,
        file=wish.file,
    )


def injection(
    cache: InferenceCache, wish: PrefixWish, target: PrefixTarget | None, observed: Observed
) -> PrefixChildren:
    """Return the settings that are wanted, those that are kept, and what the pod template is to name."""
    seen = observed.prefix
    settings = live_settings(observed)
    live = settings.get(target.name) if target is not None else None
    if target is None or seen is None or seen.problem or (target.refusal and live is None):
        return PrefixChildren(keeps=frozenset(("ConfigMap", name) for name in settings))
    data = live["data"] if live else settings_data(cache.metadata.name, settings_words(wish, target))
    annotations = _progress(live, target, seen)
    child = build_prefix_settings_config_map(cache, target.name, data, annotations)
    former = [
        build_prefix_settings_config_map(cache, name, each["data"], _reached(each))
        for name, each in _kept(settings, target, seen)
    ]
    return PrefixChildren(applies=(child, *former), stamp=_stamp(wish, target, seen, live))


def live_settings(observed: Observed) -> dict[str, Manifest]:
    """Return the ConfigMaps of settings that are there, by name."""
    family = f"{prefix_name(observed.name)}-"
    kinds: list[tuple[ChildId, Manifest]] = sorted(observed.children.items())
    return {name: live for (kind, name), live in kinds if kind == "ConfigMap" and name.startswith(family)}


def is_proven(live: Manifest | None, seen: PrefixSeen) -> bool:
    """Tell whether a pod was seen to be edited."""
    return live is not None and (seen.is_proven or ANNOTATION_PREFIX_STAMPS in annotations_of(live))


def is_taken_back(live: Manifest | None, target: PrefixTarget) -> bool:
    """Tell whether the pod template named these settings once and does not now."""
    reached = live is not None and ANNOTATION_PREFIX_REACHED in annotations_of(live)
    return reached and bool(target.workload) and target.stamp != target.name


def annotations_of(live: Manifest) -> dict[str, str]:
    """Return the annotations of an object."""
    return live["metadata"].get("annotations") or {}


def _progress(live: Manifest | None, target: PrefixTarget, seen: PrefixSeen) -> dict[str, str]:
    found = _reached(live) if live is not None else {}
    if target.stamp == target.name:
        found[ANNOTATION_PREFIX_REACHED] = "true"
    if is_proven(live, seen) and not is_taken_back(live, target):
        found[ANNOTATION_PREFIX_STAMPS] = f"{target.workload.get('kind', '')}/{_workload_name(target)}"
    if target.stamp and not seen.rival:
        found[ANNOTATION_PREFIX_REPLACES] = target.stamp
    return found


def _reached(live: Manifest) -> dict[str, str]:
    reached = annotations_of(live).get(ANNOTATION_PREFIX_REACHED)
    return {ANNOTATION_PREFIX_REACHED: reached} if reached else {}


def _workload_name(target: PrefixTarget) -> str:
    return str((target.workload.get("metadata") or {}).get("name", ""))


def _kept(
    settings: dict[str, Manifest], target: PrefixTarget, seen: PrefixSeen
) -> list[tuple[str, Manifest]]:
    """Choose former settings: those that a template or a pod names, and the latest of the others."""
    former = [(name, live) for name, live in settings.items() if name != target.name]
    former.sort(key=lambda each: str(each[1]["metadata"].get("creationTimestamp", "")), reverse=True)
    pods = [pod["metadata"].get("annotations") or {} for pod in seen.pods]
    named = {str(each.get(ANNOTATION_PREFIX_SETTINGS, "")) for each in pods} | {target.stamp}
    latest = [name for name, _ in former if name not in named][:KEPT]
    return [(name, live) for name, live in former if name in named or name in latest]


def _stamp(
    wish: PrefixWish, target: PrefixTarget, seen: PrefixSeen, live: Manifest | None
) -> Manifest | None:
    """Return what to apply to the workload so that its pod template names the settings."""
    wanted = wish.layer.rollout == "Immediate" and is_proven(live, seen) and bool(target.workload)
    if not wanted or target.stamp == target.name or is_taken_back(live, target) or seen.rival:
        return None
    metadata = target.workload["metadata"]
    return {
        "apiVersion": wish.ref.api_version,
        "kind": wish.ref.kind,
        # With its uid, so that one that is gone meanwhile is not made again.
        "metadata": {key: metadata[key] for key in ("name", "namespace", "uid")},
        "spec": {"template": {"metadata": {"annotations": {ANNOTATION_PREFIX_SETTINGS: target.name}}}},
    }
