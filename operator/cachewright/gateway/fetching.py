"""Fetching: from a miss to an answer by one upstream call, shared by all who miss the same meanwhile.

The first to miss leads; whoever comes until its answer is stored follows, whether it wants a stream or not.
A leader that fails takes nobody along: its followers begin again, and the first of them leads. Errors and
answers that are not the model's are therefore never shared; what ended well is. Called by the flow.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from cachewright.errors import UpstreamError, UpstreamUnreachable
from cachewright.gateway.cache_status import bypass_headers, hit_headers, miss_headers, nearness_headers
from cachewright.gateway.exchange import Exchange
from cachewright.gateway.flights import Flight, Flights, Head, Key, Landing, Reader
from cachewright.gateway.headers import Headers, content_length, end_to_end, first_of
from cachewright.gateway.intake import Intake
from cachewright.gateway.metrics import GatewayMetrics, Outcome
from cachewright.gateway.payload import Payload
from cachewright.gateway.reply import Reply
from cachewright.gateway.similarity import Similarity
from cachewright.gateway.upstream import UpstreamAnswer
from cachewright.gateway.write_queue import WriteQueue
from cachewright.keys.entry_id import entry_id
from cachewright.keys.entry_link import unpack_links
from cachewright.layers.entry import Entry
from cachewright.layers.exact import ExactLayer, Hit, Miss
from cachewright.layers.lease import Lease
from cachewright.layers.similar import NoMatch
from cachewright.policy.answers import Delivery, KeptAnswer, deliver, is_event_stream
from cachewright.policy.endpoints import ENDPOINTS
from cachewright.policy.reasons import BypassReason, RefusalReason
from cachewright.policy.stream_request import asking_for_usage
from cachewright.policy.validate import Answer, Judgement, judge_answer, judge_stream

MOST_LEADERS: Final = 2
"""A request whose leaders failed this often asks the upstream by itself, without waiting in line again."""

YOUNG_SECONDS: Final = 0.5
"""How old a flight may be for a request that knows no marks, since the store is in trouble.

A switch or a removal counts as done two seconds after it was written, so what such a request is given was
asked for before.
"""

_FOLLOWERS_LACK: Final = {b"content-length", b"content-type", b"content-encoding", b"set-cookie"}
"""Headers of the leader's answer that its followers get from us, or not at all."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Lost:
    """A request that the cache could not answer."""

    exchange: Exchange
    payload: Payload
    request: dict[str, Any]
    key: Key
    place: Miss | None
    """None: the store gave no answer, so nothing can be stored."""
    delivery: Delivery
    detail: BypassReason | None = None
    """Why it was not answered from the cache, where that may hold an answer."""
    may_follow: bool = True
    """False: the upstream has to judge this client itself before it is given anything."""
    unlike: NoMatch | None = None
    """What the semantic layer had to say, where the route has one."""

    @property
    def limit_bytes(self) -> int:
        """The largest answer that is held or stored."""
        return self.exchange.serving.policy.max_cacheable_body_bytes


