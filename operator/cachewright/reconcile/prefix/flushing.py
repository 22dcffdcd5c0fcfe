"""Empty the prefix caches of an engine's pods after a switch, by the engine's own endpoint. IO.

Called by `engine_calls`, only where the object asks for it. An engine that holds blocks for running requests
refuses, and is asked again; a pod that was made after the switch has nothing of before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import aiohttp
import orjson

from cachewright.engines.serving import flush_path
from cachewright.reconcile.prefix.flush import Flush, FlushSeen
from cachewright.reconcile.prefix.scraping import url_of
from cachewright.reconcile.prefix.seen import Pod, PrefixSeen
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.timestamps import from_timestamp

MOST_BYTES: Final = 4096
"""What is read of an answer."""


@dataclass(slots=True)
class EngineFlushes:
    """Which pods were emptied since which switch, by the object's namespace and name."""

    timeout_seconds: float
    """Longest wait for one pod; emptying takes an engine milliseconds."""
    _done: dict[tuple[str, str], tuple[str, set[str]]] = field(default_factory=dict)

    async def flush(
        self, namespace: str, name: str, wish: PrefixWish, seen: PrefixSeen, flush: Flush
    ) -> FlushSeen:
        """Ask the pods that still hold what was computed before the switch; tell how far it came."""
        key = (namespace, name)
        switch, done = self._done.get(key, ("", set[str]()))
        if switch != flush.switch:
            done = set()
            self._done[key] = (flush.switch, done)
        left = [pod for pod in seen.pods if _is_older(pod, flush) and str(pod["metadata"]["uid"]) not in done]
        problems = dict(zip(map(_uid, left), await _ask_all(left, wish, self.timeout_seconds), strict=True))
        done |= {uid for uid, problem in problems.items() if not problem}
        refused = [problem for problem in problems.values() if problem]
        return FlushSeen(flush.switch, len(refused), refused[0] if refused else "")

    def forget(self, namespace: str, name: str) -> None:
        """Forget an object that is gone."""
        self._done.pop((namespace, name), None)


def _uid(pod: Pod) -> str:
    return str(pod["metadata"]["uid"])


def _is_older(pod: Pod, flush: Flush) -> bool:
    """Tell whether a pod may hold anything of before; one of the same second may."""
    created = from_timestamp(str(pod["metadata"].get("creationTimestamp", "")))
    since = from_timestamp(flush.since)
    return created is None or since is None or created <= since


async def _ask_all(pods: Sequence[Pod], wish: PrefixWish, timeout_seconds: float) -> list[str]:
    if not pods:
        return []
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as client:
        return list(await asyncio.gather(*(_ask(client, pod, wish) for pod in pods)))


async def _ask(client: aiohttp.ClientSession, pod: Pod, wish: PrefixWish) -> str:
    """Return why a pod did not empty its cache; empty where it did."""
    path = flush_path(wish.engine)
    name = pod["metadata"]["name"]
    if not (pod.get("status") or {}).get("podIP"):
        return f"pod {name} has no address yet"
    try:
        async with client.post(url_of(pod, wish, path), allow_redirects=False) as response:
            content = await response.content.read(MOST_BYTES)
    except (TimeoutError, aiohttp.ClientError):
        return f"pod {name} gives no answer at {path}"
    if response.status != HTTPStatus.OK:
        return f"pod {name} answers {path} with status {response.status}"
    return f"pod {name} has requests that hold blocks" if _is_refusal(content) else ""


def _is_refusal(content: bytes) -> bool:
    """Read `{"success": false}`; older engines answer with nothing, and others with a sentence."""
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return isinstance(answer, dict) and answer.get("success") is False
