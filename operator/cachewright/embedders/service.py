"""`/v1/embeddings` of the built-in model: from a request's body to an answer in the OpenAI API's form.

Each item of an answer also says how many tokens its text had and whether one of them was unknown. Called by
the server of `cachewright embedder`, and by local mode's gateway without a server between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson

from cachewright.embedders.builtin import BuiltinEmbedder
from cachewright.embedders.protocol import Embedding
from cachewright.embedders.wire import base64_of
from cachewright.errors import EmbedderOverloaded, EmbedderUnavailable, InvalidInput
from cachewright.keys.embedding_identity import BUILTIN

MOST_INPUTS: Final = 2048
"""Inputs in one request, as OpenAI has it."""

NAMES: Final = frozenset({BUILTIN.model, f"sentence-transformers/{BUILTIN.model}"})
"""Names that requests may ask for."""

Input: TypeAlias = "str | list[int]"
"""A text, or the model's tokens of one."""


@dataclass(frozen=True, slots=True)
class ServiceReply:
    """Status and JSON body."""

    status: int
    body: bytes


class EmbeddingService:
    """Answers requests with the built-in model."""

    def __init__(self, embedder: BuiltinEmbedder) -> None:
        self._embedder = embedder

    async def answer(self, body: bytes) -> ServiceReply:
        """Answer one request; never raises on purpose."""
        try:
            request = _Request.parse(body)
            embeddings = await self._embedder.embed_inputs(request.inputs)
        except InvalidInput as e:
            return problem(400, "invalid_request", str(e))
        except EmbedderOverloaded as e:
            return problem(429, "overloaded", str(e))
        except EmbedderUnavailable as e:
            return problem(503, "unavailable", str(e))
        for index, embedding in enumerate(embeddings):
            if embedding.beyond_window:
                return problem(
                    400,
                    "context_length_exceeded",
                    f"input {index} is longer than the model's window of {BUILTIN.max_tokens} tokens",
                )
        return ServiceReply(200, _document(request, embeddings))

    def models(self) -> ServiceReply:
        """List the one model."""
        model = {"id": BUILTIN.model, "object": "model", "created": 0, "owned_by": "cachewright"}
        return ServiceReply(200, orjson.dumps({"object": "list", "data": [model]}))


def problem(status: int, code: str, message: str) -> ServiceReply:
    """Make an error in the form that OpenAI clients read."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return ServiceReply(status, orjson.dumps({"error": error}))


@dataclass(frozen=True, slots=True)
class _Request:
    inputs: list[Input]
    as_base64: bool

    @classmethod
    def parse(cls, body: bytes) -> _Request:
        """Read a request; raises InvalidInput, which says what to write instead."""
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as e:
            raise InvalidInput("the body must be JSON") from e
        if not isinstance(document, dict):
            raise InvalidInput("the body must be a JSON object")
        if document.get("model") not in NAMES:
            raise InvalidInput(f"model must be {BUILTIN.model}")
        if document.get("dimensions") not in (None, BUILTIN.dimensions):
            raise InvalidInput(f"dimensions must be {BUILTIN.dimensions}, or left out")
        form = document.get("encoding_format", "float")
        if form not in ("float", "base64", None):
            raise InvalidInput("encoding_format must be float or base64")
        return cls(_inputs(document.get("input")), form == "base64")


def _inputs(given: object) -> list[Input]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not given:
        raise InvalidInput("input must be a text, a list of texts, a list of tokens or a list of such lists")
    if all(isinstance(item, str) for item in given):
        inputs: list[Input] = given
    elif _are_tokens(given):
        inputs = [given]
    elif all(isinstance(item, list) and item and _are_tokens(item) for item in given):
        inputs = given
    else:
        raise InvalidInput(
            "input must not mix texts and tokens, and tokens must be whole numbers of the model"
        )
    if len(inputs) > MOST_INPUTS:
        raise InvalidInput(f"input must have at most {MOST_INPUTS} items")
    return inputs


def _are_tokens(items: list[Any]) -> bool:
    return all(type(item) is int and 0 <= item < 2**31 for item in items)


def _document(request: _Request, embeddings: Sequence[Embedding]) -> bytes:
    tokens = sum(embedding.n_tokens for embedding in embeddings)
    return orjson.dumps(
        {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": base64_of(made.vector) if request.as_base64 else made.vector.tolist(),
                    "tokens": made.n_tokens,
                    "unknown": made.has_unknown,
                }
                for index, made in enumerate(embeddings)
            ],
            "model": BUILTIN.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )
