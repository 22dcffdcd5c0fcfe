"""The endpoint client: what it asks a real HTTP server, what it believes, and what every trouble becomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cachewright.embedders.endpoint import MOST_TEXTS, EndpointEmbedder, EndpointSettings
from cachewright.errors import EmbedderRefused, EmbedderUnavailable
from cachewright.keys.embedding_identity import EmbeddingIdentity
from tests.embedders.server import DIMENSIONS, WINDOW, EmbeddingServer, vector_of

IDENTITY = EmbeddingIdentity("endpoint", "bge-small", "1", DIMENSIONS, WINDOW)

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
async def embedder(server: EmbeddingServer) -> AsyncIterator[EndpointEmbedder]:
    """Return a client of the server."""
    made = EndpointEmbedder(EndpointSettings(server.url, IDENTITY, timeout_seconds=5, api_key="k-1"))
    yield made
    await made.aclose()


async def test_vectors_come_in_the_order_of_the_texts(
    embedder: EndpointEmbedder, server: EmbeddingServer
) -> None:
    """The server may answer in any order; the index decides."""
    server.change = lambda document: document | {"data": document["data"][::-1]}
    made = await embedder.embed(["one", "two", "three"])
    assert [list(each.vector) for each in made] == [vector_of(text) for text in ("one", "two", "three")]


async def test_the_key_is_sent_as_bearer_token(embedder: EndpointEmbedder, server: EmbeddingServer) -> None:
    """A provider sees whose bill it is."""
    await embedder.embed(["one"])
    assert server.headers[0]["authorization"] == "Bearer k-1"
    assert server.requests == [{"model": "bge-small", "input": ["one"], "encoding_format": "float"}]


async def test_many_texts_go_in_several_calls(embedder: EndpointEmbedder, server: EmbeddingServer) -> None:
    """No call holds more texts than servers take."""
    texts = [f"t{number}" for number in range(MOST_TEXTS + 3)]
    made = await embedder.embed(texts)
    assert [list(each.vector) for each in made] == [vector_of(text) for text in texts]
    assert [len(asked["input"]) for asked in server.requests] == [MOST_TEXTS, 3]


async def test_tokens_are_counted_for_a_text_alone(embedder: EndpointEmbedder) -> None:
    """The server's sum belongs to one text only where it was asked for one."""
    assert (await embedder.embed(["two words"]))[0].n_tokens == 2
    assert [each.n_tokens for each in await embedder.embed(["a b", "c"])] == [0, 0]


async def test_a_text_that_was_cut_silently_has_no_vector(
    embedder: EndpointEmbedder, server: EmbeddingServer
) -> None:
    """Two texts with the same beginning must not get the same vector."""
    server.cuts_at = WINDOW
    short, long = await embedder.embed(["short", "word " * 40])
    assert short.is_embeddable
    assert long.beyond_window
    assert not len(long.vector)


async def test_a_long_text_that_fits_is_embedded(embedder: EndpointEmbedder) -> None:
    """Many bytes may be few tokens; the server's count decides."""
    (made,) = await embedder.embed(["internationalisation of documentation"])
    assert made.is_embeddable
    assert made.n_tokens == 3


async def test_a_long_text_is_refused_where_nobody_counts(
    embedder: EndpointEmbedder, server: EmbeddingServer
) -> None:
    """Without usage, only what surely fits is believed to be whole."""
    server.change = lambda document: {name: document[name] for name in ("object", "data", "model")}
    short, long = await embedder.embed(["short", "internationalisation of documentation"])
    assert short.is_embeddable
    assert long.beyond_window


async def test_a_server_that_refuses_long_texts_refuses_only_those(
    embedder: EndpointEmbedder, server: EmbeddingServer
) -> None:
    """A 400 for a text that may be too long says that it is."""
    server.status = 400
    (made,) = await embedder.embed(["word " * 40])
    assert made.beyond_window
    with pytest.raises(EmbedderRefused):
        await embedder.embed(["short"])


