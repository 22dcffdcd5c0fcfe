"""`ReferenceWatches`: watches what InferenceCaches refer to: engines' pods, and ConfigMaps with templates.

`passes` says after each pass what concerns its object; a pod that comes, goes or runs something else has the
object looked at again, at once: permission to write must be gone before a new pod can serve.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Protocol

import structlog

from cachewright.controller.queue import CacheKey
from cachewright.errors import KubeError
from cachewright.kube.protocol import CLOUDNATIVE_PG_KINDS, CONFIG_MAPS, PODS, Manifest, ResourceKind
from cachewright.reconcile.references import Reference, what_counts

RETRY_SECONDS: Final = 2.0
"""Between two watches of the same, where the first one failed."""

KINDS: Final = {kind.kind: kind for kind in (CONFIG_MAPS, PODS, *CLOUDNATIVE_PG_KINDS)}

log = structlog.get_logger(__name__)

Place = tuple[str, Reference]
"""Namespace, and what is watched there."""


class Watcher(Protocol):
    """What is needed of the Kubernetes API."""

    def watch(
        self, kind: ResourceKind, namespace: str | None, *, field_selector: str = "", label_selector: str = ""
    ) -> AsyncGenerator[tuple[str, Manifest]]:
        """Yield what exists, then each change, until the watch ends."""


class ReferenceWatches:
    """One watch for each reference, however many objects it concerns."""

    def __init__(self, kube: Watcher, look_at: Callable[[CacheKey], None]) -> None:
        self._kube = kube
        self._look_at = look_at
        self._followers: dict[Place, set[CacheKey]] = {}
        self._watches: dict[Place, asyncio.Task[None]] = {}
        self._places: dict[CacheKey, frozenset[Place]] = {}

    def follow(self, key: CacheKey, references: frozenset[Reference]) -> None:
        """Have an object looked at whenever one of these changes, and for nothing else."""
        wanted = frozenset((key.namespace, reference) for reference in references)
        former = self._places.get(key, frozenset())
        if wanted:
            self._places[key] = wanted
        else:
            self._places.pop(key, None)
        for place in wanted - former:
            self._followers.setdefault(place, set()).add(key)
            if place not in self._watches:
                self._watches[place] = asyncio.create_task(self._watch(place), name=f"watch of {place}")
        for place in former - wanted:
            self._followers[place].discard(key)
            if not self._followers[place]:
                del self._followers[place]
                self._watches.pop(place).cancel()

    async def aclose(self) -> None:
        """End all watches."""
        watches = list(self._watches.values())
        self._watches.clear()
        self._followers.clear()
        self._places.clear()
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(self, place: Place) -> None:
        namespace, reference = place
        while True:
            try:
                await self._watch_once(place)
            except KubeError as error:
                log.warning(
                    "reference watch failed", namespace=namespace, kind=reference.kind, error=str(error)
                )
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch_once(self, place: Place) -> None:
        """Follow until the server ends the watch; what was missed in between is told as new."""
        namespace, reference = place
        seen: dict[str, str] = {}
        watching = self._kube.watch(
            KINDS[reference.kind],
            namespace,
            field_selector=reference.field_selector,
            label_selector=reference.label_selector,
        )
        async with aclosing(watching):
            async for event, found in watching:
                uid = str(found["metadata"].get("uid", ""))
                now = None if event == "DELETED" else what_counts(reference.kind, found)
                if seen.get(uid) == now:
                    continue
                if now is None:
                    del seen[uid]
                else:
                    seen[uid] = now
                for key in self._followers.get(place, ()):
                    self._look_at(key)
