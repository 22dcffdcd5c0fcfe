"""The flow of a request: path, who asks, cacheable?, key, exact layer, upstream, validate, store, reply.

It works on plain values and streams of bytes; `gateway.app` translates HTTP to them and back. Whatever the
cache does, a request is answered as if it were not there, at most a budget later.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
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
from cachewright.gateway.asker import identify
from cachewright.gateway.cache_status import forward_headers, hit_headers
from cachewright.gateway.exchange import Call, Exchange
from cachewright.gateway.headers import Headers, content_length, end_to_end, first_of
from cachewright.gateway.metrics import GatewayMetrics, Outcome
from cachewright.gateway.paths import MethodRefused, PathRefused, judge_path
from cachewright.gateway.reply import Reply, error_reply
from cachewright.gateway.request_body import RequestBody
from cachewright.gateway.serving import Serving
from cachewright.gateway.upstream import Outgoing, UpstreamAnswer
from cachewright.gateway.write_queue import WriteQueue
from cachewright.keys.canonical import parse_json, plain_json
from cachewright.keys.digest import exact_digest, tenant_tag
from cachewright.layers.exact import ExactLayer, Hit, Miss
from cachewright.policy.cacheable import find_route, why_not_cached
from cachewright.policy.reasons import BypassReason, RefusalReason
from cachewright.policy.sampling import FORCED_HEADER, FORCED_VALUE, forced
from cachewright.policy.validate import Answer, storable_body

_log = structlog.get_logger(__name__)


class Flow:
    """Answers requests with whatever configuration is in use when they begin."""

    def __init__(self, metrics: GatewayMetrics, writes: WriteQueue) -> None:
        self._metrics = metrics
        self._writes = writes
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
        asker = identify(call.headers, serving.policy.tenancy, serving.api_keys)
        if isinstance(asker, Reply):
            return asker
        if (content_length(call.headers) or 0) > serving.policy.max_body_bytes:
            return _too_large(serving)
        return Exchange(call, body, serving, verdict.path, asker, find_route(verdict.path, serving.policy))

    async def _serve(self, exchange: Exchange) -> Reply:
        raw, request = await self._read(exchange)
        if isinstance(request, BypassReason):
            return await self._pass_on(exchange, raw, request)
        if not exchange.is_forced:
            return await self._serve_cacheable(exchange, raw, request)
        request = forced(request)
        try:
            written = plain_json(request)
        except AmbiguousJson:
            return await self._pass_on(exchange, raw, BypassReason.AMBIGUOUS_JSON)
        reply = await self._serve_cacheable(exchange, written, request)
        reply.headers.append((FORCED_HEADER.encode(), FORCED_VALUE.encode()))
        return reply

    async def _serve_cacheable(self, exchange: Exchange, raw: bytes | None, request: dict[str, Any]) -> Reply:
        found = await self._look_up(exchange, request)
        if isinstance(found, BypassReason):
            return await self._pass_on(exchange, raw, found)
        if isinstance(found, Hit) and not exchange.refreshes:
            return self._replay(exchange, found)
        place = found.place if isinstance(found, Hit) else found
        return await self._fetch(exchange, raw, request, place)

    async def _read(self, exchange: Exchange) -> tuple[bytes | None, dict[str, Any] | BypassReason]:
        """Read the body if it may be cached: its bytes as far as they were read, and what they say."""
        policy = exchange.serving.policy
        envelope = exchange.envelope()
        if reason := why_not_cached(envelope, None, policy):
            return None, reason
        raw = await exchange.body.read_up_to(policy.max_cacheable_body_bytes)
        if raw is None:
            return None, BypassReason.TOO_LARGE
        try:
            request = parse_json(raw)
        except AmbiguousJson:
            return raw, BypassReason.AMBIGUOUS_JSON
        except InvalidJson:
            return raw, BypassReason.UNPARSABLE
        if not isinstance(request, dict):
            return raw, BypassReason.UNPARSABLE
        return raw, why_not_cached(envelope, request, policy) or request

    async def _look_up(self, exchange: Exchange, request: dict[str, Any]) -> Hit | Miss | BypassReason:
        serving = exchange.serving
        tenant = exchange.asker.tenant
        if serving.exact is None or tenant is None:
            return BypassReason.DISABLED if serving.exact is None else BypassReason.NO_TENANT
        started = time.perf_counter()
        try:
            tag = tenant_tag(serving.digest_key, tenant)
            dependence = exchange.dependence(tag, request)
            digest = exact_digest(serving.digest_key, tag, dependence.question)
            return await serving.exact.look_up(tag, digest, dependence)
        except AmbiguousJson:
            return BypassReason.AMBIGUOUS_JSON
        except Exception:  # noqa: BLE001 - the cache's edge: a fault of ours must not become the client's
            _log.exception("look_up_failed", cache=serving.policy.cache)
            return BypassReason.STORE
        finally:
            self._metrics.lookup_seconds.labels("exact").observe(time.perf_counter() - started)

    def _replay(self, exchange: Exchange, hit: Hit) -> Reply:
        self._count("exact", "hit", exchange)
        body = hit.entry.body
        return Reply(
            200,
            [
                (b"content-type", hit.entry.content_type.encode("latin-1")),
                (b"content-length", str(len(body)).encode()),
                *hit_headers(hit),
            ],
            body,
        )

    async def _pass_on(self, exchange: Exchange, raw: bytes | None, reason: BypassReason) -> Reply:
        """Relay as it comes, both ways."""
        self._metrics.not_cached.labels(reason).inc()
        answer = await self._send(exchange, exchange.outgoing(raw))
        self._count("none", "bypass", exchange)
        return _relayed(answer, forward_headers(reason), answer.chunks())

    async def _fetch(
        self, exchange: Exchange, raw: bytes | None, request: dict[str, Any], place: Miss
    ) -> Reply:
        """Relay the answer to a miss, and store it if it may be stored."""
        answer = await self._send(exchange, exchange.outgoing(raw, plain_answer=True))
        keeping = _Keeping(self, exchange, request, place, answer)
        status = forward_headers(None, refreshed=exchange.refreshes)
        length = content_length(answer.headers)
        if answer.status != 200 or length is None or length > keeping.limit_bytes:
            # Errors, chunks of unknown number and what is too large go out as they come.
            reply = _relayed(answer, status, keeping.chunks())
        else:
            try:
                body = b"".join([chunk async for chunk in keeping.chunks()])
            finally:
                answer.close()
            reply = Reply(answer.status, _reply_headers(answer) + status, body)
        self._count("exact", "miss", exchange)
        return reply

    async def _send(self, exchange: Exchange, outgoing: Outgoing) -> UpstreamAnswer:
        exchange.body.cancel_when_gone()
        started = time.perf_counter()
        answer = await exchange.serving.upstream.send(outgoing)
        self._metrics.upstream_seconds.observe(time.perf_counter() - started)
        return answer

    def keep(self, exchange: Exchange, request: dict[str, Any], place: Miss, answer: Answer) -> None:
        """Store the whole answer to a miss, off the request's path, or count why not."""
        body = storable_body(answer, request, exchange.path, exchange.serving.policy)
        exact: ExactLayer | None = exchange.serving.exact
        if isinstance(body, RefusalReason):
            self.refuse(body)
        elif exact is not None:
            self._writes.offer(lambda: exact.write(place, answer.content_type, body), len(body))

    def refuse(self, reason: RefusalReason) -> None:
        """Count an answer that is not stored."""
        self._metrics.not_stored.labels(reason).inc()

    def _count(self, layer: str, outcome: Outcome, exchange: Exchange | None) -> None:
        route = exchange.route.name if exchange and exchange.route else "none"
        self._metrics.requests.labels(layer, outcome, route).inc()


