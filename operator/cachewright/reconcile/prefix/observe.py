"""Look at the workload and the pods of an engine. IO; called by observe."""

from __future__ import annotations

import re
from dataclasses import replace

from cachewright.api.names import LABEL_CACHE
from cachewright.engines.arguments import are_as_wanted
from cachewright.errors import KubeForbidden, KubeInvalid, KubeTerminating
from cachewright.kube.protocol import CONFIG_MAPS, PATCHED_KINDS, PODS, KubeClient
from cachewright.reconcile.observe_pods import OWN_SELECTOR, label_selector
from cachewright.reconcile.prefix.injection import is_proven, settings_words
from cachewright.reconcile.prefix.patch_note import PatchSeen, read_note
from cachewright.reconcile.prefix.patched_workload import patched_for
from cachewright.reconcile.prefix.patching import is_rival
from cachewright.reconcile.prefix.seen import PrefixSeen, engine_container, living, words_of
from cachewright.reconcile.prefix.target import DIGEST_LENGTH, prefix_target
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.state import ChildId, Manifest
from cachewright.reconcile.workload import original_words
from cachewright.render.metadata import engine_name, prefix_name
from cachewright.render.prefix_settings import build_proof_pod


async def see_engine(
    kube: KubeClient, namespace: str, wish: PrefixWish | None
) -> tuple[PrefixSeen | None, str]:
    """Return what the engine's pods run, and the labels they were found by; None without the layer."""
    if wish is None:
        return None, ""
    ref = wish.ref
    try:
        workload = None
        kind = PATCHED_KINDS.get((ref.api_version, ref.kind))
        if kind is not None and (kind.kind in OWN_SELECTOR or wish.layer.delivery == "Patch"):
            workload = await kube.get(kind, namespace, ref.name)
            if workload is None:
                return PrefixSeen(problem=f"{wish.workload} does not exist"), ""
        if ref.pod_selector is not None:
            selector = label_selector({"matchLabels": ref.pod_selector.match_labels})
        else:
            selector = label_selector(workload["spec"]["selector"]) if workload is not None else ""
        pods = await kube.list(PODS, namespace, selector) if selector else []
    except KubeForbidden as e:
        return PrefixSeen(problem=f"the operator may not look at {wish.workload} ({e})"), ""
    return PrefixSeen(workload, living(pods)), selector


def settings_names(wish: PrefixWish | None, seen: PrefixSeen | None, cache_name: str) -> frozenset[ChildId]:
    """Name the ConfigMap that the settings stand in, which may be somebody else's."""
    if wish is None or seen is None:
        return frozenset()
    if wish.layer.delivery == "ConfigMap":
        return frozenset({("ConfigMap", prefix_name(cache_name))})
    if wish.layer.delivery == "Patch":
        return frozenset({("ConfigMap", engine_name(cache_name))})
    target = prefix_target(wish, seen, cache_name)
    return frozenset({("ConfigMap", target.name)}) if target is not None else frozenset()


async def see_proof(
    kube: KubeClient,
    document: Manifest,
    wish: PrefixWish | None,
    seen: PrefixSeen | None,
    children: dict[ChildId, Manifest],
) -> PrefixSeen | None:
    """See whether the policy edits pods, until it once did, and whose settings the pod template names."""
    if wish is None or seen is None or seen.problem:
        return seen
    namespace, name = str(document["metadata"]["namespace"]), str(document["metadata"]["name"])
    if seen.workload is not None and is_rival(seen.workload, name):
        return replace(seen, rival=patched_for(seen.workload))
    if wish.layer.delivery != "Inject":
        return seen
    target = prefix_target(wish, seen, name)
    if target is None or target.refusal:
        return seen
    seen = replace(seen, rival=await _rival(kube, namespace, name, target.stamp))
    live = children.get(("ConfigMap", target.name))
    if live is None or is_proven(live, seen):
        return seen
    args = target.args if target.args or target.command else ("serve",)
    words = settings_words(wish, target)
    try:
        pod = await kube.dry_run(build_proof_pod(namespace, target.name, words, target.command, args))
    except KubeTerminating:
        raise
    except (KubeForbidden, KubeInvalid) as e:
        return replace(seen, is_proven=False, proof_error=str(e))
    return replace(seen, is_proven=_has_settings(pod, wish, target.container))


async def see_patched(
    kube: KubeClient,
    document: Manifest,
    wish: PrefixWish | None,
    seen: PrefixSeen | None,
    children: dict[ChildId, Manifest],
) -> PatchSeen | None:
    """Look at the workload that was patched, where that is noted."""
    namespace, name = str(document["metadata"]["namespace"]), str(document["metadata"]["name"])
    note = read_note(children.get(("ConfigMap", engine_name(name))))
    kind = PATCHED_KINDS.get((note.api_version, note.kind)) if note is not None else None
    if note is None or kind is None:
        return None
    if seen is not None and not seen.problem and wish is not None and note.is_of(wish.ref):
        return PatchSeen(note, seen.workload)
    try:
        return PatchSeen(note, await kube.get(kind, namespace, note.name))
    except KubeForbidden:
        return PatchSeen(note, None, is_hidden=True)


def _has_settings(pod: Manifest, wish: PrefixWish, container: str) -> bool:
    found = engine_container(pod["spec"]["containers"], container)
    if found is None or wish.configuration is None or original_words(pod) is None:
        return False
    words = words_of(found)
    return are_as_wanted(words, wish.configuration)


async def _rival(kube: KubeClient, namespace: str, name: str, stamp: str) -> str:
    """Name the other object whose settings these are; empty where they are ours, or gone."""
    if not stamp or re.fullmatch(f"{prefix_name(name)}-[0-9a-f]{{{DIGEST_LENGTH}}}", stamp):
        return ""
    metadata = await kube.get_metadata(CONFIG_MAPS, namespace, stamp)
    return str((metadata or {"metadata": {}})["metadata"].get("labels", {}).get(LABEL_CACHE, ""))
