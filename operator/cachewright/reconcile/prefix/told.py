"""The condition `PrefixCachingReady`: what the engine's pods really run. Pure; for status.

It never makes the object unready: an engine without its prefix cache answers as well, only later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cachewright.api.conditions import ConditionType, Reason
from cachewright.engines.salts import why_no_salt
from cachewright.reconcile.prefix.by_file import file_finding
from cachewright.reconcile.prefix.by_patch import patch_finding
from cachewright.reconcile.prefix.by_policy import policy_finding
from cachewright.reconcile.prefix.finding import PrefixFinding
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.wish import PrefixWish, prefix_wish
from cachewright.reconcile.readiness import Part
from cachewright.reconcile.state import Observed, Plan

PASSING: Final = frozenset({Reason.PROGRESSING, Reason.WAITING_FOR_ROLLOUT, Reason.NO_PODS})
"""What needs nobody who mends it, and hides nothing that does."""


def prefix_part(observed: Observed, plan: Plan) -> Part | None:
    """Tell whether every pod of the engine runs as wanted; None without the layer."""
    wish = prefix_wish(plan.cache.spec if plan.cache is not None else None)
    if wish is None or observed.prefix is None:
        return None
    found = _finding(wish, observed.prefix, observed)
    return Part(ConditionType.PREFIX_CACHING_READY, found.status, found.reason, found.message)


def _finding(wish: PrefixWish, seen: PrefixSeen, observed: Observed) -> PrefixFinding:
    if wish.problem:
        return PrefixFinding(Reason.SETTING_UNSUPPORTED, f"layers.prefix: {wish.problem}.")
    if seen.problem:
        return PrefixFinding(Reason.WORKLOAD_NOT_FOUND, f"layers.prefix: {seen.problem}.")
    found = _delivered(wish, seen, observed)
    why = why_no_salt(wish.engine, wish.version) if wish.layer.tenant_salt else ""
    if why and (found is None or found.reason in PASSING):
        return PrefixFinding(Reason.TENANTS_NOT_APART, f"layers.prefix: {why}.")
    if why and found is not None:
        return replace(found, message=f"{found.message} Also, layers.prefix: {why}.")
    return found or _well(wish, seen)


def _delivered(wish: PrefixWish, seen: PrefixSeen, observed: Observed) -> PrefixFinding | None:
    match wish.layer.delivery:
        case "Inject":
            return policy_finding(wish, seen, observed)
        case "Patch":
            return patch_finding(wish, seen, observed)
        case "ConfigMap":
            if not seen.pods:
                return PrefixFinding(Reason.NO_PODS, f"{wish.workload} has no pods now.", "Unknown")
            return file_finding(wish, seen, observed)


def _well(wish: PrefixWish, seen: PrefixSeen) -> PrefixFinding:
    message = f"{len(seen.pods)} of {len(seen.pods)} pods of {wish.workload} run with the settings."
    if wish.is_known_version:
        return PrefixFinding(Reason.READY, message, "True")
    message = f"{message} {wish.engine} {wish.version} is newer than what is known here: check its --help."
    return PrefixFinding(Reason.ENGINE_VERSION_UNKNOWN, message, "True")