class Fetching:
    """Fetches what is not in the cache."""

    def __init__(self, metrics: GatewayMetrics, writes: WriteQueue, similarity: Similarity) -> None:
        self._metrics = metrics
        self._writes = writes
        self._similarity = similarity
        self.flights = Flights()

    async def fetch(self, lost: Lost, seen: Flight | None) -> Reply:
        """Answer a miss; `seen` is the flight that was open when its look-up began.

        Raises UpstreamError where the upstream gives no answer.
        """
        lost.exchange.body.cancel_when_gone()
        if lost.detail is BypassReason.CLIENT:
            # What began earlier is not fresh enough, here or in another gateway.
            return await self._lead(lost, self.flights.begin(lost.key, lost.place, lost.limit_bytes), None)
        for _ in range(MOST_LEADERS if lost.may_follow else 0):
            flight = self.flights.at(lost.key) or seen
            if flight is None or not _may_join(lost, flight):
                break
            seen = None
            reply = await self._follow(lost, flight)
            if reply is not None:
                return reply
        flight = self.flights.at(lost.key)
        is_taken = flight is not None and (lost.place is None or flight.place == lost.place)
        if is_taken or not lost.may_follow:
            return await self._lead_alone(lost)
        exact = lost.exchange.serving.exact
        # Whoever is refused a stored answer must not be given it by waiting for another gateway either.
        may_wait = lost.detail is None
        # Nor does anybody wait for what will not be stored.
        place = lost.place if may_wait and lost.place and lost.place.is_writable else None
        lease = exact.lease(place) if exact and place else None
        return await self._lead(lost, self.flights.begin(lost.key, lost.place, lost.limit_bytes), lease)

    def fresher(self, key: Key, found: Hit) -> Hit:
        """Return the answer that is about to replace a stored one, if there is one, or else that."""
        flight = self.flights.at(key)
        landed = flight.landing.hit if flight and flight.landing and flight.place == found.place else None
        return _aged(landed) if landed else found

    async def _lead_alone(self, lost: Lost) -> Reply:
        return await self._lead(lost, self.flights.begin_alone(lost.key, lost.place, lost.limit_bytes), None)

    async def _lead(self, lost: Lost, flight: Flight, lease: Lease | None) -> Reply:
        reader = flight.attach()
        flight.start(self._fly(lost, flight, lease))
        try:
            head = await reader.head()
            if head is None:
                reader.detach()
                return self._replay_landed(lost, flight) or await self._lead_alone(lost)
            reply = await self._reply_to_leader(lost, reader, head)
        except BaseException:
            reader.detach()
            raise
        if lost.place is None:
            self.count("none", "bypass", lost.exchange)
        else:
            self.count("exact", "miss", lost.exchange)
        return reply

    def _replay_landed(self, lost: Lost, flight: Flight) -> Reply | None:
        if flight.landing is None or flight.landing.hit is None:
            return None
        hit = _aged(flight.landing.hit)
        if hit.ttl_seconds <= 0 or not lost.exchange.wishes.allow(hit.age_seconds):
            return None
        return self.replay(lost.exchange, hit, lost.delivery)

    async def _reply_to_leader(self, lost: Lost, reader: Reader, head: Head) -> Reply:
        parts, status = reader.parts(lost.delivery.usage), _status(lost)
        length = content_length(head.headers)
        if head.status != 200 or head.is_stream or length is None or length > lost.limit_bytes:
            # Errors, streams, chunks of unknown number and what is too large go out as they come.
            headers = head.headers
            if head.is_stream:
                headers = [(name, value) for name, value in headers if name != b"content-length"]
            return Reply(head.status, headers + status, parts=parts, close=reader.detach)
        body = b"".join([part async for part in parts])
        reader.detach()
        return Reply(head.status, head.headers + status, body)

    async def _follow(self, lost: Lost, flight: Flight) -> Reply | None:
        """Answer from another request's flight; None where it has nothing for this one."""
        if flight.landing is not None and flight.landing.hit is not None:
            return self._replay_landed(lost, flight)
        reader = flight.attach()
        is_handed_on = False
        try:
            head = await reader.head()
            if head is None:
                return self._replay_landed(lost, flight)
            if head.status != 200:
                return None
            if head.is_stream and lost.delivery.stream and flight.landing is None:
                await reader.some()
                is_handed_on = True
                content_type = (b"content-type", first_of(head.headers, b"content-type"))
                headers = [*_for_followers(head), content_type]
                reply = Reply(200, headers, parts=reader.parts(lost.delivery.usage), close=reader.detach)
            else:
                landing = await reader.landing()
                delivered = landing.deliver(lost.delivery, lost.exchange.path)
                if delivered is None:
                    return None
                headers = [*_for_followers(head), *_body_headers(delivered.content_type, delivered.body)]
                reply = Reply(200, headers, delivered.body)
        except UpstreamError:
            return None
        finally:
            if not is_handed_on:
                reader.detach()
        self.count("exact", "collapsed", lost.exchange)
        reply.headers += _status(lost, collapsed=True)
        return reply

    async def _fly(self, lost: Lost, flight: Flight, lease: Lease | None) -> None:
        """Carry out a flight."""
        answer: UpstreamAnswer | None = None
        try:
            hit = await self._await_others(lost, lease) if lease else None
            if hit is not None:
                flight.land(Landing(hit.entry.answer, hit))
                self.flights.close(flight)  # the store has it
                return
            answer = await self._ask(lost)
            head = _head(answer)
            flight.arrived(head)
            form = ENDPOINTS[lost.exchange.path].stream if head.is_stream else None
            intake = Intake(form, lost.limit_bytes)
            async for chunk in answer.chunks():
                flight.add(intake.feed(chunk))
                await flight.room()
            flight.add(intake.finish())
            flight.land(self._keep(lost, flight, head, answer, lease))
        except UpstreamError as e:
            flight.fail(e)
        except Exception as e:  # noqa: BLE001 - the edge of a task: whoever waits must hear of it
            _log.exception("flight_failed", cache=lost.exchange.serving.policy.cache)
            flight.fail(UpstreamUnreachable(f"the gateway failed to pass the answer on: {type(e).__name__}"))
        finally:
            if answer is not None:
                answer.close()
            if not flight.is_over:
                flight.fail(UpstreamUnreachable("everybody who waited for the answer has gone"))
            if lease is not None and not (flight.landing and flight.landing.hit and answer):
                lease.release()  # else it is held until the answer is stored

    async def _await_others(self, lost: Lost, lease: Lease) -> Hit | None:
        """Take the lease on the upstream call, or wait for what another gateway stores."""
        exact, policy, place = lost.exchange.serving.exact, lost.exchange.serving.policy, lost.place
        if exact is None or policy.exact is None or place is None:
            return None
        wait_seconds = policy.coalesce_timeout_seconds
        if lost.delivery.stream:  # its first word should come soon
            wait_seconds = min(wait_seconds, policy.exact.budget_seconds)
        return await lease.take_or_find(lambda: exact.peek(place), wait_seconds)

    async def _ask(self, lost: Lost) -> UpstreamAnswer:
        payload = lost.payload
        if lost.delivery.stream and ENDPOINTS[lost.exchange.path].stream.has_usage_apart:
            payload = payload.rewritten(asking_for_usage(payload.plain, lost.request))
        started = time.perf_counter()
        upstream = lost.exchange.serving.upstream
        answer = await upstream.send(lost.exchange.outgoing(payload, plain_answer=True))
        if answer.status in (400, 422) and payload is not lost.payload:
            # It may be our wish for the usage that the upstream does not take.
            answer.close()
            answer = await upstream.send(lost.exchange.outgoing(lost.payload, plain_answer=True))
        self._metrics.observe_upstream(answer.status, time.perf_counter() - started)
        lost.exchange.heard(answer.status)
        return answer

    def _keep(
        self, lost: Lost, flight: Flight, head: Head, answer: UpstreamAnswer, lease: Lease | None
    ) -> Landing:
        """Store a whole answer, off every request's path, or count why not."""
        exact: ExactLayer | None = lost.exchange.serving.exact
        judgement = self._judge(lost, flight, head, answer)
        kept, refusal, place = judgement.kept, judgement.refusal, lost.place
        if place is None:
            return Landing(kept, None)
        if refusal is None and flight.is_superseded:
            refusal = RefusalReason.CHANGED
        if refusal is None and not place.is_writable:
            refusal = RefusalReason.READONLY
        if refusal is not None or kept is None or exact is None:
            self._metrics.not_stored.labels(refusal or RefusalReason.STORE).inc()
            return Landing(kept, None)
        stored, upstream_seconds = kept, flight.seconds

        async def write() -> RefusalReason | None:
            try:
                return await exact.write(
                    place,
                    stored.content_type,
                    stored.body,
                    stored.usage,
                    upstream_seconds,
                    lost.exchange.narrowing.ttl_seconds,
                )
            finally:
                self.flights.close(flight)
                if lease is not None:
                    lease.release()

        if not self._writes.offer(write, len(stored.body)):
            return Landing(kept, None)
        self.flights.close_later(flight)
        if lost.unlike is not None and lost.unlike.draft is not None:
            self._similarity.keep(lost.exchange, lost.unlike.draft, stored, upstream_seconds)
        return Landing(kept, self._hit(lost, stored, place, upstream_seconds))

    def _judge(self, lost: Lost, flight: Flight, head: Head, answer: UpstreamAnswer) -> Judgement:
        if not flight.is_shared:
            return Judgement(RefusalReason.TOO_LARGE, None)
        policy, path = lost.exchange.serving.policy, lost.exchange.path
        content_type = first_of(answer.headers, b"content-type").decode("latin-1")
        if head.is_stream:
            events = [piece.event for piece in flight.pieces if piece.event is not None]
            return judge_stream(content_type, events, lost.request, path, policy)
        whole = Answer(
            answer.status,
            content_type,
            first_of(answer.headers, b"content-encoding").decode("latin-1").lower(),
            b"".join(piece.raw for piece in flight.pieces),
        )
        return judge_answer(whole, lost.request, path, policy)

    def _hit(self, lost: Lost, kept: KeptAnswer, place: Miss, upstream_seconds: float) -> Hit:
        exact = lost.exchange.serving.policy.exact
        ttl_seconds = exact.ttl_seconds if exact else 0.0
        if (longest := lost.exchange.narrowing.ttl_seconds) is not None:
            ttl_seconds = min(ttl_seconds, longest)
        entry = Entry(kept.content_type, kept.body, time.time(), ttl_seconds, kept.usage, upstream_seconds)
        return Hit(entry, 0.0, ttl_seconds, place)

    def replay(self, exchange: Exchange, hit: Hit, delivery: Delivery) -> Reply | None:
        """Answer from the cache; None where the entry cannot be given the form that is wanted."""
        delivered = deliver(hit.entry.answer, delivery, exchange.path)
        if delivered is None:
            return None
        layer = "local" if hit.is_local else "exact"
        if hit.similarity is not None:
            layer = "semantic"
        self.count(layer, "hit", exchange)
        self._metrics.count_saved(layer, hit)
        status = hit_headers(hit, _hit_id(exchange, hit), exposes_similarity=_exposes(exchange))
        headers = [*_body_headers(delivered.content_type, delivered.body), *status]
        return Reply(200, headers, delivered.body)

    def count(self, layer: str, outcome: Outcome, exchange: Exchange | None) -> None:
        """Count one request."""
        route = exchange.route.name if exchange and exchange.route else "none"
        self._metrics.requests.labels(layer, outcome, route).inc()


