"""`delivery: Patch`: do the engine's pods run with the settings, and what stands in the way? Pure."""

from __future__ import annotations

from cachewright.api.conditions import Reason
from cachewright.reconcile.prefix.by_policy import lacks, shape
from cachewright.reconcile.prefix.finding import PrefixFinding
from cachewright.reconcile.prefix.patched_workload import has_words, held_words, words_owner
from cachewright.reconcile.prefix.patching import next_move, wanted_words
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.target import PrefixTarget, prefix_target
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.state import Observed


def patch_finding(wish: PrefixWish, seen: PrefixSeen, observed: Observed) -> PrefixFinding | None:
    """Return the first thing that is amiss; None where every pod runs with the settings."""
    target = prefix_target(wish, seen, observed.name)
    found = shape(wish, seen, target)
    if found is not None or target is None:
        return found
    ended = _ended(wish, seen, observed, target)
    if ended is not None:
        return ended
    if not seen.pods:
        return PrefixFinding(Reason.NO_PODS, f"{wish.workload} has no pods now.", "Unknown")
    lacking = [pod for pod in seen.pods if lacks(wish, target, pod)]
    if not lacking:
        return None
    if not _has_settings(wish, seen, target):
        return PrefixFinding(Reason.PROGRESSING, f"The pod template of {wish.workload} is being patched.")
    message = (
        f"{len(lacking)} of {len(seen.pods)} pods of {wish.workload} were made before the settings came, and"
        " are being replaced."
    )
    return PrefixFinding(Reason.WAITING_FOR_ROLLOUT, message)


def _has_settings(wish: PrefixWish, seen: PrefixSeen, target: PrefixTarget) -> bool:
    """Tell whether the pod template brings the settings, by our hand or another."""
    if seen.workload is None or wish.configuration is None:
        return False
    given = wanted_words(wish.configuration, target, seen.workload)
    return held_words(seen.workload) is not None or has_words(seen.workload, target.container, given)


def _ended(
    wish: PrefixWish, seen: PrefixSeen, observed: Observed, target: PrefixTarget
) -> PrefixFinding | None:
    """Say why the pod template is left as it is, where somebody undid the patch."""
    move = next_move(wish, seen, observed)
    if move is None or move.note is None or not move.note.has_ended or wish.configuration is None:
        return None
    if seen.workload is None:
        return None
    given = wanted_words(wish.configuration, target, seen.workload)
    if has_words(seen.workload, target.container, given):
        return None
    owner = words_owner(seen.workload, target.container)
    who = f"field manager {owner.manager}" if owner is not None else "somebody who left no name"
    if move.note.taken_back:
        message = (
            f"The pod template of {wish.workload} was set back by {who}; it is left alone."
            " Change layers.prefix to have it patched again."
        )
        return PrefixFinding(Reason.TAKEN_BACK, message)
    message = (
        f"The words of {wish.workload} were set back {move.note.rounds} times by {who}; they are left alone."
        f" Write into its manifest: {' '.join(wish.configuration.words)}, or choose another delivery."
    )
    return PrefixFinding(Reason.TUG_OF_WAR, message)
