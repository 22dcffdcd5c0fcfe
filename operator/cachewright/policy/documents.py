"""Documents: from a request to the ids of the documents that its answer may quote. Pure.

Ids come with the request, in a header or in its body's `metadata`, or stand in its text between two marks
that its route names; all of them count. They are part of the key in the order they were found in, each once.

Called by `cacheable`, and by the gateway for the key of a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import orjson

from cachewright.policy.body import Body
from cachewright.policy.document import RoutePolicy
from cachewright.policy.reasons import BypassReason

DOCUMENTS_HEADER: Final = "cachewright-documents"
"""Header with ids: separated by commas, or a JSON list of strings."""

DOCUMENTS_METADATA: Final = "cachewright_documents"
"""Member of `metadata` with the same, or with a real list; reachable with every OpenAI client."""

MAX_DOCUMENTS: Final = 64
MAX_ID_BYTES: Final = 256


def find_documents(
    header_values: Iterable[bytes], body: Body, route: RoutePolicy
) -> tuple[str, ...] | BypassReason:
    """Return the ids that a request names, or why it cannot be cached."""
    found: dict[str, None] = {}
    try:
        for name in _all_ids(header_values, body, route):
            if not 0 < len(name.encode()) <= MAX_ID_BYTES:
                return BypassReason.DOCUMENTS
            found[name] = None
            if len(found) > MAX_DOCUMENTS:
                return BypassReason.DOCUMENTS
    except ValueError:  # of UTF-8, of JSON, or ours
        return BypassReason.DOCUMENTS
    return BypassReason.NO_DOCUMENTS if route.documents_required and not found else tuple(found)


def _all_ids(header_values: Iterable[bytes], body: Body, route: RoutePolicy) -> Iterator[str]:
    for value in header_values:
        yield from _ids(value.decode())
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping) and (declared := metadata.get(DOCUMENTS_METADATA)) is not None:
        yield from _ids(declared)
    if route.documents_between is not None:
        for text in _texts(body):
            yield from _between(text, *route.documents_between)


def _ids(declared: object) -> Iterator[str]:
    """Yield the ids of a list, of a list in JSON, or of a text with commas."""
    if isinstance(declared, str):
        if not declared.lstrip().startswith("["):
            yield from filter(None, (part.strip() for part in declared.split(",")))
            return
        declared = orjson.loads(declared)
    if not isinstance(declared, list):
        raise ValueError("documents are neither a text nor a list")  # noqa: TRY004 - of the value, as above
    for name in declared:
        if not isinstance(name, str):
            raise ValueError("the id of a document is no text")  # noqa: TRY004 - as above
        yield name.strip()


def _between(text: str, start: str, end: str) -> Iterator[str]:
    """Yield what stands between a start and the end that follows it, with no other start between.

    So a start that is never ended, in what a user wrote, hides none of the ids after it.
    """
    for piece in text.split(start)[1:]:
        name, ended, _ = piece.partition(end)
        if ended and name.strip():
            yield name.strip()


def _texts(body: Body) -> Iterator[str]:
    """Yield every text of a request, in an order that does not depend on how its objects are spelled."""
    waiting: list[object] = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting += (value[name] for name in sorted(value, reverse=True))
        elif isinstance(value, list):
            waiting += reversed(value)
