"""Ask an engine's pods for their metrics, and remember what they counted. IO; called by `engine_calls`.

At most once a minute for each object, a few pods of it, all at once and with a short wait. What is remembered
may be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import aiohttp

from cachewright.engines.metrics import PrefixCounts, read_counts
from cachewright.engines.serving import MetricsPlace, metrics_place
from cachewright.reconcile.prefix.hits import EngineHits, HitHistory
from cachewright.reconcile.prefix.seen import Pod, PrefixSeen, engine_container, words_of
from cachewright.reconcile.prefix.wish import PrefixWish

MOST_PODS: Final = 8
"""Pods of one engine that are asked; the first by name, so that they stay the same."""

MOST_BYTES: Final = 2 * 1024 * 1024
"""Longest answer that is read; engines send some 100 KiB."""


@dataclass(slots=True)
class _Remembered:
    reader: tuple[object, ...]
    """Whom the counts are of; another workload or engine begins anew."""
    at: float
    history: HitHistory = field(default_factory=HitHistory)
    problem: str = ""


@dataclass(slots=True)
class EngineScrapes:
    """What the engines of all objects told last, by the object's namespace and name."""

    monotonic: Callable[[], float]
    interval_seconds: float
    """How long what a pod told stands."""
    timeout_seconds: float
    """Longest wait for one pod, connecting included."""
    _remembered: dict[tuple[str, str], _Remembered] = field(default_factory=dict)

    async def look(self, namespace: str, name: str, wish: PrefixWish, seen: PrefixSeen) -> EngineHits | None:
        """Return what the engine's pods told, now or lately; None where they are not to be asked."""
        layer, key = wish.layer, (namespace, name)
        if layer.metrics is not None and not layer.metrics.enabled:
            self.forget(namespace, name)
            return None
        now, reader = self.monotonic(), (wish.ref, wish.engine, layer.metrics)
        last = self._remembered.get(key)
        if last is not None and last.reader == reader and now < last.at + self.interval_seconds:
            return last.history.told(wish.engine, last.problem, None)
        if last is None or last.reader != reader:
            last = self._remembered[key] = _Remembered(reader, now)
        pods = _asked(seen.pods)
        answers = await _ask_all(pods, wish, self.timeout_seconds)
        told = {uid: each for uid, each in answers.items() if isinstance(each, PrefixCounts)}
        living = frozenset(str(pod["metadata"]["uid"]) for pod in seen.pods)
        news = last.history.take(told, living, now)
        last.at = now
        last.problem = next((each for each in answers.values() if isinstance(each, str)), "")
        return last.history.told(wish.engine, last.problem, news)

    def forget(self, namespace: str, name: str) -> None:
        """Forget an object that is gone, or has no such layer any more."""
        self._remembered.pop((namespace, name), None)


def _asked(pods: Sequence[Pod]) -> list[Pod]:
    """Choose pods that run and have an address."""
    running = [
        pod
        for pod in pods
        if (pod.get("status") or {}).get("phase") == "Running" and pod["status"].get("podIP")
    ]
    return sorted(running, key=lambda pod: str(pod["metadata"]["name"]))[:MOST_PODS]


async def _ask_all(
    pods: Sequence[Pod], wish: PrefixWish, timeout_seconds: float
) -> dict[str, PrefixCounts | str]:
    """Return what each pod counted, or why it did not tell, by uid."""
    if not pods:
        return {}
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    # Nothing is unpacked: a small answer could become a huge one.
    headers = {"Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers, auto_decompress=False) as client:
        answers = await asyncio.gather(*(_ask(client, pod, wish) for pod in pods))
    return {str(pod["metadata"]["uid"]): each for pod, each in zip(pods, answers, strict=True)}


def place_of(pod: Pod, wish: PrefixWish) -> MetricsPlace:
    """Return where a pod is asked."""
    container = engine_container(pod["spec"]["containers"], wish.ref.container)
    port = wish.layer.metrics.port if wish.layer.metrics is not None else None
    return metrics_place(wish.engine, words_of(container) if container is not None else [], port)


def url_of(pod: Pod, wish: PrefixWish, path: str) -> str:
    """Return the address of an endpoint of a pod that has one."""
    address = str(pod["status"]["podIP"])
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{place_of(pod, wish).port}{path}"


async def _ask(client: aiohttp.ClientSession, pod: Pod, wish: PrefixWish) -> PrefixCounts | str:
    place = place_of(pod, wish)
    where = f"port {place.port}, {place.path}"
    try:
        async with client.get(url_of(pod, wish, place.path), allow_redirects=False) as response:
            if response.status != HTTPStatus.OK:
                return f"{where} answers with status {response.status}"
            content = await _bounded(response.content)
    except TimeoutError:
        return f"{where} gives no answer in time"
    except aiohttp.ClientConnectorError:
        return f"{where} takes no connection"
    except aiohttp.ClientError:
        return f"{where} does not speak HTTP"
    if content is None:
        return f"{where} answers with more than {MOST_BYTES // 1024} KiB"
    counts = read_counts(wish.engine, content.decode(errors="replace"))
    return counts if counts is not None else f"{where} says nothing of a prefix cache"


async def _bounded(stream: aiohttp.StreamReader) -> bytes | None:
    """Read an answer; None where it is too long."""
    content = bytearray()
    async for chunk in stream.iter_chunked(64 * 1024):
        content += chunk
        if len(content) > MOST_BYTES:
            return None
    return bytes(content)
