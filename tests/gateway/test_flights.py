"""Flights: identical misses make one upstream call, and no one pays for another's failure or slowness."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from cachewright.gateway.fetching import YOUNG_SECONDS
from e2e.engine.http11 import Request
from tests.gateway.harness import (
    CHAT,
    QUESTION,
    TENANT,
    Answered,
    Gateway,
    Response,
    ScriptedUpstream,
    chat_answer,
    root_client,
    running,
)
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until

COLLAPSED = "cachewright; fwd=miss; collapsed"
HEADERS = {**TENANT, "Content-Type": "application/json"}


def sse(text: str = "Because.", reason: str = "stop") -> list[bytes]:
    """Return the events of a streamed answer."""
    chunks = [
        ({"role": "assistant"}, None),
        *(({"content": word}, None) for word in text.split()),
        ({}, reason),
    ]
    events = [
        {"id": "c", "model": "llama", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in chunks
    ]
    return [*(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events), b"data: [DONE]\n\n"]


class Held:
    """An upstream whose calls wait until a test answers each of them."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Request, asyncio.Future[Response]]] = []
        self.upstream = ScriptedUpstream(self._hold)

    async def _hold(self, request: Request) -> Response:
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.waiting.append((request, future))
        return await future

    async def called(self, times: int) -> None:
        """Wait until it was called this often."""

        async def is_called() -> bool:
            return len(self.waiting) >= times

        await until(is_called)

    def answer(self, number: int, response: Response | None = None) -> None:
        """Answer one call, a stream with a stream."""
        request, future = self.waiting[number]
        if response is None:
            streams = json.loads(request.body).get("stream")
            whole = (
                Response(200, b"".join(sse()), "text/event-stream")
                if streams
                else Response(200, chat_answer())
            )
            response = whole
        future.set_result(response)


@pytest.fixture
async def held() -> AsyncIterator[Held]:
    """A running upstream."""
    made = Held()
    async with made.upstream:
        yield made


@pytest.fixture
async def relay(tmp_path: Path, redis: RedisServer, held: Held) -> AsyncIterator[Gateway]:
    """A gateway in front of it."""
    async with running(Gateway(tmp_path, redis, held.upstream.url)) as gateway:
        gateway.client = await many_connections(gateway)
        yield gateway


async def many_connections(gateway: Gateway) -> aiohttp.ClientSession:
    """Return a client without a bound on its connections, in place of the gateway's."""
    await gateway.client.close()
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(connector=connector, auto_decompress=False)


def ask(gateway: Gateway, *, headers: dict[str, str] = TENANT, **fields: object) -> asyncio.Task[Answered]:
    """Send a request in the background."""
    return asyncio.create_task(gateway.call(headers=headers, **fields))  # type: ignore[arg-type]


async def looked_up(gateway: Gateway, times: int) -> None:
    """Wait until so many requests were looked up: from then on they lead or follow."""

    async def is_enough() -> bool:
        return await gateway.metric("cachewright_lookup_seconds_count", layer="exact") >= times

    await until(is_enough)


def texts(answer: Answered) -> str:
    """Return what an answer says, streamed or not."""
    if not answer.headers["Content-Type"].startswith("text/event-stream"):
        return str(answer.json()["choices"][0]["message"]["content"])
    assert answer.body.endswith(b"data: [DONE]\n\n")
    parts = [line[6:] for line in answer.body.split(b"\n\n") if line.startswith(b"data: {")]
    return "".join(json.loads(part)["choices"][0]["delta"].get("content", "") for part in parts)


@pytest.mark.parametrize("streams", [[False], [True], [False, True], [True, False]])
async def test_fifty_at_once_make_one_call(relay: Gateway, held: Held, streams: list[bool]) -> None:
    """Streamed, not streamed and mixed: all get the answer, each in the form it asked for."""
    calls = [ask(relay, stream=streams[number % len(streams)]) for number in range(50)]
    await looked_up(relay, 50)
    await held.called(1)
    held.answer(0)
    answers = await asyncio.gather(*calls)
    assert {texts(answer) for answer in answers} == {"Because."}
    for number, answer in enumerate(answers):
        is_stream = answer.headers["Content-Type"].startswith("text/event-stream")
        assert is_stream == streams[number % len(streams)]
    assert sorted(answer.cache for answer in answers) == ["cachewright; fwd=miss", *[COLLAPSED] * 49]
    assert len(held.waiting) == 1
    assert await relay.metric("cachewright_requests_total", layer="exact", outcome="collapsed") == 49
    assert (await relay.call()).is_hit


