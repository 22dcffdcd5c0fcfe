"""The server of the built-in model over real HTTP, as the OpenAI client and ours read it."""

from __future__ import annotations

import asyncio
import base64
import io
import signal
import socket
import sys
from array import array
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest

from cachewright.embedders.builtin import BuiltinEmbedder, BuiltinModel
from cachewright.embedders.endpoint import EndpointEmbedder, EndpointSettings
from cachewright.embedders.server import MAX_BODY_BYTES, EmbedderServer
from cachewright.keys.embedding_identity import BUILTIN


@pytest.fixture
async def running(builtin_model: BuiltinModel) -> AsyncIterator[EmbedderServer]:
    """Return the server on free ports of loopback."""
    server = EmbedderServer(BuiltinEmbedder(builtin_model), "127.0.0.1", 0, 0)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def http(running: EmbedderServer) -> AsyncIterator[aiohttp.ClientSession]:
    """Return a client of the server."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{running.port}") as session:
        yield session


async def ask(http: aiohttp.ClientSession, **fields: Any) -> tuple[int, Any]:
    """Send one request."""
    async with http.post("/v1/embeddings", json={"model": BUILTIN.model, **fields}) as response:
        return response.status, await response.json()


async def test_the_openai_client_gets_the_models_vectors(
    running: EmbedderServer, builtin: BuiltinEmbedder
) -> None:
    """A standard client, which asks for base64 by itself, reads what the model gave."""
    texts = ["How do I reset my password?", "Which port is it?"]
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{running.port}/v1", api_key="x") as client:
        answer = await client.embeddings.create(model=BUILTIN.model, input=texts)
        models = await client.models.list()
    expected = await builtin.embed(texts)
    assert [array("f", item.embedding) for item in answer.data] == [made.vector for made in expected]
    assert answer.usage.prompt_tokens == sum(made.n_tokens for made in expected)
    assert [model.id for model in models.data] == [BUILTIN.model]


async def test_the_endpoint_client_learns_what_the_model_knows(
    running: EmbedderServer, builtin: BuiltinEmbedder
) -> None:
    """A gateway beside the sidecar knows of unknown tokens and of the window as if the model were inside."""
    texts = ["plain words", "数据库在哪里", "word " * 300, "😀"]
    client = EndpointEmbedder(EndpointSettings(f"http://127.0.0.1:{running.port}/v1", BUILTIN))
    over_http, inside = await client.embed(texts), await builtin.embed(texts)
    await client.aclose()
    assert [made.vector for made in over_http] == [made.vector for made in inside]
    assert [made.has_unknown for made in over_http] == [False, True, False, True]
    assert [made.beyond_window for made in over_http] == [False, False, True, False]


async def test_tokens_give_the_vector_of_their_text(http: aiohttp.ClientSession) -> None:
    """A client that cuts its text itself gets the same vector."""
    _, by_text = await ask(http, input="hello world")
    status, by_tokens = await ask(http, input=[[7592, 2088]])
    assert status == 200
    assert by_tokens["data"][0]["embedding"] == by_text["data"][0]["embedding"]
    assert (await ask(http, input=[7592, 2088]))[1] == by_tokens


async def test_base64_and_floats_say_the_same(http: aiohttp.ClientSession) -> None:
    """Both forms are the same float32 numbers."""
    _, floats = await ask(http, input="hello")
    _, encoded = await ask(http, input="hello", encoding_format="base64")
    raw = base64.b64decode(encoded["data"][0]["embedding"])
    assert array("f", raw) == array("f", floats["data"][0]["embedding"])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"input": "a", "model": "bge-m3"}, "invalid_request"),
        ({"input": "a", "dimensions": 128}, "invalid_request"),
        ({"input": "a", "encoding_format": "int8"}, "invalid_request"),
        ({"input": []}, "invalid_request"),
        ({}, "invalid_request"),
        ({"input": ["a", 1]}, "invalid_request"),
        ({"input": ["a", [1]]}, "invalid_request"),
        ({"input": [-1]}, "invalid_request"),
        ({"input": [30522]}, "invalid_request"),
        ({"input": [True]}, "invalid_request"),
        ({"input": ["a"] * 2049}, "invalid_request"),
        ({"input": ["fine", "word " * 300]}, "context_length_exceeded"),
        ({"input": [1] * 255}, "context_length_exceeded"),
    ],
    ids=str,
)
async def test_what_cannot_be_embedded_is_refused_in_openais_form(
    http: aiohttp.ClientSession, fields: dict[str, Any], code: str
) -> None:
    """Nothing is cut off or guessed; the error names the reason."""
    status, answer = await ask(http, **fields)
    assert status == 400
    assert answer["error"]["code"] == code
    assert answer["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"a"'])
async def test_a_body_that_is_no_object_is_refused(http: aiohttp.ClientSession, body: bytes) -> None:
    """Broken JSON is the client's error, not a crash."""
    async with http.post("/v1/embeddings", data=body) as response:
        assert response.status == 400


async def test_other_paths_and_endless_bodies_are_refused(http: aiohttp.ClientSession) -> None:
    """There are two paths, and a limit."""
    async with http.get("/v1/embeddings") as response:
        assert response.status == 404
    async with http.post("/v1/embeddings", data=io.BytesIO(b" " * (MAX_BODY_BYTES + 1))) as response:
        assert response.status == 413


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_the_command_serves_until_it_is_told_to_stop() -> None:
    """`cachewright embedder` is healthy once it listens, and ends with 0 on SIGTERM."""
    health = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "cachewright.cli", "embedder", "--port", "0", "--health-port", str(health)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 60)
    assert b"embedder_started" in line
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{health}/healthz") as found:
        assert found.status == 200
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 20) == 0
    await process.stdout.read()
