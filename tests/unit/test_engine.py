"""The stand-in engine keeps the OpenAI wire format, so that what tests show is the gateway's doing."""

import asyncio
import http.client
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any, Self

import aiohttp
import openai
import pytest

from e2e.engine import Engine, answer_text, version_in

CHAT = "/v1/chat/completions"


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    """Run an engine without latency on a free port."""
    async with Engine(port=0) as running:
        yield running


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a plain HTTP client of that engine."""
    async with aiohttp.ClientSession(engine.url) as session:
        yield session


@pytest.fixture
async def sdk(engine: Engine) -> AsyncIterator[openai.AsyncOpenAI]:
    """Open the official OpenAI client of that engine, as tenant acme."""
    async with openai.AsyncOpenAI(
        base_url=f"{engine.url}/v1", api_key="none", max_retries=0, default_headers={"X-Tenant-Id": "acme"}
    ) as made:
        yield made


def chat(question: str = "How tall is the tower?", **fields: Any) -> dict[str, Any]:
    """Build the body of a chat request."""
    return {"model": "m", "messages": [{"role": "user", "content": question}], **fields}


async def text_of(client: aiohttp.ClientSession, body: dict[str, Any], tenant: str = "acme") -> str:
    """Ask as a tenant and return the answer's text."""
    async with client.post(CHAT, json=body, headers={"X-Tenant-Id": tenant}) as answer:
        assert answer.status == 200
        return str((await answer.json())["choices"][0]["message"]["content"])


async def test_the_official_client_reads_a_chat_answer(sdk: openai.AsyncOpenAI) -> None:
    """A whole answer has the model asked for, the text that answer_text foretells, and usage."""
    answer = await sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi you"}])
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi you"}]}
    assert answer.choices[0].message.content == answer_text(CHAT, body, "acme")
    assert (answer.model, answer.choices[0].finish_reason) == ("m", "stop")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


async def test_the_official_client_reads_a_stream(sdk: openai.AsyncOpenAI) -> None:
    """A streamed answer comes in several chunks that add up to the whole one's text, with usage last."""
    messages: Any = [{"role": "user", "content": "Hi you"}]
    whole = await sdk.chat.completions.create(model="m", messages=messages)
    stream = await sdk.chat.completions.create(
        model="m", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert len(texts) > 3
    assert "".join(texts) == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage


async def test_the_official_client_reads_text_completions(sdk: openai.AsyncOpenAI) -> None:
    """The older completions API answers too, whole and streamed alike."""
    whole = await sdk.completions.create(model="m", prompt="Once")
    stream = await sdk.completions.create(model="m", prompt="Once", stream=True)
    assert "".join([chunk.choices[0].text async for chunk in stream]) == whole.choices[0].text != ""


async def test_embeddings_depend_on_the_input_alone(sdk: openai.AsyncOpenAI) -> None:
    """The same input gives the same vector in both encodings, another input another one."""
    packed = await sdk.embeddings.create(model="e", input=["a", "b"], dimensions=4)  # asks for base64
    plain = await sdk.embeddings.create(model="e", input="a", dimensions=4, encoding_format="float")
    assert packed.data[0].embedding == plain.data[0].embedding
    assert packed.data[0].embedding != packed.data[1].embedding
    assert len(packed.data[0].embedding) == 4


async def test_the_text_differs_with_request_and_tenant(client: aiohttp.ClientSession) -> None:
    """Anything that differs in body or tenant shows in the text, so that a wrong hit can't look right."""
    seen = {
        await text_of(client, chat()),
        await text_of(client, chat(), tenant="globex"),
        await text_of(client, chat(temperature=0)),
        await text_of(client, chat(temperature=1)),
        await text_of(client, chat("How tall is the tower!")),
        await text_of(client, chat() | {"model": "n"}),
        await text_of(client, chat(tools=[{"type": "function", "function": {"name": "f"}}])),
    }
    assert len(seen) == 7


async def test_the_text_ignores_spelling_and_delivery(client: aiohttp.ClientSession) -> None:
    """The order of keys and the wish for a stream change no answer."""
    body = chat(temperature=0)
    assert await text_of(client, body) == await text_of(client, dict(reversed(body.items())))
    assert await text_of(client, body) == await text_of(client, body | {"stream": False})


async def test_a_new_version_answers_otherwise() -> None:
    """The version shows in the text and in the system fingerprint."""
    answers = []
    for version in ("v1", "v2"):
        async with Engine(port=0, version=version) as engine, aiohttp.ClientSession(engine.url) as client:
            async with client.post(CHAT, json=chat()) as answer:
                answers.append(await answer.json())
            assert version in answers[-1]["choices"][0]["message"]["content"]
    assert answers[0]["system_fingerprint"] != answers[1]["system_fingerprint"]


def test_the_version_is_read_from_whatever_holds_an_answer() -> None:
    """A text, a body around it and a JSON answer each tell who said it; what no engine said is an error."""
    text = answer_text(CHAT, chat(), "acme", "2026-11-28")
    wanted = {"response_format": {"type": "json_object"}}
    for held in (text, json.dumps({"choices": [{"message": {"content": text}}]})):
        assert version_in(held) == "2026-11-28"
    assert version_in(answer_text(CHAT, chat() | wanted, "acme", "3")) == "3"
    with pytest.raises(ValueError, match="no engine"):
        version_in("Who said that?")


class Running:
    """The engine as a process, as in its image."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "e2e.engine", "--port=0", "--latency=0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.line().rsplit(":", 1)[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self) -> str:
        """Return the next line that it prints, empty at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def ask(connection: http.client.HTTPConnection) -> str:
    """Ask on an open connection, and return the version that answered."""
    connection.request("POST", CHAT, json.dumps(chat()))
    return version_in(connection.getresponse().read().decode())


def test_a_draining_engine_goes_on_answering_until_a_second_signal() -> None:
    """After SIGTERM old and new connections are answered by the old version, as behind a preStop hook."""
    with Running("--version=7", "--drain=60") as engine:
        kept = http.client.HTTPConnection("127.0.0.1", engine.port)
        fresh = http.client.HTTPConnection("127.0.0.1", engine.port)
        assert ask(kept) == "7"
        engine.process.terminate()
        assert "goes on for 60 s" in engine.line()
        assert (ask(kept), ask(fresh)) == ("7", "7")
        engine.process.terminate()
        assert engine.process.wait(timeout=10) == 0
        kept.close()
        fresh.close()


def test_draining_ends_by_itself() -> None:
    """Without another signal the process ends once the time is over."""
    with Running("--drain=0.05") as engine:
        engine.process.terminate()
        assert engine.process.wait(timeout=10) == 0


async def test_a_token_limit_ends_the_answer_with_length(client: aiohttp.ClientSession) -> None:
    """max_tokens cuts the text and the finish reason says so."""
    async with client.post(CHAT, json=chat(max_tokens=2)) as answer:
        choice = (await answer.json())["choices"][0]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["content"].split()) == 2


