"""Answers to requests for embeddings: from a server's answer to vectors, and from vectors to an answer. Pure.

Each vector is float32, little-endian, as the layer keeps it; numbers are written as short as float32 needs.
Called by `gateway.embeddings`. Numbers need numpy, which a gateway without the layer does not load.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from cachewright.embedders.protocol import checked
from cachewright.embedders.wire import FLOAT_BYTES, floats_of, little_endian
from cachewright.errors import EmbedderRefused
from cachewright.gateway.embedding_source import SourceAnswer
from cachewright.gateway.headers import first_of
from cachewright.layers.embedding import Computed, Held


@dataclass(frozen=True, slots=True)
class SourceVectors:
    """What an embedder answered."""

    vectors: list[bytes]
    """In the order of the inputs."""
    tokens: list[int] | None
    """Of each input, where the embedder counts them one by one."""
    prompt_tokens: int
    """Of all inputs; 0 where it does not say."""
    model: str
    """Which model it says it is; empty where it does not say."""


def read_vectors(answer: SourceAnswer, count: int, dimensions: int) -> SourceVectors | None:
    """Read an answer with one vector for each of `count` inputs; None for anything that must not be kept."""
    is_plain = first_of(answer.headers, b"content-encoding") in (b"", b"identity")
    if answer.status != 200 or not is_plain:
        return None
    try:
        document = orjson.loads(answer.body)
        items = document["data"]
        if len(items) != count:
            return None
        vectors: list[bytes] = [b""] * count
        tokens = [0] * count
        for position, item in enumerate(items):
            index = item.get("index", position)
            if type(index) is not int or not 0 <= index < count or vectors[index]:
                return None
            vector = checked(floats_of(item["embedding"]), dimensions)
            vectors[index] = little_endian(vector).tobytes()
            tokens[index] = _count(item.get("tokens"))
        total = _count((document.get("usage") or {}).get("prompt_tokens"))
        model = document.get("model")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, EmbedderRefused):
        return None
    return SourceVectors(
        vectors, tokens if all(tokens) else None, total, model if isinstance(model, str) else ""
    )


def answer_of(vectors: Sequence[Held | Computed], model: str, encoding: Literal["float", "base64"]) -> bytes:
    """Write an answer with these vectors, in their order."""
    tokens = sum(vector.n_tokens for vector in vectors)
    document = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _shown(vector.vector, encoding)}
            for index, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)


def has_length(vector: bytes, dimensions: int) -> bool:
    """Tell whether a stored vector has this many numbers."""
    return len(vector) == FLOAT_BYTES * dimensions


def _shown(vector: bytes, encoding: Literal["float", "base64"]) -> object:
    if encoding == "base64":
        return base64.b64encode(vector).decode()
    import numpy as np

    return np.frombuffer(vector, "<f4")


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