async def test_followers_get_the_leaders_headers(relay: Gateway, held: Held) -> None:
    """But for cookies, which are one client's, and for what describes the bytes, which may differ."""
    calls = [ask(relay), ask(relay), ask(relay, stream=True)]
    await looked_up(relay, 3)
    await held.called(1)
    is_stream = json.loads(held.waiting[0][0].body).get("stream", False)
    body, content_type = (
        (b"".join(sse()), "text/event-stream") if is_stream else (chat_answer(), "application/json")
    )
    held.answer(0, Response(200, body, content_type, {"X-Request-Id": "r", "Set-Cookie": "s=1"}))
    for answer in await asyncio.gather(*calls):
        assert answer.headers["X-Request-Id"] == "r"
        assert ("Set-Cookie" in answer.headers) == (answer.cache != COLLAPSED)


async def test_others_are_not_drawn_in(relay: Gateway, held: Held) -> None:
    """Another question or another tenant makes its own call."""
    calls = [ask(relay), ask(relay, seed=1), ask(relay, headers={"X-Tenant-Id": "other"}), ask(relay, seed=2)]
    await held.called(4)
    for number in range(4):
        held.answer(number)
    assert {answer.cache for answer in await asyncio.gather(*calls)} == {"cachewright; fwd=miss"}


Failure = Callable[[Held], object]

FAILURES: dict[str, Failure] = {
    "status": lambda held: held.answer(0, Response(503, b"{}")),
    "client error": lambda held: held.answer(0, Response(400, b"{}")),
    "cut off": lambda held: held.answer(0, Response(200, chat_answer(), cut=True)),
    "an error as an answer": lambda held: held.answer(0, Response(200, b'{"error": {"message": "x"}}')),
    "another model": lambda held: held.answer(0, Response(200, chat_answer(model="fallback"))),
    "empty": lambda held: held.answer(0, Response(200, chat_answer(""))),
    "no answer": lambda held: held.waiting[0][1].set_exception(ConnectionResetError()),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_failed_leader_fails_no_follower(
    relay: Gateway, held: Held, failure: str, stream: bool
) -> None:
    """One of them asks again, once, and the others follow it; the leader gets what the upstream gave it."""
    leader = ask(relay)
    await held.called(1)
    followers = [ask(relay, stream=stream) for _ in range(10)]
    await looked_up(relay, 11)
    FAILURES[failure](held)
    await held.called(2)
    held.answer(1)
    answers = await asyncio.gather(*followers)
    assert {texts(answer) for answer in answers} == {"Because."}
    assert sorted(answer.cache for answer in answers) == ["cachewright; fwd=miss", *[COLLAPSED] * 9]
    first = await leader
    assert first.status == {"status": 503, "client error": 400, "cut off": 502, "no answer": 502}.get(
        failure, 200
    )
    assert len(held.waiting) == 2


async def test_after_two_failed_leaders_all_ask_by_themselves(relay: Gateway, held: Held) -> None:
    """Nobody waits in line behind an upstream that fails again and again."""
    calls = [ask(relay) for _ in range(5)]
    await looked_up(relay, 5)
    for failed in range(2):
        await held.called(failed + 1)
        held.answer(failed, Response(503, b"{}"))
    await held.called(5)
    for number in (2, 3, 4):
        held.answer(number)
    statuses = sorted(answer.status for answer in await asyncio.gather(*calls))
    assert statuses == [200, 200, 200, 503, 503]


async def test_what_the_model_always_says_is_shared(relay: Gateway, held: Held) -> None:
    """An answer cut by a limit is not stored, and yet one call is enough for those who ask at once."""
    calls = [ask(relay, stream=stream) for stream in (False, False, True)]
    await looked_up(relay, 3)
    await held.called(1)
    request, _ = held.waiting[0]
    choice = {"index": 0, "message": {"role": "assistant", "content": "Bec"}, "finish_reason": "length"}
    streamed = Response(200, b"".join(sse("Bec", "length")), "text/event-stream")
    whole = Response(200, chat_answer(choices=[choice]))
    held.answer(0, streamed if json.loads(request.body).get("stream") else whole)
    assert {texts(answer) for answer in await asyncio.gather(*calls)} == {"Bec"}
    again = ask(relay)
    await held.called(2)
    held.answer(1)
    assert (await again).cache == "cachewright; fwd=miss"


async def test_a_leader_that_leaves_takes_nobody_along(relay: Gateway, held: Held) -> None:
    """Its call goes on for those who follow, and the answer is stored."""
    leader = ask(relay)
    await held.called(1)
    followers = [ask(relay), ask(relay, stream=True)]
    await looked_up(relay, 3)
    leader.cancel()
    await asyncio.gather(leader, return_exceptions=True)
    assert held.upstream.open_connections == 1
    held.answer(0)
    assert {texts(answer) for answer in await asyncio.gather(*followers)} == {"Because."}
    assert (await relay.call()).is_hit
    assert len(held.waiting) == 1


async def test_when_all_have_left_the_call_is_given_up(relay: Gateway, held: Held) -> None:
    """The upstream's connection is closed, and whoever comes next makes a new call."""
    calls = [ask(relay), ask(relay, stream=True)]
    await looked_up(relay, 2)
    await held.called(1)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)

    held.answer(0)  # the upstream itself notices only when it answers

    async def is_closed() -> bool:
        return held.upstream.open_connections == 0

    await until(is_closed)
    again = ask(relay)
    await held.called(2)
    held.answer(1)
    assert (await again).cache == "cachewright; fwd=miss"


