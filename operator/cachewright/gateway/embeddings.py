"""`/v1/embeddings`: from a request to an answer whose vectors are looked up one by one, or else computed.

Whatever the cache does, a request gets the vectors that the embedder gives for its inputs, in their order.
Called by the flow for this path; requests for another model go back to it, and upstream.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from cachewright.errors import AmbiguousJson, BodyTooLarge, InvalidJson
from cachewright.gateway.cache_status import bypass_headers, embedding_headers, unsent_headers
from cachewright.gateway.embedding_answers import SourceVectors, answer_of, has_length, read_vectors
from cachewright.gateway.embedding_batch import Batch
from cachewright.gateway.embedding_serving import EmbeddingServing
from cachewright.gateway.embedding_source import SourceAnswer
from cachewright.gateway.exchange import Exchange
from cachewright.gateway.headers import Headers
from cachewright.gateway.metrics import GatewayMetrics, Outcome
from cachewright.gateway.payload import Payload
from cachewright.gateway.reply import Reply, error_reply
from cachewright.gateway.write_queue import WriteQueue
from cachewright.keys.canonical import parse_json, plain_json
from cachewright.keys.digest import tenant_tag
from cachewright.layers.embedding import Computed, Held
from cachewright.layers.exact import Miss
from cachewright.policy.compat import read_body
from cachewright.policy.embeddings import read_request, shared_out
from cachewright.policy.reasons import BypassReason, RefusalReason

LAYER = "embedding"
"""In metrics."""

SHARED_TENANT = b""
"""Whose vectors are, where all tenants share them."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request that may be answered from the cache."""

    exchange: Exchange
    serving: EmbeddingServing
    payload: Payload
    batch: Batch


