"""Sampling: whether two answers to one request are interchangeable, by the rule of its route. Pure.

`Strict` takes only what asks for no sampling by itself. `ForceZero` takes what may be sampled and makes it
ask for none. `AssumeDeterministic` also takes what names no temperature, for models that refuse one.

Called by `cacheable`, and by the gateway's flow to rewrite what a route forces.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from cachewright.policy.body import Body, is_number

Sampling = Literal["Strict", "ForceZero", "AssumeDeterministic"]

SAMPLING_FIELDS: Final = ("top_k", "min_p", "use_beam_search", "num_beams", "best_of")
"""Fields that ask for another way to choose tokens; naming one at all means sampled, under every rule."""

FORCED: Final = {"temperature": 0, "top_p": 1}
"""What ForceZero writes into a request."""

FORCED_HEADER: Final = "cachewright-forced"
"""Says to the client what was written into its request."""

FORCED_VALUE: Final = ", ".join(f"{name}={value}" for name, value in FORCED.items())


def is_interchangeable(body: Body, sampling: Sampling) -> bool:
    """Tell whether any answer to this request will do for the next one."""
    if any(name in body for name in SAMPLING_FIELDS):
        return False
    match sampling:
        case "Strict":
            return _is_strict(body)
        case "AssumeDeterministic":
            return _is_strict(body) or (body.get("temperature") is None and _takes_every_token(body))
        case "ForceZero":
            # What is no number is left for the upstream to refuse.
            return all(_is_number_or_absent(body.get(name)) for name in FORCED)


def forced(body: Body) -> dict[str, Any]:
    """Return a request with temperature 0 and top_p 1, whatever it said of them."""
    return {**body, **FORCED}


def _is_strict(body: Body) -> bool:
    return is_number(body.get("temperature"), 0) and is_number(body.get("top_p", 1), 1)


def _takes_every_token(body: Body) -> bool:
    top_p = body.get("top_p")
    return top_p is None or is_number(top_p, 1)


def _is_number_or_absent(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
