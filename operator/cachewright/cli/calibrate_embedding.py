"""Similarities for `cachewright calibrate`: from pairs of texts, through an embedder, to cosines."""

from __future__ import annotations

import argparse
import math
from array import array
from collections.abc import Callable, Sequence
from itertools import islice
from operator import mul
from pathlib import Path
from typing import Final

from cachewright.embedders.protocol import Embedder
from cachewright.errors import InvalidInput
from cachewright.keys.embedding_identity import EmbeddingIdentity

BUILTIN_NAME: Final = "builtin"
TEXTS_AT_ONCE: Final = 32


def add_embedder_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name an embedder."""
    parser.add_argument(
        "--embedder",
        default=BUILTIN_NAME,
        metavar="URL",
        help="builtin, or the base URL of an OpenAI-compatible server (default: builtin)",
    )
    parser.add_argument("--model", default="", help="with a URL: the model's name")
    parser.add_argument("--revision", default="", help="with a URL: the model's revision, as in the object")
    parser.add_argument("--dimensions", type=int, default=0, help="with a URL: length of its vectors")
    parser.add_argument("--max-tokens", type=int, default=0, help="with a URL: the model's window")
    parser.add_argument("--api-key-file", metavar="FILE", help="with a URL: file with the key it asks for")


def embedder_of(options: argparse.Namespace) -> Embedder:
    """Open the embedder that the options name, inside a running loop; raises InvalidInput."""
    if options.embedder == BUILTIN_NAME:
        from cachewright.embedders.builtin import BuiltinEmbedder

        return BuiltinEmbedder()
    if not options.embedder.startswith(("http://", "https://")):
        raise InvalidInput(f"--embedder {options.embedder!r} is neither builtin nor the URL of a server")
    if not (options.model and options.dimensions > 0 and options.max_tokens > 0):
        raise InvalidInput(
            "--embedder URL needs --model, --dimensions and --max-tokens, as the object has them"
        )
    from cachewright.embedders.endpoint import EndpointEmbedder, EndpointSettings

    identity = EmbeddingIdentity(
        "endpoint", options.model, options.revision, options.dimensions, options.max_tokens
    )
    key = Path(options.api_key_file).read_text("utf-8").strip() if options.api_key_file else None
    return EndpointEmbedder(EndpointSettings(options.embedder.rstrip("/"), identity, api_key=key))


async def similarities(
    embedder: Embedder, pairs: Sequence[tuple[str, str]], progress: Callable[[int, int], None]
) -> list[float | None]:
    """Return each pair's cosine, None where a text cannot be embedded as a whole; each is embedded once.

    Raises EmbedderError.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    vectors: dict[str, array[float] | None] = {}
    waiting = iter(texts)
    while batch := list(islice(waiting, TEXTS_AT_ONCE)):
        for text, embedding in zip(batch, await embedder.embed(batch), strict=True):
            vectors[text] = embedding.vector if embedding.is_embeddable else None
        progress(len(vectors), len(texts))
    return [_cosine(vectors[one], vectors[other]) for one, other in pairs]


def _cosine(one: array[float] | None, other: array[float] | None) -> float | None:
    if one is None or other is None:
        return None
    return _dot(one, other) / math.sqrt(_dot(one, one) * _dot(other, other))


def _dot(one: array[float], other: array[float]) -> float:
    return math.fsum(map(mul, one, other))
