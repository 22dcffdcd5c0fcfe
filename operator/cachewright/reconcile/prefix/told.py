"""The condition `PrefixCachingReady`: what the engine's pods really run. Pure; for status.

It never makes the object unready: an engine without its prefix cache answers as well, only later.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from cachewright.api.conditions import ConditionType, Reason
from cachewright.engines.salts import why_no_salt
from cachewright.reconcile.prefix.by_file import file_finding
from cachewright.reconcile.prefix.by_patch import patch_finding
from cachewright.reconcile.prefix.by_policy import policy_finding
from cachewright.reconcile.prefix.finding import PrefixFinding
from cachewright.reconcile.prefix.flush import flush_finding, flush_of, flush_status
from cachewright.reconcile.prefix.hits_told import hit_rate_status, hits_finding, version_finding
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.wish import PrefixWish, prefix_wish
from cachewright.reconcile.readiness import Part
from cachewright.reconcile.state import Manifest, Observed, Plan

PASSING: Final = frozenset({Reason.PROGRESSING, Reason.WAITING_FOR_ROLLOUT, Reason.NO_PODS})
"""What needs nobody who mends it, and hides nothing that does."""


def prefix_part(observed: Observed, plan: Plan) -> Part | None:
    """Tell whether every pod of the engine runs as wanted; None without the layer."""
    wish = prefix_wish(plan.cache.spec if plan.cache is not None else None)
    if wish is None or observed.prefix is None:
        return None
    found = _finding(wish, observed.prefix, observed)
    return Part(ConditionType.PREFIX_CACHING_READY, found.status, found.reason, found.message)


def prefix_status(before: Manifest, observed: Observed, plan: Plan, now: datetime) -> Manifest:
    """Return `status.prefix`, empty where there is nothing to tell; `before` is the whole former status."""
    wish = prefix_wish(plan.cache.spec if plan.cache is not None else None)
    seen = observed.prefix
    if plan.cache is None:
        return before.get("prefix") or {}
    if wish is None or seen is None:
        return {}
    former = before.get("prefix") or {}
    former = former if former.get("workload") == wish.workload else {}
    flush = flush_of(wish, plan.record, former.get("flushed"))
    told = {
        **hit_rate_status(former, wish, seen.hits, now),
        **flush_status(flush, seen.flush, former.get("flushed")),
    }
    return {"workload": wish.workload, **told} if told else {}


def _finding(wish: PrefixWish, seen: PrefixSeen, observed: Observed) -> PrefixFinding:
    if wish.problem:
        return PrefixFinding(Reason.SETTING_UNSUPPORTED, f"layers.prefix: {wish.problem}.")
    if seen.problem:
        return PrefixFinding(Reason.WORKLOAD_NOT_FOUND, f"layers.prefix: {seen.problem}.")
    found = _delivered(wish, seen, observed) or _heard(wish, seen)
    why = why_no_salt(wish.engine, wish.version) if wish.layer.tenant_salt else ""
    if why and (found is None or found.reason in PASSING):
        return PrefixFinding(Reason.TENANTS_NOT_APART, f"layers.prefix: {why}.")
    if why and found is not None:
        return replace(found, message=f"{found.message} Also, layers.prefix: {why}.")
    return found or version_finding(wish, seen) or _well(wish, seen)


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


def _heard(wish: PrefixWish, seen: PrefixSeen) -> PrefixFinding | None:
    """Tell of pods that run with the settings what they themselves say against it."""
    return flush_finding(wish, seen.flush) or hits_finding(wish, seen.hits)


def _well(wish: PrefixWish, seen: PrefixSeen) -> PrefixFinding:
    message = f"{len(seen.pods)} of {len(seen.pods)} pods of {wish.workload} run with the settings."
    if seen.hits is not None and seen.hits.problem:
        message = f"{message} How often prefixes are found is not known: {seen.hits.problem}."
    return PrefixFinding(Reason.READY, message, "True")