class _Keeping:
    """Collects an answer while it passes through, and hands it to `Flow.keep` when it has ended well."""

    def __init__(
        self, flow: Flow, exchange: Exchange, request: dict[str, Any], place: Miss, answer: UpstreamAnswer
    ) -> None:
        self._flow = flow
        self._exchange = exchange
        self._request = request
        self._place = place
        self._answer = answer
        self.limit_bytes = exchange.serving.policy.max_cacheable_body_bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body as it arrives; what is kept is handed over before the last byte is due."""
        collected: list[bytes] = []
        size_bytes = 0
        async for chunk in self._answer.chunks():
            size_bytes += len(chunk)
            if size_bytes <= self.limit_bytes:
                collected.append(chunk)
            else:
                collected.clear()
            yield chunk
        if size_bytes > self.limit_bytes:
            self._flow.refuse(RefusalReason.TOO_LARGE)
        else:
            whole = _judgeable(self._answer, b"".join(collected))
            self._flow.keep(self._exchange, self._request, self._place, whole)


def _judgeable(answer: UpstreamAnswer, body: bytes) -> Answer:
    return Answer(
        answer.status,
        first_of(answer.headers, b"content-type").decode("latin-1"),
        first_of(answer.headers, b"content-encoding").decode("latin-1").lower(),
        body,
    )


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
