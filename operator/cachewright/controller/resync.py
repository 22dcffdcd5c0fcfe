"""Looks at every object now and then, whatever watches say: lists keys and spreads them over the interval.

Workloads that were patched for an object that is gone by now name one more key each.

`process` calls `first` before anything is done, then runs `forever`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from cachewright.api.names import LABEL_PREFIX_PATCHED
from cachewright.controller.queue import CacheKey, WorkQueue
from cachewright.controller.roster import Roster
from cachewright.errors import KubeNotFound, KubeUnavailable
from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import INFERENCE_CACHES, Manifest, ResourceKind, patched_kinds

RETRY_SECONDS: Final = 5.0
SPREAD: Final = 0.5
"""Part of the interval over which one resync is spread: no object waits for more than 1.5 intervals."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Resync:
    """Where to list, how often, and whom to tell."""

    kube: KubeApi
    queue: WorkQueue
    roster: Roster
    namespaces: Sequence[str]
    """Empty for all."""
    interval_seconds: float
    engine_stacks: bool = False
    """Whether objects of engines' stacks may have been patched as well."""

    async def first(self) -> None:
        """Wait until the API server knows InferenceCaches, then queue all there are.

        Raises KubeError's subclasses for what waiting does not cure, such as a missing right.
        """
        told = False
        while True:
            try:
                keys, patched = await self._keys(), await self._patched()
            except (KubeNotFound, KubeUnavailable) as error:
                if not told:
                    log.warning("waiting for the InferenceCache definition", error=str(error))
                    told = True
                await asyncio.sleep(RETRY_SECONDS)
            else:
                break
        self.roster.replace(keys)
        for key in {*keys, *patched}:
            self.queue.add(key)
        log.info("objects listed", count=len(keys))

    async def forever(self) -> None:
        """Queue every object once an interval; raises KubeNotFound when the definition was deleted."""
        while True:
            await asyncio.sleep(self.interval_seconds)
            try:
                keys, patched = await self._keys(), await self._patched()
            except KubeUnavailable as error:
                log.warning("resync failed", error=str(error))
                continue
            self.roster.replace(keys)
            for key in {*keys, *patched}:
                self.queue.add(key, random.uniform(0, SPREAD * self.interval_seconds))  # noqa: S311

    async def _patched(self) -> list[CacheKey]:
        """Name the objects that workloads were patched for, whether they are still there or not."""
        keys: list[CacheKey] = []
        for kind in patched_kinds(engine_stacks=self.engine_stacks):
            with suppress(KubeNotFound):  # A stack that is not installed.
                keys += [
                    CacheKey(metadata["namespace"], metadata["labels"][LABEL_PREFIX_PATCHED])
                    for metadata in await self._metadata(kind, LABEL_PREFIX_PATCHED)
                ]
        return keys

    async def _keys(self) -> list[CacheKey]:
        found = await self._metadata(INFERENCE_CACHES)
        return [CacheKey(metadata["namespace"], metadata["name"]) for metadata in found]

    async def _metadata(self, kind: ResourceKind, label_selector: str = "") -> list[Manifest]:
        """List the metadata of a kind's objects in all namespaces that are served."""
        places: Sequence[str | None] = self.namespaces or [None]
        return [
            found["metadata"]
            for namespace in places
            for found in await self.kube.list_metadata(kind, namespace, label_selector)
        ]
