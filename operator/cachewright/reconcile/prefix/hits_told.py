"""What status says of an engine's prefix hit rate. Pure; called by status and `told`.

A rate is rounded and written rarely, as each write of a status wakes whoever watches the object.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cachewright.api.conditions import Reason
from cachewright.engines.serving import is_same_version, version_of_image
from cachewright.reconcile.prefix.finding import PrefixFinding
from cachewright.reconcile.prefix.hits import EngineHits
from cachewright.reconcile.prefix.seen import PrefixSeen, engine_container
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.state import Manifest
from cachewright.reconcile.timestamps import from_timestamp, to_timestamp

STEPS: Final = 20
"""Rates are told in steps of 0.05."""

LEAST_BETWEEN: Final = timedelta(minutes=15)
"""How long a rate stands before another is told."""


def hit_rate_status(former: Manifest, wish: PrefixWish, hits: EngineHits | None, now: datetime) -> Manifest:
    """Return the rate and its time; `former` is what status says of the same workload."""
    if wish.layer.metrics is not None and not wish.layer.metrics.enabled:
        return {}
    told: Manifest = {key: former[key] for key in ("hitRate", "since") if key in former}
    if hits is None or hits.rate is None:
        return told
    rate = round(hits.rate * STEPS) / STEPS
    if told and (told["hitRate"] == rate or not _is_due(str(told["since"]), now)):
        return told
    return {"hitRate": rate, "since": to_timestamp(now)}


def hits_finding(wish: PrefixWish, hits: EngineHits | None) -> PrefixFinding | None:
    """Return what the engines' own counts speak against; None where they do not."""
    if hits is None or not hits.pods:
        return None
    if hits.is_off:
        message = (
            f"{wish.workload} was told to keep prefixes and says that its prefix cache is off; some models,"
            " such as those that carry a state along, cannot reuse prefixes: see the engine's log."
        )
        return PrefixFinding(Reason.SWITCHED_OFF, message)
    if hits.has_no_hits:
        message = (
            f"The prefix cache of {wish.workload} had no hit, and many look-ups: either prompts do not begin"
            " alike, which cachewright prefix analyze shows, or the model cannot reuse prefixes."
        )
        return PrefixFinding(Reason.NO_HITS_WITH_TRAFFIC, message)
    return None


def version_finding(wish: PrefixWish, seen: PrefixSeen) -> PrefixFinding | None:
    """Say where the version in the spec is not that of the engine's image, or is not known here."""
    for pod in seen.pods:
        container = engine_container(pod["spec"]["containers"], wish.ref.container)
        image = str((container or {}).get("image", ""))
        version = version_of_image(wish.engine, image)
        if version is not None and not is_same_version(wish.engine, version, wish.version):
            message = (
                f"The pods of {wish.workload} run image {image}, and engineVersion says {wish.version}:"
                " the settings may not be what that version understands."
            )
            return PrefixFinding(Reason.ENGINE_VERSION_UNKNOWN, message, "True")
    if wish.is_known_version:
        return None
    message = (
        f"{len(seen.pods)} of {len(seen.pods)} pods of {wish.workload} run with the settings."
        f" {wish.engine} {wish.version} is newer than what is known here: check its --help."
    )
    return PrefixFinding(Reason.ENGINE_VERSION_UNKNOWN, message, "True")


def _is_due(since: str, now: datetime) -> bool:
    at = from_timestamp(since)
    return at is None or now - at >= LEAST_BETWEEN