class Embeddings:
    """Answers requests for embeddings."""

    def __init__(
        self,
        metrics: GatewayMetrics,
        writes: WriteQueue,
        count: Callable[[str, Outcome, Exchange | None], None],
    ) -> None:
        """`count` counts one request by layer and outcome."""
        self._metrics = metrics
        self._writes = writes
        self._count = count
        self._under_way: dict[Miss, asyncio.Future[Computed | None]] = {}
        """What the embedder is being asked for, until it is stored; None where it gave nothing."""

    async def answer(self, exchange: Exchange) -> Reply | tuple[Payload | None, BypassReason]:
        """Answer a request, or return its body and the reason why it is the upstream's.

        Raises BodyTooLarge, ClientGone and UpstreamError.
        """
        serving = exchange.serving.embeddings
        if serving is None or exchange.call.method != "POST":
            return None, BypassReason.METHOD
        limit_bytes = exchange.serving.policy.max_body_bytes
        raw = await exchange.body.read_up_to(limit_bytes)
        if raw is None:
            raise BodyTooLarge("the request body is too large")
        payload = Payload.unpack(raw, exchange.envelope().content_encoding, limit_bytes)
        if payload is None:
            return Payload(raw, raw), BypassReason.ENCODED
        try:
            document = parse_json(payload.plain)
        except InvalidJson:  # also where two readers could see two models in it
            return payload, BypassReason.UNPARSABLE
        if not isinstance(document, dict):
            return payload, BypassReason.UNPARSABLE
        if document.get("model") != serving.model:
            return payload, BypassReason.MODEL
        exchange.body.cancel_when_gone()
        narrowing, stripped = read_body(document)
        if stripped is not None:
            exchange = replace(exchange, narrowing=exchange.narrowing.and_(narrowing))
            document, payload = stripped, payload.rewritten(plain_json(stripped))
        return await self._serve(exchange, serving, payload, document)

    async def _serve(
        self, exchange: Exchange, serving: EmbeddingServing, payload: Payload, document: dict[str, Any]
    ) -> Reply:
        request = read_request(document, serving.dimensions)
        reason = _why_not_looked_up(exchange, serving)
        if request is None or reason is not None:
            return await self._ask_uncached(exchange, payload, reason or BypassReason.UNPARSABLE)
        try:
            asked = _Asked(exchange, serving, payload, Batch.of(request))
            trouble = await self._look_up(asked)
        except AmbiguousJson:
            trouble = BypassReason.AMBIGUOUS_JSON
        if trouble is not None:
            return await self._ask_uncached(exchange, payload, trouble)
        if not asked.batch.missing:
            return self._reply(asked, None, "hit")
        if exchange.wishes.only_cached:
            return self._leave(exchange, BypassReason.CLIENT)
        return await self._complete(asked)

    async def _look_up(self, asked: _Asked) -> BypassReason | None:
        """Fill a batch with what is stored; returns why that cannot be known."""
        exchange, serving, batch = asked.exchange, asked.serving, asked.batch
        tenant = SHARED_TENANT if serving.shared else exchange.asker.tenant or b""
        tag = tenant_tag(exchange.serving.digest_key, tenant)
        controls = {f"control:{name}": list(values) for name, values in exchange.narrowing.partition}
        started, outcome = time.perf_counter(), "failed"
        try:
            looked = await serving.layer.look_up(tag, batch.inputs, {**batch.request.settings, **controls})
            trouble = batch.take(looked)
            if trouble is None:
                self._warm(asked)
                batch.drop_unless(
                    {number: _may_be_served(held, asked) for number, held in batch.vectors.items()}
                )
                outcome = "miss" if batch.missing else "hit"
            return trouble
        finally:
            self._metrics.lookup_seconds.labels(LAYER, outcome).observe(time.perf_counter() - started)

    async def _complete(self, asked: _Asked) -> Reply:
        """Get what is missing: from requests for the same that are under way, or from the embedder."""
        batch, source = asked.batch, asked.serving.source
        joined = {} if asked.exchange.wishes.refresh else self._joined(batch)
        own = [number for number in batch.missing if number not in joined]
        as_sent = batch.is_all_missing and not joined
        computed = None
        if own:
            answer, computed = await self._compute(asked, own, as_sent)
            if as_sent:
                return self._relay(asked, answer)
        for number, future in joined.items():
            if (shared := await asyncio.shield(future)) is not None:
                batch.vectors[number] = shared
        if batch.missing:
            # What the embedder thinks of the request is for it to say, about the request as it was sent.
            return self._relay(asked, await source.ask(asked.exchange, asked.payload.plain))
        return self._reply(asked, computed, "miss" if own else "collapsed")

    def _joined(self, batch: Batch) -> dict[int, asyncio.Future[Computed | None]]:
        under_way = {number: self._under_way.get(batch.places[number].miss) for number in batch.missing}
        return {number: future for number, future in under_way.items() if future is not None}

    async def _compute(
        self, asked: _Asked, numbers: list[int], as_sent: bool
    ) -> tuple[SourceAnswer, SourceVectors | None]:
        """Ask the embedder for some inputs, and store what it gives; None where that cannot be used."""
        batch = asked.batch
        inputs = [batch.inputs[number] for number in numbers]
        body = asked.payload.plain if as_sent else orjson.dumps(batch.request.for_inputs(inputs))
        flights = {number: asyncio.get_running_loop().create_future() for number in numbers}
        self._under_way |= {batch.places[number].miss: flight for number, flight in flights.items()}
        computed: list[Computed] = []
        try:
            started = time.perf_counter()
            answer = await asked.serving.source.ask(asked.exchange, body)
            seconds = time.perf_counter() - started
            vectors = read_vectors(answer, len(numbers), batch.request.dimensions)
            if vectors is not None:
                tokens = vectors.tokens or shared_out(vectors.prompt_tokens, inputs)
                for number, vector, n_tokens in zip(numbers, vectors.vectors, tokens, strict=True):
                    made = Computed(batch.places[number], vector, n_tokens, seconds)
                    batch.vectors[number] = made
                    flights[number].set_result(made)
                    computed.append(made)
            return answer, vectors
        finally:
            for flight in flights.values():
                if not flight.done():
                    flight.set_result(None)
            self._store(asked, computed, flights)

    def _store(
        self, asked: _Asked, computed: list[Computed], flights: dict[int, asyncio.Future[Computed | None]]
    ) -> None:
        """Store vectors off every request's path; until then whoever asks for the same is given them."""
        places, longest = asked.batch.places, asked.exchange.narrowing.ttl_seconds

        def land() -> None:
            for number, flight in flights.items():
                if self._under_way.get(places[number].miss) is flight:
                    del self._under_way[places[number].miss]

        async def write() -> RefusalReason | None:
            try:
                return await asked.serving.layer.write(computed, longest)
            finally:
                land()

        size_bytes = sum(len(each.vector) for each in computed)
        if not computed or not self._writes.offer(write, size_bytes):
            land()

    def _warm(self, asked: _Asked) -> None:
        found = [held for held in asked.batch.held if held.tier == "cold"]
        layer = asked.serving.layer
        if found:
            self._writes.offer(lambda: layer.warm(found), sum(len(held.vector) for held in found))

    def _reply(self, asked: _Asked, computed: SourceVectors | None, outcome: Outcome) -> Reply:
        batch = asked.batch
        self._count_all(asked, outcome)
        model = computed.model if computed else ""
        body = answer_of(batch.in_order(), model or asked.serving.model, batch.request.encoding)
        headers: Headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        return Reply(200, headers + _status(asked, outcome), body)

    def _relay(self, asked: _Asked, answer: SourceAnswer) -> Reply:
        self._count_all(asked, "miss")
        status = embedding_headers(0, len(asked.batch.order))
        return Reply(answer.status, answer.headers + status, answer.body)

    async def _ask_uncached(self, exchange: Exchange, payload: Payload, reason: BypassReason) -> Reply:
        if exchange.wishes.only_cached:
            return self._leave(exchange, reason)
        self._metrics.not_cached.labels(reason).inc()
        serving = exchange.serving.embeddings
        if serving is None:
            raise RuntimeError("there is no embedding layer")
        answer = await serving.source.ask(exchange, payload.plain)
        self._count("none", "bypass", exchange)
        return Reply(answer.status, answer.headers + bypass_headers(reason), answer.body)

    def _leave(self, exchange: Exchange, reason: BypassReason) -> Reply:
        self._count("none", "refused", exchange)
        message = "only stored vectors are wanted, and some are not"
        return error_reply(504, "not_cached", message, unsent_headers(reason))

    def _count_all(self, asked: _Asked, outcome: Outcome) -> None:
        self._count(LAYER, outcome, asked.exchange)
        for vector in asked.batch.vectors.values():
            tier = vector.tier if isinstance(vector, Held) else "computed"
            self._metrics.embedding_inputs.labels(tier).inc()
            if isinstance(vector, Held):
                self._metrics.saved_tokens.labels(LAYER, "prompt").inc(vector.n_tokens)


