"""Chat requests as applications send them, with one habit each that breaks prefixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

Request = dict[str, Any]

RULES = "\n".join(
    f"{number}. {rule}"
    for number, rule in enumerate(
        (
            "Answer in the language of the question, and keep to what the manual says.",
            "Never promise a refund; name the page where it can be asked for.",
            "Quote part numbers exactly as they stand in the catalogue.",
            "Say so plainly where the manual has nothing on a question.",
            "Give steps as a numbered list, one action in each, and say how long they take.",
            "Offer to hand over to a person after the second question on the same fault.",
        ),
        1,
    )
)
"""About ninety tokens that are the same in every request."""

TOOLS: list[Request] = [
    {"type": "function", "function": {"name": name, "description": f"{name} of an order", "parameters": {}}}
    for name in ("status", "cancel", "invoice", "address", "return")
]


def chat(system: str, question: str, tools: list[Request] | None = None, **fields: object) -> Request:
    """Build one request, with the log's own fields beside it."""
    body: Request = {
        "model": "m",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": question}],
    }
    if tools is not None:
        body["tools"] = tools
    return {**fields, "body": body}


def log_of(count: int, system: Callable[[int], str]) -> bytes:
    """Write a log of `count` requests, each with its own question and the system text of its number."""
    return as_lines(chat(system(n), f"Question {n}: what about part {n * 37}?") for n in range(count))


def as_lines(requests: Iterable[Request]) -> bytes:
    """Write requests as JSON lines, keys in the order they have."""
    return b"".join(orjson.dumps(request) + b"\n" for request in requests)
