"""What gateways found when they tried their layers, as a Protocol: reports that the operator reads.

A gateway writes, reads and removes an entry of its own in each layer now and then, and leaves in Redis what
came of it. The operator asks it to do so at once by a *request*, any text other than the last one, which
reports then name. Implemented beside CacheStore; one contract suite runs on every implementation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

import orjson

from cachewright.errors import InvalidDocument

REPORT_FORMAT: Final = 1
"""Format number in a report's JSON; readers take no other for a report."""


class ProbeState(StrEnum):
    """What came of trying a layer."""

    WELL = "well"
    STORE = "store"
    """Its store failed."""
    EMBEDDER = "embedder"
    """Its embedder failed."""
    MISMATCH = "mismatch"
    """Its embedder gives other vectors than those that the keyspace holds."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What one gateway found in one layer."""

    state: ProbeState
    problem: str = ""
    """A sentence's part, where it is not well; holds no key and no secret."""
    by: str = ""
    """A name that the gateway gave itself at its start."""
    at: float = 0.0
    """Seconds since the epoch, by the gateway's clock."""
    request: str | None = None
    """The one that stood when the layer was tried; empty for none, None from gateways that know of none."""

    def to_json(self) -> str:
        """Render as JSON; the same report gives the same text."""
        document: dict[str, Any] = {
            "format": REPORT_FORMAT,
            "state": self.state.value,
            "problem": self.problem,
            "by": self.by,
            "at": self.at,
            "request": self.request,
        }
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> ProbeReport:
        """Read what `to_json` wrote; raises InvalidDocument for anything else."""
        try:
            document: Any = orjson.loads(text)
            if document["format"] != REPORT_FORMAT:
                raise InvalidDocument(f"report format {document['format']!r} is not {REPORT_FORMAT}")
            return cls(
                state=ProbeState(document["state"]),
                problem=str(document["problem"]),
                by=str(document["by"]),
                at=float(document["at"]),
                request=None if document.get("request") is None else str(document["request"]),
            )
        except (ValueError, KeyError, TypeError) as e:
            raise InvalidDocument(f"not a report: {e}") from e


class ProbeReports(Protocol):
    """Reports on layers; all the operator needs."""

    async def read_probes(self, cache_id: str, layers: Collection[str]) -> dict[str, ProbeReport]:
        """Read the last report on each of these layers; those without one that parses are left out."""

    async def read_probe_request(self, cache_id: str) -> str:
        """Read the request that stands; empty where there is none."""

    async def request_probes(self, cache_id: str, request: str) -> None:
        """Leave a request: every gateway tries its layers as soon as it sees another one than the last."""


class ProbeStore(ProbeReports, Protocol):
    """The same for gateways."""

    async def write_probe(self, cache_id: str, layer: str, report: ProbeReport) -> None:
        """Leave a report on a layer in place of the last one."""
