"""The flow of a request: path, who asks, cacheable?, key, exact layer, then the cache or the upstream.

It works on plain values and streams of bytes; `gateway.app` translates HTTP to them and back. Whatever the
cache does, a request is answered as if it were not there, at most a budget later.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import structlog

from cachewright.errors import (
    AmbiguousJson,
    BodyTooLarge,
    ClientGone,
    InvalidJson,
    UpstreamError,
    UpstreamTimedOut,
)
from cachewright.gateway.asker import NOBODY, Asker, identify
from cachewright.gateway.cache_status import bypass_headers, unsent_headers
from cachewright.gateway.embeddings import Embeddings
from cachewright.gateway.exchange import Call, Exchange, narrowing_of
from cachewright.gateway.fetching import Fetching, Lost
from cachewright.gateway.flights import Flight, Key
from cachewright.gateway.headers import Headers, content_length, end_to_end
from cachewright.gateway.metrics import GatewayMetrics, Outcome
from cachewright.gateway.paths import MethodRefused, PathRefused, judge_path
from cachewright.gateway.payload import Payload
from cachewright.gateway.reply import Reply, error_reply
from cachewright.gateway.request_body import RequestBody
from cachewright.gateway.salted_body import read_to_salt
from cachewright.gateway.serving import Serving
from cachewright.gateway.similarity import Similarity
from cachewright.gateway.upstream import Outgoing, UpstreamAnswer
from cachewright.gateway.write_queue import WriteQueue
from cachewright.keys.canonical import parse_json, plain_json
from cachewright.keys.digest import exact_digest, tenant_tag
from cachewright.keys.embedding import EMBEDDINGS_PATH
from cachewright.keys.generations import Dependence
from cachewright.layers.exact import Hit, Miss
from cachewright.layers.similar import NoMatch
from cachewright.policy.answers import Delivery
from cachewright.policy.cacheable import find_route, why_not_cached
from cachewright.policy.compat import read_body
from cachewright.policy.reasons import BypassReason
from cachewright.policy.sampling import FORCED_HEADER, FORCED_VALUE, forced

_log = structlog.get_logger(__name__)


class Flow:
    """Answers requests with whatever configuration is in use when they begin."""

    def __init__(self, metrics: GatewayMetrics, writes: WriteQueue, semantic_writes: WriteQueue) -> None:
        self._metrics = metrics
        self._similarity = Similarity(metrics, writes, semantic_writes)
        self._fetching = Fetching(metrics, writes, self._similarity)
        self._embeddings = Embeddings(metrics, writes, self._count)
        self.serving: Serving | None = None
        """None until the mounted files were read once."""

    async def answer(self, call: Call, body: RequestBody) -> Reply:
        """Answer one request; raises ClientGone, and nothing else on purpose."""
        exchange = self._admit(call, body)
        if isinstance(exchange, Reply):
            self._count("none", "refused", None)
            return exchange
        try:
            return await self._serve(exchange)
        except BodyTooLarge:
            self._count("none", "refused", exchange)
            return _too_large(exchange.serving)
        except UpstreamError as e:
            if body.gone:
                raise ClientGone(str(e)) from e
            if body.too_large:
                self._count("none", "refused", exchange)
                return _too_large(exchange.serving)
            self._count("none", "upstream_error", exchange)
            timed_out = isinstance(e, UpstreamTimedOut)
            return error_reply(
                504 if timed_out else 502, "upstream_timeout" if timed_out else "upstream_unreachable", str(e)
            )

    def _admit(self, call: Call, body: RequestBody) -> Exchange | Reply:
        serving = self.serving
        if serving is None:
            return error_reply(503, "not_ready", "the gateway has not read its configuration yet")
        verdict = judge_path(call.method, call.raw_path, serving.policy.upstream.allowed_paths)
        if isinstance(verdict, PathRefused):
            return error_reply(
                404,
                "path_not_allowed",
                "this path is neither inference nor named in the InferenceCache's upstream.allowedPaths",
            )
        if isinstance(verdict, MethodRefused):
            return error_reply(
                405,
                "method_not_allowed",
                f"this path takes {verdict.allowed} only",
                [(b"allow", verdict.allowed.encode())],
            )
        asker: Asker | Reply = NOBODY
        if call.method != "OPTIONS":  # browsers ask without credentials whether they may send them
            asker = identify(call.headers, serving.policy.tenancy, serving.api_keys)
        if isinstance(asker, Reply):
            return asker
        if (content_length(call.headers) or 0) > serving.policy.max_body_bytes:
            return _too_large(serving)
        route = find_route(verdict.path, serving.policy)
        return Exchange(call, body, serving, verdict.path, asker, route, narrowing_of(call.headers))

    async def _serve(self, exchange: Exchange) -> Reply:
        if exchange.serving.embeddings is not None and exchange.path == EMBEDDINGS_PATH:
            answered = await self._embeddings.answer(exchange)
            return answered if isinstance(answered, Reply) else await self._pass_on(exchange, *answered)
        exchange, payload, request = await self._read(exchange)
        if isinstance(request, BypassReason) or payload is None:
            reason = request if isinstance(request, BypassReason) else BypassReason.TOO_LARGE
            return await self._pass_on(exchange, payload, reason)
        if not exchange.is_forced:
            return await self._serve_cacheable(exchange, payload, request)
        request = forced(request)
        try:
            written = payload.rewritten(plain_json(request))
        except AmbiguousJson:
            return await self._pass_on(exchange, payload, BypassReason.AMBIGUOUS_JSON)
        reply = await self._serve_cacheable(exchange, written, request)
        reply.headers.append((FORCED_HEADER.encode(), FORCED_VALUE.encode()))
        return reply

    async def _serve_cacheable(self, exchange: Exchange, payload: Payload, request: dict[str, Any]) -> Reply:
        looked = await self._look_up(exchange, request)
        if isinstance(looked, BypassReason):
            return await self._pass_on(exchange, payload, looked)
        found, delivery = looked.found, Delivery.of(request)
        if isinstance(found, Hit):
            found = self._fetching.fresher(looked.key, found)
        if found is None:
            return await self._fetch_in_trouble(exchange, payload, request, looked)
        detail = await self._why_not_served(exchange, found)
        if isinstance(found, Hit) and detail is None:
            reply = self._fetching.replay(exchange, found, delivery)
            if reply is not None:
                return reply
        place = found.place if isinstance(found, Hit) else found
        unlike = await self._find_similar(exchange, request, looked, place, detail)
        if isinstance(unlike, Reply):
            return unlike
        if exchange.wishes.only_cached:
            return self._leave(exchange, detail or BypassReason.CLIENT)
        may_follow = detail is not BypassReason.CREDENTIAL or exchange.is_alone_with_its_key
        return await self._fetching.fetch(
            Lost(exchange, payload, request, looked.key, place, delivery, detail, may_follow, unlike),
            looked.seen,
        )

    async def _find_similar(
        self,
        exchange: Exchange,
        request: dict[str, Any],
        looked: _Looked,
        place: Miss,
        detail: BypassReason | None,
    ) -> Reply | NoMatch | None:
        """Answer with what a similar question got, or say why not, and how to keep what comes instead."""
        if self._fetching.flights.at(looked.key) is not None:
            return None  # whoever began that flight has looked, and will keep what it brings
        if detail is not None:
            return self._similarity.prepare(exchange, request, looked.dependence, place)
        left_seconds = exchange.serving.policy.total_budget_seconds - (time.perf_counter() - looked.started)
        found = await self._similarity.look_up(exchange, request, looked.dependence, place, left_seconds)
        if not isinstance(found, Hit):
            return found
        if await self._why_not_served(exchange, found) is None:
            reply = self._fetching.replay(exchange, found, Delivery.of(request))
            if reply is not None:
                self._similarity.back_fill(exchange, place, found)
                return reply
        return self._similarity.prepare(exchange, request, looked.dependence, place)

    async def _fetch_in_trouble(
        self, exchange: Exchange, payload: Payload, request: dict[str, Any], looked: _Looked
    ) -> Reply:
        """Ask the upstream where the store gives no answer, still once for all who ask at the same time."""
        reason = BypassReason.STORE
        if exchange.wishes.only_cached:
            return self._leave(exchange, reason)
        self._metrics.not_cached.labels(reason).inc()
        is_known = exchange.serving.credentials is None or exchange.is_alone_with_its_key
        may_follow = is_known and exchange.wishes.allow(0)
        lost = Lost(
            exchange, payload, request, looked.key, None, Delivery.of(request), reason, may_follow=may_follow
        )
        return await self._fetching.fetch(lost, looked.seen)

    async def _read(
        self, exchange: Exchange
    ) -> tuple[Exchange, Payload | None, dict[str, Any] | BypassReason]:
        """Read the body if it may be cached: its bytes, where they were read whole, and what they say.

        The exchange that is returned knows of the controls in the body, which are taken out of it.
        """
        policy = exchange.serving.policy
        envelope = exchange.envelope()
        if reason := why_not_cached(envelope, None, policy):
            return exchange, None, reason
        raw = await exchange.body.read_up_to(policy.max_cacheable_body_bytes)
        if raw is None:
            return exchange, None, BypassReason.TOO_LARGE
        payload = Payload.unpack(raw, envelope.content_encoding, policy.max_cacheable_body_bytes)
        if payload is None:
            return exchange, Payload(raw, raw), BypassReason.ENCODED
        try:
            request = parse_json(payload.plain)
            if not isinstance(request, dict):
                return exchange, payload, BypassReason.UNPARSABLE
            narrowing, stripped = read_body(request)
            if stripped is not None:
                exchange = replace(exchange, narrowing=exchange.narrowing.and_(narrowing))
                envelope = exchange.envelope()
                request, payload = stripped, payload.rewritten(plain_json(stripped))
        except AmbiguousJson:
            return exchange, payload, BypassReason.AMBIGUOUS_JSON
        except InvalidJson:
            return exchange, payload, BypassReason.UNPARSABLE
        return exchange, payload, why_not_cached(envelope, request, policy) or request

    async def _look_up(self, exchange: Exchange, request: dict[str, Any]) -> _Looked | BypassReason:
        serving = exchange.serving
        tenant = exchange.asker.tenant
        if serving.exact is None or tenant is None:
            return BypassReason.DISABLED if serving.exact is None else BypassReason.NO_TENANT
        started, outcome = time.perf_counter(), "failed"
        try:
            tag = tenant_tag(serving.digest_key, tenant)
            dependence = exchange.dependence(tag, request)
            digest = exact_digest(serving.digest_key, tag, dependence.question)
            # Taken before the look-up: an answer that is stored meanwhile is in one of the two places.
            seen = self._fetching.flights.at((tag, digest))
            found = await serving.exact.look_up(tag, digest, dependence)
            if found is BypassReason.STORE:
                return _Looked((tag, digest), seen, None, dependence, started)
            if isinstance(found, BypassReason):
                return found
            outcome = "hit" if isinstance(found, Hit) else "miss"
            return _Looked((tag, digest), seen, found, dependence, started)
        except AmbiguousJson:
            return BypassReason.AMBIGUOUS_JSON
        except Exception:  # noqa: BLE001 - the cache's edge: a fault of ours must not become the client's
            _log.exception("look_up_failed", cache=serving.policy.cache)
            return BypassReason.STORE
        finally:
            self._metrics.lookup_seconds.labels("exact", outcome).observe(time.perf_counter() - started)

    async def _why_not_served(self, exchange: Exchange, found: Hit | Miss) -> BypassReason | None:
        """Say why a stored answer is not served, or would not be if there were one."""
        credentials, wishes = exchange.serving.credentials, exchange.wishes
        is_at_stake = isinstance(found, Hit) or not exchange.is_alone_with_its_key
        if (
            credentials is not None
            and is_at_stake
            and not await credentials.is_accepted(exchange.asker.credential)
        ):
            self._metrics.not_cached.labels(BypassReason.CREDENTIAL).inc()
            return BypassReason.CREDENTIAL
        is_allowed = wishes.allow(found.age_seconds if isinstance(found, Hit) else 0)
        # How similar the questions were is not kept with the copy of another question's answer.
        is_copy = isinstance(found, Hit) and bool(found.entry.source)
        is_allowed = is_allowed and not (is_copy and exchange.wants_more_similar)
        return None if is_allowed else BypassReason.CLIENT

    def _leave(self, exchange: Exchange, reason: BypassReason) -> Reply:
        """Answer a client that wants a stored answer or none, when there is none for it."""
        self._count("none", "refused", exchange)
        return error_reply(
            504, "not_cached", "only a stored answer is wanted, and there is none", unsent_headers(reason)
        )

    async def _pass_on(self, exchange: Exchange, payload: Payload | None, reason: BypassReason) -> Reply:
        """Relay as it comes, both ways."""
        if exchange.wishes.only_cached:
            return self._leave(exchange, reason)
        if exchange.takes_salt:
            readable = await read_to_salt(exchange, payload)
            if isinstance(readable, Reply):
                self._count("none", "refused", exchange)
                return readable
            payload = readable
        self._metrics.not_cached.labels(reason).inc()
        answer = await self._send(exchange, exchange.outgoing(payload))
        self._count("none", "bypass", exchange)
        return _relayed(answer, bypass_headers(reason), answer.chunks())

    async def _send(self, exchange: Exchange, outgoing: Outgoing) -> UpstreamAnswer:
        exchange.body.cancel_when_gone()
        started = time.perf_counter()
        answer = await exchange.serving.upstream.send(outgoing)
        self._metrics.observe_upstream(answer.status, time.perf_counter() - started)
        exchange.heard(answer.status)
        return answer

    def _count(self, layer: str, outcome: Outcome, exchange: Exchange | None) -> None:
        self._fetching.count(layer, outcome, exchange)

    async def aclose(self) -> None:
        """Give up what is still on its way."""
        await self._fetching.flights.aclose()


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a look-up found, and what it takes to fetch what it did not."""

    key: Key
    seen: Flight | None
    """The flight that was open when it began."""
    found: Hit | Miss | None
    """None: the store gave no answer within the budget."""
    dependence: Dependence
    started: float
    """Of the performance counter."""


def _relayed(answer: UpstreamAnswer, added: Headers, parts: AsyncIterator[bytes]) -> Reply:
    return Reply(answer.status, _reply_headers(answer) + added, parts=parts, close=answer.close)


def _reply_headers(answer: UpstreamAnswer) -> Headers:
    return end_to_end(answer.headers, {b"date"})  # the server in front of us writes its own


def _too_large(serving: Serving) -> Reply:
    return error_reply(
        413,
        "request_too_large",
        f"the request body is larger than {serving.policy.max_body_bytes} bytes",
        [(b"connection", b"close")],
    )
