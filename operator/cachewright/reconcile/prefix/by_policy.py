"""`delivery: Inject`: do the engine's pods run with the settings, and what stands in the way? Pure."""

from __future__ import annotations

from cachewright.api.conditions import Reason
from cachewright.api.names import ANNOTATION_PREFIX_SETTINGS
from cachewright.engines.arguments import are_as_wanted
from cachewright.reconcile.prefix.finding import PrefixFinding
from cachewright.reconcile.prefix.injection import is_proven, is_taken_back, live_settings
from cachewright.reconcile.prefix.seen import Pod, PrefixSeen, engine_container, words_of
from cachewright.reconcile.prefix.target import PrefixTarget, prefix_target
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.state import Observed

NO_POLICY = (
    "The pod that was to prove it came back unedited: Kubernetes 1.36 or newer is needed, and the"
    " MutatingAdmissionPolicy of the chart (prefixCaching.policy); or choose another delivery."
)


def policy_finding(wish: PrefixWish, seen: PrefixSeen, observed: Observed) -> PrefixFinding | None:
    """Return the first thing that is amiss; None where every pod runs with the settings."""
    target = prefix_target(wish, seen, observed.name)
    found = shape(wish, seen, target)
    if found is not None or target is None:
        return found
    lacking = [pod for pod in seen.pods if lacks(wish, target, pod)]
    if seen.pods and not lacking:
        return None
    return _on_the_way(wish, seen, observed, target) or _pods(wish, seen, target, lacking)


def shape(wish: PrefixWish, seen: PrefixSeen, target: PrefixTarget | None) -> PrefixFinding | None:
    """Say why nothing may be added to the engine's command line, or by whom it is already."""
    if target is None:
        if seen.workload is None and not seen.pods:
            return _no_pods(wish)
        message = f"{wish.workload} has several containers: name the engine's in workloadRef.container."
        return PrefixFinding(Reason.FLAG_NOT_INJECTABLE, message)
    if target.refusal:
        message = f"Container {target.container} of {wish.workload} {target.refusal}."
        return PrefixFinding(Reason.FLAG_NOT_INJECTABLE, message)
    if seen.rival:
        message = (
            f"{wish.workload} has the settings of InferenceCache {seen.rival}; remove layers.prefix there."
        )
        return PrefixFinding(Reason.NAME_CONFLICT, message)
    return None


def lacks(wish: PrefixWish, target: PrefixTarget, pod: Pod) -> bool:
    """Tell whether a pod runs without the settings."""
    container = engine_container(pod["spec"]["containers"], target.container)
    if container is None or wish.configuration is None:
        return True
    words = words_of(container)
    return not are_as_wanted(words, wish.configuration)


def _on_the_way(
    wish: PrefixWish, seen: PrefixSeen, observed: Observed, target: PrefixTarget
) -> PrefixFinding | None:
    """Say how far the settings have come, while no pod can have them yet."""
    live = live_settings(observed).get(target.name)
    if not is_proven(live, seen):
        if seen.proof_error:
            message = f"The pod that was to prove that the policy acts was refused: {seen.proof_error}."
            return PrefixFinding(Reason.POLICY_UNPROVEN, message)
        if seen.is_proven is False:
            return PrefixFinding(Reason.POLICY_API_UNAVAILABLE, NO_POLICY)
        return PrefixFinding(Reason.PROGRESSING, "The settings were written, and are to be proved.")
    if is_taken_back(live, target):
        message = (
            f"The pod template of {wish.workload} named the settings and does so no more; it is left alone."
            f" Change layers.prefix, or {_by_hand(target)}."
        )
        return PrefixFinding(Reason.TAKEN_BACK, message)
    return None


def _pods(
    wish: PrefixWish, seen: PrefixSeen, target: PrefixTarget, lacking: list[Pod]
) -> PrefixFinding | None:
    named = [
        str(pod["metadata"]["name"])
        for pod in lacking
        if (pod["metadata"].get("annotations") or {}).get(ANNOTATION_PREFIX_SETTINGS) == target.name
    ]
    if named:
        message = f"Pod {named[0]} names the settings and has not got them; delete it to have it made anew."
        return PrefixFinding(Reason.FLAG_MISSING, message)
    if not seen.pods:
        return _no_pods(wish)
    count = f"{len(lacking)} of {len(seen.pods)} pods of {wish.workload} were made before the settings came"
    if target.stamp == target.name:
        return PrefixFinding(Reason.WAITING_FOR_ROLLOUT, f"{count}, and are being replaced.")
    if target.workload:
        return PrefixFinding(
            Reason.WAITING_FOR_ROLLOUT,
            f"{count}; the next change of its pod template brings them, such as kubectl rollout restart.",
        )
    return PrefixFinding(Reason.WAITING_FOR_ROLLOUT, f"{count}; to have them, {_by_hand(target)}.")


def _by_hand(target: PrefixTarget) -> str:
    return f"add the annotation {ANNOTATION_PREFIX_SETTINGS}: {target.name} to its pod template"


def _no_pods(wish: PrefixWish) -> PrefixFinding:
    return PrefixFinding(Reason.NO_PODS, f"{wish.workload} has no pods now.", "Unknown")