def _head(answer: UpstreamAnswer) -> Head:
    # Compressed events cannot be told apart, so they are relayed like any other bytes.
    plain = first_of(answer.headers, b"content-encoding") in (b"", b"identity")
    events = is_event_stream(first_of(answer.headers, b"content-type").decode("latin-1"))
    # The server in front of us writes its own Date.
    return Head(
        answer.status, end_to_end(answer.headers, {b"date"}), answer.status == 200 and plain and events
    )


def _may_join(lost: Lost, flight: Flight) -> bool:
    if not flight.may_be_joined:
        return False
    if lost.place is None or flight.place is None:
        return flight.seconds < YOUNG_SECONDS
    return flight.place == lost.place


def _status(lost: Lost, *, collapsed: bool = False) -> Headers:
    if lost.place is None:
        return bypass_headers(BypassReason.STORE, collapsed)
    unlike = lost.unlike
    nearness = nearness_headers(unlike) if unlike and _exposes(lost.exchange) else []
    said = miss_headers(
        _id(lost.exchange, lost.place), lost.detail, collapsed, unlike.reason if unlike else None
    )
    return [*said, *nearness]


def _exposes(exchange: Exchange) -> bool:
    semantics = exchange.serving.semantics
    return semantics is not None and semantics.policy.expose_similarity


def _id(exchange: Exchange, place: Miss) -> str:
    return entry_id(exchange.serving.digest_key, place.name)


def _hit_id(exchange: Exchange, hit: Hit) -> str:
    """Name the entry that an answer comes from first, so that its copies are removed with it."""
    name = hit.place.name
    sources = unpack_links(hit.entry.source, name.cache_id, name.tenant_tag)
    return entry_id(exchange.serving.digest_key, sources[0] if sources else name)


def _aged(hit: Hit) -> Hit:
    age_seconds = max(0.0, time.time() - hit.entry.stored_at)
    ttl_seconds = hit.entry.ttl_seconds - age_seconds
    return replace(hit, age_seconds=age_seconds + hit.entry.older_seconds, ttl_seconds=ttl_seconds)


def _for_followers(head: Head) -> Headers:
    return [(name, value) for name, value in head.headers if name not in _FOLLOWERS_LACK]


def _body_headers(content_type: str, body: bytes) -> Headers:
    return [
        (b"content-type", content_type.encode("latin-1")),
        (b"content-length", str(len(body)).encode()),
    ]
