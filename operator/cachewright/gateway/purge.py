"""Purge: from the id of an entry to its end, on every replica. Called by the admin port.

A removal raises the changes under the entry's hash tag in the same script, so that no write that began before
can bring the entry back. It is reported only when no replica answers from its own memory any more, which may
be as old as the last look at the store allows; so what is done is done everywhere.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from cachewright.errors import InvalidInput
from cachewright.gateway.serving import Serving
from cachewright.keys.entry_id import entry_name
from cachewright.layers.exact import LAYER
from cachewright.layers.retraction import SETTLE_SECONDS


async def purge(serving: Serving, entry_id: str, *, dry_run: bool) -> dict[str, Any]:
    """Remove an entry, or only tell what would go; raises InvalidInput and StoreError.

    What is not found may still be on its way into the store, so it is removed all the same.
    """
    if serving.exact is None:
        raise InvalidInput("this cache has no layer")
    name = entry_name(serving.digest_key, serving.policy.cache_id, entry_id)
    kept = await serving.exact.inspect(name)
    report: dict[str, Any] = {"id": entry_id, "dryRun": dry_run, "found": kept is not None}
    if kept is not None:
        age_seconds = max(0.0, time.time() - kept.stored_at)
        report |= {
            "layer": LAYER,
            "keyspace": str(name.keyspace),
            "ageSeconds": round(age_seconds, 3),
            "ttlSeconds": round(max(0.0, kept.ttl_seconds - age_seconds), 3),
            "sizeBytes": len(kept.body),
            "contentType": kept.content_type,
        }
    related = await serving.semantics.keeping.related(name) if serving.semantics else ()
    if serving.semantics:
        report["related"] = len(related)
    if not dry_run:
        report["removed"] = await serving.exact.remove(name)
        for other in related:
            await serving.exact.remove(other)
        await asyncio.sleep(SETTLE_SECONDS)
    return report