async def test_json_answers_where_json_was_asked_for(client: aiohttp.ClientSession) -> None:
    """With a JSON response_format the text is a JSON object."""
    assert "answer" in json.loads(await text_of(client, chat(response_format={"type": "json_object"})))


async def test_calls_are_counted_by_path(engine: Engine, client: aiohttp.ClientSession) -> None:
    """Only inference paths count, over HTTP as in process, and the count can be reset."""
    await text_of(client, chat())
    await text_of(client, chat())
    async with client.get("/healthz") as health, client.get("/v1/models") as models:
        assert health.status == models.status == 200
    async with client.get("/calls") as counted:
        assert await counted.json() == {CHAT: 2} == engine.calls
    assert [json.loads(request.body) for request in engine.requests] == [chat(), chat()]
    async with client.post("/calls/reset") as reset, client.get("/calls") as counted:
        assert reset.status == 200
        assert await counted.json() == {}


async def test_a_model_can_answer_under_its_own_name() -> None:
    """With a model set, the engine answers and lists that one, whatever was asked for."""
    async with (
        Engine(port=0, model="big") as engine,
        aiohttp.ClientSession(engine.url) as client,
        client.post(CHAT, json=chat()) as answer,
        client.get("/v1/models") as models,
    ):
        assert (await answer.json())["model"] == "big"
        assert (await models.json())["data"][0]["id"] == "big"


async def test_an_answer_takes_the_latency() -> None:
    """Neither a whole answer nor a stream is done before the latency is over."""
    async with Engine(port=0, latency_seconds=0.05) as engine, aiohttp.ClientSession(engine.url) as client:
        for stream in (False, True):
            started = asyncio.get_running_loop().time()
            async with client.post(CHAT, json=chat(stream=stream)) as answer:
                await answer.read()
            # Timers may fire a tick early, and a stream's first event has no share of the second half.
            assert asyncio.get_running_loop().time() - started > 0.04


