"""`PodWatches`: watches the engines' pods of each fenced cache, by the labels of its workload.

`passes` says after each pass which pods concern its object; a pod that comes, goes or runs something else has
the object looked at again, at once: permission to write must be gone before a new pod can serve.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Protocol

import structlog

from cachewright.controller.queue import CacheKey
from cachewright.errors import KubeError
from cachewright.kube.protocol import PODS, Manifest, ResourceKind
from cachewright.reconcile.workload import TERMINAL_PHASES, annotated_version, identity_of_template

RETRY_SECONDS: Final = 2.0
"""Between two watches of the same pods, where the first one failed."""

log = structlog.get_logger(__name__)

Place = tuple[str, str]
"""Namespace and label selector."""


class Watcher(Protocol):
    """What is needed of the Kubernetes API."""

    def watch(
        self, kind: ResourceKind, namespace: str | None, *, field_selector: str = "", label_selector: str = ""
    ) -> AsyncGenerator[tuple[str, Manifest]]:
        """Yield what exists, then each change, until the watch ends."""


class PodWatches:
    """One watch for each set of pods, however many objects it concerns."""

    def __init__(self, kube: Watcher, look_at: Callable[[CacheKey], None]) -> None:
        self._kube = kube
        self._look_at = look_at
        self._places: dict[CacheKey, Place] = {}
        self._watches: dict[Place, asyncio.Task[None]] = {}

    def follow(self, key: CacheKey, selector: str) -> None:
        """Have an object looked at whenever pods of these labels change; no selector ends that."""
        place = (key.namespace, selector) if selector else None
        former = self._places.get(key)
        if place == former:
            return
        if place is None:
            del self._places[key]
        else:
            self._places[key] = place
            if place not in self._watches:
                self._watches[place] = asyncio.create_task(self._watch(place), name=f"pods {place}")
        if former is not None and former not in self._places.values():
            self._watches.pop(former).cancel()

    async def aclose(self) -> None:
        """End all watches."""
        watches = list(self._watches.values())
        self._watches.clear()
        self._places.clear()
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(self, place: Place) -> None:
        while True:
            try:
                await self._watch_once(place)
            except KubeError as error:
                log.warning("pod watch failed", namespace=place[0], selector=place[1], error=str(error))
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch_once(self, place: Place) -> None:
        """Follow the pods until the server ends the watch; what was missed in between is told as new."""
        namespace, selector = place
        seen: dict[str, tuple[str, str]] = {}
        watching = self._kube.watch(PODS, namespace, label_selector=selector)
        async with aclosing(watching):
            async for kind, pod in watching:
                uid = str(pod["metadata"].get("uid", ""))
                now = None if kind == "DELETED" else _what_counts(pod)
                if seen.get(uid) == now:
                    continue
                if now is None:
                    del seen[uid]
                else:
                    seen[uid] = now
                for key, followed in self._places.items():
                    if followed == place:
                        self._look_at(key)


def _what_counts(pod: Manifest) -> tuple[str, str] | None:
    """Return what of a pod bears on what may be cached; None where it is over."""
    if (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
        return None
    return annotated_version(pod), identity_of_template(pod, None)