async def test_a_follower_that_leaves_changes_nothing(relay: Gateway, held: Held) -> None:
    """Neither for the leader nor for the others."""
    calls = [ask(relay) for _ in range(4)]
    await looked_up(relay, 4)
    await held.called(1)
    for call in calls[2:]:
        call.cancel()
    held.answer(0)
    assert {texts(answer) for answer in await asyncio.gather(*calls[:2])} == {"Because."}
    assert (await relay.call()).is_hit


async def test_no_store_neither_leads_nor_follows(relay: Gateway, held: Held) -> None:
    """Each such request makes its own call."""
    private = {**TENANT, "Cache-Control": "no-store"}
    calls = [ask(relay, headers=private), ask(relay), ask(relay, headers=private)]
    await held.called(3)
    for number in range(3):
        held.answer(number)
    answers = await asyncio.gather(*calls)
    assert [answer.cache.partition(";")[2].split(";")[0] for answer in answers] == [
        " fwd=bypass",
        " fwd=miss",
        " fwd=bypass",
    ]


async def test_a_refresh_does_not_follow_what_began_earlier(relay: Gateway, held: Held) -> None:
    """It makes its own call, later requests follow that one, and its answer is the one that stays."""
    early = ask(relay)
    await held.called(1)
    refresh = ask(relay, headers={**TENANT, "Cache-Control": "no-cache"})
    await held.called(2)
    late = ask(relay)
    await looked_up(relay, 3)
    held.answer(1, Response(200, chat_answer("fresh")))
    assert {texts(answer) for answer in await asyncio.gather(refresh, late)} == {"fresh"}
    held.answer(0, Response(200, chat_answer("stale")))
    assert texts(await early) == "stale"
    assert texts(await relay.call()) == "fresh"


async def test_nothing_from_before_a_removal_is_given_out(relay: Gateway, held: Held) -> None:
    """Whoever asks after it makes a call of its own, and the answer under way is not stored."""
    early = ask(relay)
    await held.called(1)
    serving = relay.process._flow.serving
    (flight,) = relay.process._flow._fetching.flights._open.values()
    assert serving is not None
    assert serving.exact is not None
    assert flight.place is not None
    await serving.exact.remove(flight.place.name)
    late = ask(relay)
    await held.called(2)
    held.answer(0, Response(200, chat_answer("old")))
    assert texts(await early) == "old"
    held.answer(1, Response(200, chat_answer("new")))
    assert texts(await late) == "new"
    assert texts(await relay.call()) == "new"
    assert await relay.metric("cachewright_not_stored_total", reason="changed") == 1


async def test_a_request_during_the_write_is_a_hit(
    tmp_path: Path, own_redis: RedisServer, held: Held
) -> None:
    """The answer is given from memory while its write is on its way, streamed or not."""
    gateway = Gateway(tmp_path, own_redis, held.upstream.url)
    async with running(gateway), root_client(own_redis) as root:
        first = ask(gateway)
        await held.called(1)
        looking = [ask(gateway), ask(gateway, stream=True)]
        await looked_up(gateway, 3)
        await root.client_pause(1500, all=True)  # whatever is sent to the store now waits
        held.answer(0)
        assert texts(await first) == "Because."
        late = [ask(gateway), ask(gateway, stream=True)]
        answers = await asyncio.gather(*looking, *late)
        assert {texts(answer) for answer in answers} == {"Because."}
    assert len(held.waiting) == 1


