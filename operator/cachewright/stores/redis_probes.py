"""Reports on layers in Redis or Valkey: one hash of a cache, a field for each layer and one for the request.

Used by gateways through CacheStore, and by the operator, which reads them.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Final

from cachewright.errors import InvalidDocument
from cachewright.keys.entry_key import probes_key
from cachewright.stores.probes import ProbeReport
from cachewright.stores.redis_client import RedisLink

REQUEST: Final = "request"
"""The field of the request; no layer is named so."""


class RedisProbeStore:
    """ProbeStore on Redis or Valkey."""

    _link: RedisLink

    async def read_probes(self, cache_id: str, layers: Collection[str]) -> dict[str, ProbeReport]:
        """Read the reports on these layers, in one round trip."""
        wanted = sorted(layers)
        if not wanted:
            return {}
        async with self._link.use("read the gateways' reports") as client:
            pipeline = client.pipeline(transaction=False)
            for layer in wanted:
                pipeline.hget(probes_key(cache_id), layer)
            texts: list[bytes | None] = await pipeline.execute()
        reports = {}
        for layer, text in zip(wanted, texts, strict=True):
            if text is not None:
                with suppress(InvalidDocument):
                    reports[layer] = ProbeReport.from_json(text)
        return reports

    async def read_probe_request(self, cache_id: str) -> str:
        """Read the request that stands."""
        async with self._link.use("read the operator's request") as client:
            found = await client.hget(probes_key(cache_id), REQUEST)
        return found.decode(errors="replace") if isinstance(found, bytes) else ""

    async def request_probes(self, cache_id: str, request: str) -> None:
        """Leave a request."""
        async with self._link.use("ask gateways to try their layers") as client:
            await client.hset(probes_key(cache_id), REQUEST, request)

    async def write_probe(self, cache_id: str, layer: str, report: ProbeReport) -> None:
        """Leave a report on a layer."""
        async with self._link.use("report on a layer") as client:
            await client.hset(probes_key(cache_id), layer, report.to_json())
