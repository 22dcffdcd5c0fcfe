"""The wire form of `/v1/embeddings`: from an answer of a server to embeddings, checked. Pure.

Read by the endpoint client, written by the server of the built-in model. That server adds two fields to each
item, `tokens` and `unknown`, which other servers lack.
"""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from cachewright.embedders.protocol import Embedding, checked
from cachewright.errors import EmbedderRefused

FLOAT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """What a server answered to one call."""

    embeddings: list[Embedding]
    """In the order of the texts. A count of tokens is known for each where the server tells it."""
    prompt_tokens: int
    """Of all texts together; 0 where the server does not say."""


def read_answer(body: bytes, count: int, dimensions: int) -> WireAnswer:
    """Read the answer to `count` texts; raises EmbedderRefused for anything that cannot be used."""
    try:
        document = orjson.loads(body)
        items = document["data"]
        if len(items) != count:
            raise EmbedderRefused(f"the embedder gave {len(items)} vectors for {count} texts")
        placed: list[Embedding | None] = [None] * count
        for position, item in enumerate(items):
            index = item.get("index", position)
            if not isinstance(index, int) or not 0 <= index < count or placed[index] is not None:
                raise EmbedderRefused(f"the embedder gave the index {index!r} wrongly or twice")
            placed[index] = _read_item(item, dimensions)
        tokens = (document.get("usage") or {}).get("prompt_tokens")
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise EmbedderRefused(f"the embedder's answer is no list of embeddings: {type(e).__name__}") from e
    embeddings = [embedding for embedding in placed if embedding is not None]
    return WireAnswer(embeddings, tokens if isinstance(tokens, int) and tokens > 0 else 0)


def floats_of(value: str | Iterable[float]) -> array[float]:
    """Read a vector that is a list of numbers, or base64 of little-endian float32.

    Raises ValueError or TypeError for anything else.
    """
    if not isinstance(value, str):
        return array("f", value)
    raw = base64.b64decode(value, validate=True)
    return little_endian(array("f", raw))


def base64_of(vector: array[float]) -> str:
    """Write a vector as the OpenAI API does under `encoding_format: base64`."""
    return base64.b64encode(little_endian(vector).tobytes()).decode()


def little_endian(vector: array[float]) -> array[float]:
    """Return a copy in little-endian order on every machine, or back from it."""
    vector = vector[:]
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def _read_item(item: dict[str, Any], dimensions: int) -> Embedding:
    vector = checked(floats_of(item["embedding"]), dimensions)
    tokens = item.get("tokens")
    return Embedding(
        vector,
        n_tokens=tokens if isinstance(tokens, int) and tokens > 0 else 0,
        has_unknown=item.get("unknown") is True,
    )