async def test_failures_on_demand(engine: Engine, client: aiohttp.ClientSession) -> None:
    """A header, the faults endpoint and the method each set the status of calls, which count all the same."""
    engine.fail(429)
    async with client.post("/faults", json={"status": 503, "times": 2}) as planned:
        assert await planned.json() == {"pending": 3}
    statuses = []
    for headers in ({"X-Engine-Status": "418"}, {}, {}, {}, {}):
        async with client.post(CHAT, json=chat(), headers=headers) as answer:
            statuses.append(answer.status)
    assert statuses == [418, 429, 503, 503, 200]
    assert engine.calls[CHAT] == 5


async def test_every_nth_call_fails() -> None:
    """With fail_every the engine fails at a fixed rate."""
    async with Engine(port=0, fail_every=2) as engine, aiohttp.ClientSession(engine.url) as client:
        statuses = []
        for _ in range(4):
            async with client.post(CHAT, json=chat()) as answer:
                statuses.append(answer.status)
    assert statuses == [200, 500, 200, 500]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cut_answer_is_seen_as_one(
    engine: Engine, client: aiohttp.ClientSession, stream: bool
) -> None:
    """A call that is cut ends in a broken connection, never in a shorter valid body."""
    engine.fail(None, cut=True)
    with pytest.raises(aiohttp.ClientPayloadError):
        async with client.post(CHAT, json=chat(stream=stream)) as answer:
            await answer.read()


async def test_a_stream_can_be_held(engine: Engine, client: aiohttp.ClientSession) -> None:
    """While `flowing` is cleared the first event is out and no other, so that relaying can be tested."""
    engine.flowing.clear()
    async with client.post(CHAT, json=chat(stream=True)) as answer:
        first = await answer.content.readuntil(b"\n\n")
        rest = asyncio.ensure_future(answer.content.read())
        assert b'"role": "assistant"' in first
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(rest), timeout=0.05)
        engine.flowing.set()
        assert (await rest).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (CHAT, b"{", 400),
        (CHAT, b"[]", 400),
        (CHAT, b'{"messages": []}', 400),
        (CHAT, b'{"messages": ["hi"]}', 400),
        (CHAT, b'{"messages": [{"role": "user", "content": 7}]}', 400),
        (CHAT, b'{"messages": [{"role": "user", "content": "x"}], "n": "many"}', 400),
        ("/v1/completions", b"{}", 400),
        ("/v1/embeddings", b"{}", 400),
        ("/reset_prefix_cache", b"{}", 404),
        ("/faults", b"3", 400),
    ],
)
async def test_bad_requests_get_an_error(
    client: aiohttp.ClientSession, path: str, body: bytes, status: int
) -> None:
    """What is no request of the API gets an error object, and the connection lives on."""
    async with client.post(path, data=body) as answer:
        assert answer.status == status
        assert (await answer.json())["error"]["message"]
    assert await text_of(client, chat())


async def test_a_wrong_method_is_refused(client: aiohttp.ClientSession) -> None:
    """Inference paths take POST alone."""
    async with client.get(CHAT) as answer:
        assert answer.status == 405


async def raw(engine: Engine, sent: bytes) -> bytes:
    """Send bytes on a connection of their own and return all that comes back until the engine closes it."""
    host, port = engine.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    received = await reader.read()
    writer.close()
    await writer.wait_closed()
    return received


async def test_one_connection_carries_many_requests(engine: Engine) -> None:
    """Pipelined requests, a HEAD among them, are answered in order, and `Connection: close` ends it."""
    received = await raw(
        engine,
        b"HEAD /healthz HTTP/1.1\r\nHost: e\r\n\r\n"
        b"GET /calls HTTP/1.1\r\nHost: e\r\n\r\n"
        b"GET /calls HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n",
    )
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.count(b"\r\n\r\n{}") == 2
    assert received.endswith(b"Connection: close\r\n\r\n{}")


async def test_a_chunked_body_is_read(engine: Engine) -> None:
    """A request body may come in chunks with a trailer, after a wait for `100 Continue`."""
    body = json.dumps(chat()).encode()
    chunks = b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]))
    received = await raw(
        engine,
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n"
        b"Expect: 100-continue\r\nConnection: close\r\n\r\n" + chunks + b"0\r\nX-Sum: 1\r\n\r\n",
    )
    assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert engine.requests[0].body == body


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_request_get_a_400(engine: Engine, sent: bytes) -> None:
    """Malformed HTTP is answered with 400 and the connection ends."""
    received = await raw(engine, sent)
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Connection: close" in received


async def test_http_1_0_is_closed_unless_kept(engine: Engine) -> None:
    """An HTTP/1.0 client gets its answer and the end of the connection."""
    assert (await raw(engine, b"GET /calls HTTP/1.0\r\n\r\n")).endswith(b"{}")
