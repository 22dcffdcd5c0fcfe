"""Requests for embeddings: from a body to its inputs, and from vectors to an answer's items. Pure.

Called by the gateway for `/v1/embeddings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

Input: TypeAlias = "str | list[int]"
"""A text, or a model's tokens of one."""

MOST_INPUTS: Final = 4096
"""Inputs that are looked up one by one; a longer list is passed on as it is."""

_NOT_IN_THE_KEY: Final = frozenset({"model", "input", "encoding_format", "user"})
"""Fields that change no vector: the model is in the keyspace, the form is ours, the user is no input."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """A request whose vectors may be cached."""

    document: dict[str, Any]
    """As it was sent."""
    inputs: tuple[Input, ...]
    encoding: Literal["float", "base64"]
    dimensions: int
    """Length of the vectors that were asked for."""

    @property
    def settings(self) -> dict[str, Any]:
        """Fields that may change a vector, known to us or not; the model's own length says nothing new."""
        return {name: value for name, value in self.document.items() if name not in _NOT_IN_THE_KEY}

    def for_inputs(self, inputs: Sequence[Input]) -> dict[str, Any]:
        """Return the same request for some of its inputs."""
        return {**self.document, "input": list(inputs)}


def read_request(document: dict[str, Any], dimensions: int) -> EmbeddingRequest | None:
    """Read a request to a model with vectors of this length; None for one that we do not understand."""
    inputs = _inputs(document.get("input"))
    encoding = document.get("encoding_format", "float")
    asked = document.get("dimensions")
    if asked == dimensions and type(asked) is int:
        document = {name: value for name, value in document.items() if name != "dimensions"}
    elif asked is not None:
        if type(asked) is not int or asked < 1:
            return None
        dimensions = asked
    if inputs is None or encoding not in ("float", "base64"):
        return None
    return EmbeddingRequest(document, inputs, encoding, dimensions)


def _inputs(given: object) -> tuple[Input, ...] | None:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list) or not 0 < len(given) <= MOST_INPUTS:
        return None
    if all(isinstance(item, str) for item in given):
        return tuple(given)
    if _are_tokens(given):
        return (given,)
    if all(isinstance(item, list) and item and _are_tokens(item) for item in given):
        return tuple(given)
    return None


def _are_tokens(items: list[Any]) -> bool:
    return all(type(item) is int for item in items)


def shared_out(tokens: int, inputs: Sequence[Input]) -> list[int]:
    """Share the tokens of a batch out among its inputs, by their size, so that the parts add up.

    Servers count a batch as a whole. A list of tokens counts itself.
    """
    sizes = [len(given if isinstance(given, list) else given.encode("utf-8", "replace")) for given in inputs]
    total = sum(sizes) or 1
    ends = [tokens * size // total for size in accumulate(sizes)]
    return [end - before for before, end in zip([0, *ends], ends, strict=False)]