async def test_without_a_store_they_still_make_one_call(
    tmp_path: Path, own_redis: RedisServer, held: Held
) -> None:
    """Trouble costs the cache, not the upstream; whoever comes later asks anew, and a refresh always."""
    gateway = Gateway(tmp_path, own_redis, held.upstream.url)
    gateway.enact(exact={"budget_seconds": 0.1})
    async with running(gateway):
        own_redis.freeze()
        first = ask(gateway)
        await held.called(1)
        calls = [ask(gateway, stream=bool(number % 2)) for number in range(10)]
        refresh = ask(gateway, headers={**TENANT, "Cache-Control": "no-cache"})
        await looked_up(gateway, 12)
        await held.called(2)
        for number in range(2):
            held.answer(number)
        answers = await asyncio.gather(first, *calls)
        assert {texts(answer) for answer in [*answers, await refresh]} == {"Because."}
        assert sorted(answer.cache for answer in answers) == [
            *["cachewright; fwd=bypass; collapsed; detail=store"] * 10,
            "cachewright; fwd=bypass; detail=store",
        ]
        old = ask(gateway)
        await held.called(3)
        await asyncio.sleep(YOUNG_SECONDS)  # the age itself is what is tested
        young = ask(gateway)
        await held.called(4)
        for number in (2, 3):
            held.answer(number)
        assert {texts(answer) for answer in await asyncio.gather(old, young)} == {"Because."}
        own_redis.thaw()


async def slowly(size: int, done: asyncio.Event) -> AsyncIterator[bytes]:
    """Give many bytes, and tell when all are taken."""
    for _ in range(size // 10_000):
        yield b"x" * 10_000
    done.set()


async def post(gateway: Gateway, stream: bool) -> aiohttp.ClientResponse:
    """Send a request and read nothing but the head of its answer."""
    body = json.dumps({**QUESTION, "stream": stream})
    return await gateway.client.post(gateway.url + CHAT, data=body, headers=HEADERS)


async def test_a_slow_client_alone_slows_the_upstream_down(relay: Gateway, held: Held) -> None:
    """No more is taken from the upstream than fits a few buffers."""
    asked = asyncio.create_task(post(relay, stream=True))
    await held.called(1)
    size, done = 40_000_000, asyncio.Event()
    held.answer(0, Response(200, slowly(size, done), "text/event-stream"))
    response = await asked
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(done.wait(), 1)
    received = 0
    async for part in response.content.iter_any():
        received += len(part)
    assert received == size
    assert done.is_set()


async def test_a_slow_follower_holds_up_nobody(relay: Gateway, held: Held) -> None:
    """The leader gets all of an answer of any size; what is held for others is bounded."""
    asked = [asyncio.create_task(post(relay, stream=True))]
    await held.called(1)
    asked.append(asyncio.create_task(post(relay, stream=True)))
    await looked_up(relay, 2)
    size, done = 40_000_000, asyncio.Event()
    held.answer(0, Response(200, slowly(size, done), "text/event-stream"))
    leader = await asked[0]
    received = 0
    async for part in leader.content.iter_any():
        received += len(part)
    assert received == size
    follower = await asked[1]
    with pytest.raises(aiohttp.ClientPayloadError):
        await follower.content.read()
    follower.close()
    flights = relay.process._flow._fetching.flights
    assert flights.buffered_bytes == 0


async def test_large_answers_are_not_shared_with_latecomers(relay: Gateway, held: Held) -> None:
    """Beyond what is cached, a new request goes to the upstream itself."""
    first = asyncio.create_task(post(relay, stream=False))
    await held.called(1)
    go_on = asyncio.Event()

    async def large() -> AsyncIterator[bytes]:
        yield b"x" * 70_000
        await go_on.wait()
        yield b"x"

    held.answer(0, Response(200, large()))
    response = await first
    await response.content.readexactly(70_000)
    second = ask(relay)
    await held.called(2)
    held.answer(1)
    assert texts(await second) == "Because."
    go_on.set()
    assert await response.content.read() == b"x"


async def test_flights_leave_nothing_behind(relay: Gateway, held: Held) -> None:
    """After hundreds of them no buffer is held, none is open and no task is left."""
    calls: list[Awaitable[Answered]] = [
        ask(relay, stream=bool(number % 2), seed=number % 40) for number in range(200)
    ]
    await looked_up(relay, 200)
    await held.called(40)
    for number in range(40):
        held.answer(number, Response(503, b"{}") if number % 10 == 0 else None)
    await held.called(44)
    for number in range(40, 44):
        held.answer(number)
    await asyncio.gather(*calls)
    flights = relay.process._flow._fetching.flights

    async def is_clean() -> bool:
        return not flights._open and not flights._tasks and flights.buffered_bytes == 0

    await until(is_clean)