async def test_shorter_vectors_are_asked_for_where_the_model_gives_longer_ones(
    embedder: EndpointEmbedder, server: EmbeddingServer
) -> None:
    """`dimensions` is sent only to a model whose own length is another, and from then on at once."""
    server.dimensions = 2 * DIMENSIONS
    for _ in range(2):
        (made,) = await embedder.embed(["one"])
        assert len(made.vector) == DIMENSIONS
    assert ["dimensions" in asked for asked in server.requests] == [False, True, True]


async def test_a_model_of_another_length_is_refused(
    embedder: EndpointEmbedder, server: EmbeddingServer
) -> None:
    """A server that was rolled to another model gives no vector that could be mixed in."""
    server.dimensions, server.knows_dimensions = DIMENSIONS + 1, False
    with pytest.raises(EmbedderRefused):
        await embedder.embed(["one"])


def _with(number: float) -> Change:
    def change(document: dict[str, Any]) -> dict[str, Any]:
        vector = [number, *document["data"][0]["embedding"][1:]]
        return document | {"data": [document["data"][0] | {"embedding": vector}]}

    return change


def _item(**fields: object) -> Change:
    return lambda document: document | {"data": [document["data"][0] | fields]}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_with(1e39), id="infinite as float32"),
        pytest.param(_item(embedding=[None] * DIMENSIONS), id="NaN, as JSON has it"),
        pytest.param(_item(embedding=[0.0] * DIMENSIONS), id="zeros"),
        pytest.param(_item(embedding=[1.0] * (DIMENSIONS - 1)), id="short"),
        pytest.param(_item(embedding="AAAA="), id="broken base64"),
        pytest.param(_item(embedding=None), id="none"),
        pytest.param(_item(index=1), id="index beyond"),
        pytest.param(_item(index="0"), id="index no number"),
        pytest.param(lambda document: document | {"data": []}, id="too few"),
        pytest.param(lambda document: document | {"data": document["data"] * 2}, id="too many"),
        pytest.param(lambda _: {"object": "list"}, id="no data"),
        pytest.param(lambda _: [], id="no object"),
        pytest.param(lambda _: "x" * 100_000, id="far too long"),
    ],
)
async def test_vectors_that_cannot_be_used_are_refused(
    embedder: EndpointEmbedder, server: EmbeddingServer, change: Change
) -> None:
    """Whatever is wrong with a vector, it never reaches a store."""
    server.change = change
    with pytest.raises(EmbedderRefused):
        await embedder.embed(["one"])


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_a_server_in_trouble_is_unavailable(
    embedder: EndpointEmbedder, server: EmbeddingServer, status: int
) -> None:
    """Trouble that may pass is told apart from refusal."""
    server.status = status
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(["one"])


@pytest.mark.parametrize("status", [401, 404, 302])
async def test_a_refusal_is_told_apart_from_trouble(
    embedder: EndpointEmbedder, server: EmbeddingServer, status: int
) -> None:
    """A wrong key or path does not pass by waiting, and no redirect is followed."""
    server.status = status
    with pytest.raises(EmbedderRefused):
        await embedder.embed(["one", "two"])


async def test_a_silent_server_costs_the_timeout_and_no_more(server: EmbeddingServer) -> None:
    """A server that takes the request and says nothing is given up on."""
    server.hold = asyncio.Event()
    embedder = EndpointEmbedder(EndpointSettings(server.url, IDENTITY, timeout_seconds=0.05))
    with pytest.raises(EmbedderUnavailable, match="in time"):
        await embedder.embed(["one"])
    await embedder.aclose()


async def test_a_dead_server_is_unavailable(server: EmbeddingServer) -> None:
    """A refused connection is an error of ours, without a stack of the client's."""
    await server.aclose()
    embedder = EndpointEmbedder(EndpointSettings(server.url, IDENTITY))
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(["one"])
    await embedder.aclose()
