"""Retract: from a request to the admin port to answers that no replica gives any more.

{"tenant": "acme", "dryRun": true}      or "document", "role", "user", "layer"
{"all": true, "dryRun": false}
{"id": "e…", "dryRun": false}           one entry; see `gateway.purge`

Called by the admin port.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cachewright.errors import InvalidInput
from cachewright.gateway.purge import purge
from cachewright.gateway.serving import Serving
from cachewright.keys.prefix import PREFIX
from cachewright.keys.record import Record
from cachewright.keys.retraction import Target, TargetKind
from cachewright.layers.pace import Pace
from cachewright.layers.retraction import Count, Counting, retract
from cachewright.policy.document import SweepPolicy
from cachewright.policy.users import sets_users_apart

COUNT_SECONDS: Final = 8.0
"""Longest that a count takes; clients of the admin port wait a little longer."""

_ID: Final = "id"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants to be retracted, and whether only to be told."""

    target: Target | None
    """None: one entry."""
    entry_id: str = field(default="", repr=False)
    dry_run: bool = True


def read_wanted(document: object) -> Wanted:
    """Read the body of a request; raises InvalidInput."""
    kinds = [str(kind) for kind in TargetKind]
    chosen = set(document) - {"dryRun"} if isinstance(document, Mapping) else set()
    if not isinstance(document, Mapping) or len(chosen) != 1 or not chosen <= {_ID, *kinds}:
        raise InvalidInput(f'the body must name one of {", ".join(kinds)} and {_ID}, and may hold "dryRun"')
    (kind,) = chosen
    value, dry_run = document[kind], document.get("dryRun", True)
    if not isinstance(dry_run, bool):
        raise InvalidInput('"dryRun" must be true or false')
    if kind == TargetKind.ALL:
        if value is not True:
            raise InvalidInput('"all" must be true')
        return Wanted(Target(TargetKind.ALL), dry_run=dry_run)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f'"{kind}" must be a text that is not empty')
    if kind == _ID:
        return Wanted(None, value, dry_run)
    return Wanted(Target(TargetKind(kind), value), dry_run=dry_run)


async def carry_out(serving: Serving, record: Record | None, wanted: Wanted) -> dict[str, Any]:
    """Retract, or only tell what would go; raises InvalidInput and StoreError.

    Done means that no replica serves any of it, from its own memory either.
    """
    if wanted.target is None:
        return await purge(serving, wanted.entry_id, dry_run=wanted.dry_run)
    target, policy = wanted.target, serving.policy
    if target.kind is TargetKind.USER and not sets_users_apart(policy.tenancy):
        raise InvalidInput("this cache does not set users apart: declare tenancy.user")
    counters = target.counters(serving.digest_key, _layers(record))
    report: dict[str, Any] = {"target": str(target.kind), "dryRun": wanted.dry_run}
    started = time.monotonic()
    store, embeddings = serving.store, serving.embeddings
    exact = serving.exact or (embeddings.layer.hot if embeddings else None)
    if store is None or exact is None or record is None or not counters:
        raise InvalidInput("this cache has no layer")
    if wanted.dry_run:
        sweep = policy.sweep or SweepPolicy()
        pace = Pace(sweep.keys_per_second, time.monotonic)
        report |= _told(await Counting(store, record, counters, pace, time.monotonic).run(COUNT_SECONDS))
    else:
        if embeddings is not None:
            await embeddings.layer.raise_cold(counters)  # first: the hot tier is refilled from it
        await retract(store, exact, counters, asyncio.sleep)
        report["done"] = True
    return report | {"seconds": round(time.monotonic() - started, 3)}


def _layers(record: Record | None) -> list[str]:
    return sorted(record.layers.keys() - {PREFIX}) if record is not None else []


def _told(count: Count) -> dict[str, Any]:
    return {
        "entries": sum(each.entries or 0 for each in count.keyspaces),
        "complete": count.is_complete,
        "keyspaces": [
            {
                "layer": each.layer,
                "keyspace": str(each.keyspace),
                "state": str(each.state),
                "entries": each.entries,
            }
            for each in count.keyspaces
        ],
    }
