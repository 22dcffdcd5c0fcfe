"""Similarity: the semantic layer as the flow of requests uses it, with everything that is counted about it.

Called by the flow once the exact layer has missed, and by `fetching` once the upstream has answered.
"""

from __future__ import annotations

import time
from typing import Any, Final

import structlog

from cachewright.errors import AmbiguousJson
from cachewright.gateway.exchange import Exchange
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.semantics import Semantics
from cachewright.gateway.write_queue import WriteQueue
from cachewright.keys.generations import Dependence
from cachewright.layers.exact import Hit, Miss
from cachewright.layers.similar import Asked, Draft, NoMatch
from cachewright.policy.answers import KeptAnswer
from cachewright.policy.document import RoutePolicy
from cachewright.policy.question import find_question
from cachewright.policy.reasons import RefusalReason, SemanticReason, SemanticRefusal

LEAST_BUDGET_SECONDS: Final = 0.001
"""Left for this layer even where the exact one has taken all of it."""

_log = structlog.get_logger(__name__)


class Similarity:
    """Looks for similar questions, and keeps answers for those to come."""

    def __init__(self, metrics: GatewayMetrics, writes: WriteQueue, semantic_writes: WriteQueue) -> None:
        """`writes` are the exact layer's."""
        self._metrics = metrics
        self._writes = writes
        self._semantic_writes = semantic_writes

    async def look_up(
        self,
        exchange: Exchange,
        request: dict[str, Any],
        dependence: Dependence,
        place: Miss,
        budget_seconds: float,
    ) -> Hit | NoMatch | None:
        """Look for an answer; None where the request's route has no semantic layer. Never raises."""
        semantics, route = exchange.serving.semantics, exchange.route
        if semantics is None or route is None or "Semantic" not in route.layers:
            return None
        started = time.perf_counter()
        try:
            looked = await self._look_up(semantics, exchange, request, dependence, place, budget_seconds)
        except AmbiguousJson:  # the rest of the body has no canonical form
            looked = NoMatch(SemanticReason.NO_QUESTION)
        except Exception:  # noqa: BLE001 - the cache's edge: a fault of ours must not become the client's
            _log.exception("semantic_look_up_failed", cache=exchange.serving.policy.cache)
            looked = NoMatch(SemanticReason.VECTOR_STORE)
        self._count(semantics, looked, time.perf_counter() - started)
        return looked

    def prepare(
        self, exchange: Exchange, request: dict[str, Any], dependence: Dependence, place: Miss
    ) -> NoMatch | None:
        """Prepare to keep an answer where no stored one is wanted; None where the route has no such layer."""
        semantics, route = exchange.serving.semantics, exchange.route
        if semantics is None or route is None or "Semantic" not in route.layers:
            return None
        asked = self._asked(semantics, exchange, route, request, dependence, place)
        if isinstance(asked, SemanticReason):
            return NoMatch(asked)
        try:
            return NoMatch(SemanticReason.NARROWED, semantics.layer.draft(asked))
        except AmbiguousJson:
            return NoMatch(SemanticReason.NO_QUESTION)

    def keep(self, exchange: Exchange, draft: Draft, kept: KeptAnswer, upstream_seconds: float) -> None:
        """Keep an answer soon, or count why not."""
        semantics = exchange.serving.semantics
        if semantics is None:
            return
        keeping, longest_seconds = semantics.keeping, exchange.narrowing.ttl_seconds

        async def write() -> SemanticRefusal | None:
            return await keeping.keep(draft, kept, upstream_seconds, longest_seconds)

        self._semantic_writes.offer(write, len(kept.body))

    def back_fill(self, exchange: Exchange, place: Miss, hit: Hit) -> None:
        """Keep a hit's answer for its new question in the exact layer, soon."""
        semantics, exact = exchange.serving.semantics, exchange.serving.exact
        if semantics is None or exact is None or exchange.wishes.no_store:
            return
        keeping = semantics.keeping

        async def write() -> RefusalReason | None:
            return await keeping.back_fill(exact, place, hit)

        self._writes.offer(write, len(hit.entry.body))

    async def _look_up(
        self,
        semantics: Semantics,
        exchange: Exchange,
        request: dict[str, Any],
        dependence: Dependence,
        place: Miss,
        budget_seconds: float,
    ) -> Hit | NoMatch:
        if exchange.route is None:
            return NoMatch(SemanticReason.NO_QUESTION)
        asked = self._asked(semantics, exchange, exchange.route, request, dependence, place)
        if isinstance(asked, SemanticReason):
            return NoMatch(asked)
        if exchange.narrowing.exact_only:
            return NoMatch(SemanticReason.NARROWED, semantics.layer.draft(asked))
        return await semantics.layer.look_up(asked, max(budget_seconds, LEAST_BUDGET_SECONDS))

    def _asked(
        self,
        semantics: Semantics,
        exchange: Exchange,
        route: RoutePolicy,
        request: dict[str, Any],
        dependence: Dependence,
        place: Miss,
    ) -> Asked | SemanticReason:
        question = find_question(request, route, semantics.policy.max_turns)
        if isinstance(question, SemanticReason):
            return question
        if dependence.question.context.documents and route.question_between is None:
            return SemanticReason.DOCUMENTS
        threshold = max(exchange.declared_threshold, exchange.narrowing.threshold)
        return Asked(question, dependence, place, threshold)

    def _count(self, semantics: Semantics, looked: Hit | NoMatch, seconds: float) -> None:
        is_hit = isinstance(looked, Hit)
        outcome = "hit" if is_hit else "miss"
        self._metrics.lookup_seconds.labels("semantic", outcome).observe(seconds)
        if looked.similarity is not None:
            self._metrics.similarity.labels(outcome).observe(looked.similarity)
        if isinstance(looked, NoMatch):
            self._metrics.semantic_misses.labels(looked.reason).inc()
            for check in looked.refused:
                self._metrics.guard_refusals.labels(check).inc()
            semantics.samples.add(looked.samples)
