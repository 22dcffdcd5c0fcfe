"""Paths: from a request's method and raw path to the place it is passed on to, or to a refusal. Pure.

Only inference and what the policy allows by name is passed on, so `/reset_prefix_cache` and the loading of
adapters stay out of reach. Paths are compared as sent, byte by byte: nothing is decoded or resolved here that
the upstream might decode or resolve in another way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

INFERENCE_PATHS: Final = {
    "/v1/audio/speech": "POST",
    "/v1/audio/transcriptions": "POST",
    "/v1/audio/translations": "POST",
    "/v1/chat/completions": "POST",
    "/v1/completions": "POST",
    "/v1/embeddings": "POST",
    "/v1/images/generations": "POST",
    "/v1/messages": "POST",
    "/v1/models": "GET",
    "/v1/moderations": "POST",
    "/v1/rerank": "POST",
    "/v1/responses": "POST",
    "/v1/score": "POST",
}
"""Paths that compute an answer from what is sent, or list models, each with its only method.

Stored responses, files, batches, fine-tuning, tokenizers and everything an engine administers are not here.
"""

HARMLESS_METHODS: Final = ("HEAD", "OPTIONS")
"""Methods that compute nothing; what they say about an inference path is the upstream's to answer."""

_MODEL_PATH: Final = re.compile(r"/v1/models/[A-Za-z0-9._:@/-]+")
_API_ROOT: Final = "/v1"
_UNSAFE: Final = re.compile(r"%2e|%2f|%5c|%25|%00|\\|//|/\.{1,2}(/|$)|[^\x21-\x7e]", re.IGNORECASE)
"""What a server could read as another path: dot segments, and slashes, dots or percent signs in disguise."""


@dataclass(frozen=True, slots=True)
class PathAllowed:
    """The request may be passed on."""

    path: str


@dataclass(frozen=True, slots=True)
class PathRefused:
    """The path is neither inference nor allowed by name."""


@dataclass(frozen=True, slots=True)
class MethodRefused:
    """The path takes another method."""

    allowed: str


def judge_path(
    method: str, raw_path: bytes, allowed_paths: Sequence[str]
) -> PathAllowed | PathRefused | MethodRefused:
    """Decide on a request; an allowed path that ends with a slash allows everything below it.

    HEAD and OPTIONS are passed on for every path that is: browsers ask so whether they may send the rest.
    """
    path = raw_path.decode("latin-1")
    if _UNSAFE.search(path):
        return PathRefused()
    if any(
        path == allowed or (allowed.endswith("/") and path.startswith(allowed)) for allowed in allowed_paths
    ):
        return PathAllowed(path)
    wanted = "GET" if _MODEL_PATH.fullmatch(path) else INFERENCE_PATHS.get(path)
    if wanted is None:
        return PathRefused()
    return PathAllowed(path) if method in (wanted, *HARMLESS_METHODS) else MethodRefused(wanted)


def upstream_url(base_url: str, path: str, query: bytes) -> str:
    """Map a path of the gateway to the upstream's: `/v1/x` to the base URL + `/x`.

    Other paths are relative to the base URL without its `/v1`, where it ends so.
    """
    if path.startswith(f"{_API_ROOT}/"):
        url = base_url + path.removeprefix(_API_ROOT)
    else:
        url = base_url.removesuffix(_API_ROOT) + path
    return f"{url}?{query.decode('latin-1')}" if query else url