def _why_not_looked_up(exchange: Exchange, serving: EmbeddingServing) -> BypassReason | None:
    envelope = exchange.envelope()
    if envelope.no_store:
        return BypassReason.CLIENT
    if envelope.is_cross_origin:
        return BypassReason.CROSS_ORIGIN
    if not envelope.has_tenant:
        return BypassReason.NO_TENANT
    return None if serving.is_trusted() else BypassReason.EMBEDDER_MISMATCH


def _may_be_served(held: Held | Computed, asked: _Asked) -> bool:
    """Tell whether a stored vector is what was asked for, and as young as the client wants it."""
    if not isinstance(held, Held) or not has_length(held.vector, asked.batch.request.dimensions):
        return False
    wishes = asked.exchange.wishes
    if held.tier == "cold" and wishes.max_age_seconds is not None:
        return False  # nobody knows how old it is
    return wishes.allow(held.age_seconds)


def _status(asked: _Asked, outcome: Outcome) -> Headers:
    held = asked.batch.held
    ttls = [each.ttl_seconds for each in held if each.ttl_seconds is not None]
    return embedding_headers(
        asked.batch.n_found,
        len(asked.batch.order),
        ttl_seconds=min(ttls, default=None) if len(ttls) == len(held) else None,
        age_seconds=max((each.age_seconds for each in held), default=0.0),
        collapsed=outcome == "collapsed",
    )
