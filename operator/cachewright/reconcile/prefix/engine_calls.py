"""What is asked of an engine's pods themselves in a pass: their metrics, and to empty their caches. IO.

Called by service after everything of the pass was written, as nothing that is written waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cachewright.reconcile.prefix.flush import flush_of
from cachewright.reconcile.prefix.flushing import EngineFlushes
from cachewright.reconcile.prefix.scraping import EngineScrapes
from cachewright.reconcile.prefix.wish import PrefixWish, prefix_wish
from cachewright.reconcile.state import Observed, Plan


class EngineCalls:
    """Calls of the engines of all objects."""

    def __init__(
        self, monotonic: Callable[[], float], interval_seconds: float, timeout_seconds: float
    ) -> None:
        self._scrapes = EngineScrapes(monotonic, interval_seconds, timeout_seconds)
        self._flushes = EngineFlushes(timeout_seconds)

    async def hear(self, observed: Observed, planned: Plan) -> Observed:
        """Add what the engine's pods tell of their prefix caches."""
        wish, seen, (namespace, name) = _wish(planned), observed.prefix, _key(observed)
        if wish is None or seen is None:
            self.forget(namespace, name)
            return observed
        hits = await self._scrapes.look(namespace, name, wish, seen)
        return replace(observed, prefix=replace(seen, hits=hits))

    async def flush(self, observed: Observed, planned: Plan) -> Observed:
        """Have the engine's pods empty their prefix caches, where a switch is over and they have not yet."""
        wish, seen, (namespace, name) = _wish(planned), observed.prefix, _key(observed)
        before = (observed.document.get("status") or {}).get("prefix") or {}
        flush = flush_of(wish, planned.record, before.get("flushed"))
        if wish is None or seen is None or seen.problem or flush is None or not flush.is_due:
            return observed
        came = await self._flushes.flush(namespace, name, wish, seen, flush)
        return replace(observed, prefix=replace(seen, flush=came))

    def forget(self, namespace: str, name: str) -> None:
        """Forget an object that is gone, or has no engine any more."""
        self._scrapes.forget(namespace, name)
        self._flushes.forget(namespace, name)


def _wish(planned: Plan) -> PrefixWish | None:
    return prefix_wish(planned.cache.spec if planned.cache is not None else None)


def _key(observed: Observed) -> tuple[str, str]:
    return str(observed.document["metadata"]["namespace"]), observed.name
