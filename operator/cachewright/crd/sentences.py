"""From pydantic's structural errors to sentences that say what to write. Called by `validation`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, Final

from pydantic_core import ErrorDetails

from cachewright.api.base import VALIDATIONS_KEY
from cachewright.crd.schema import Schema, properties_of

PATTERN_WORDS: Final = {
    r"^[!-~]+$": "must be printable ASCII characters without spaces",
    r'^/[!-"$->@-~]*$': "must be an absolute path such as /v1/models, without ? and #",
    r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$": "must be the name of an HTTP header, such as X-Tenant-Id",
    r"^([-a-z0-9.]+/)?v[0-9]+[a-z0-9]*$": "must be an API version such as apps/v1",
    r"^[0-9a-f]{16}$": "must be 16 hex digits, in lower case",
    r"^[A-Z][A-Za-z0-9]*$": "must be a kind such as Deployment",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "must be lower-case letters, digits and dashes",
    r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": "must be lower-case letters, digits, dashes and dots",
    r"^[-._a-zA-Z0-9]+$": "must be letters, digits, dashes, dots and underscores",
    r"^v?[0-9]{1,6}(\.[0-9]{1,6}){0,2}([-.+]?[A-Za-z][-.+0-9A-Za-z]{0,40})?$": (
        "must be a version such as 0.32.0"
    ),
    r"^[ -~]+$": "must be printable ASCII characters",
    r"^--[a-z][-_a-z0-9]*$": "must be a flag such as --block-size",
    r"^/[-._/0-9A-Za-z]*$": "must be an absolute path of letters, digits, dashes, dots and underscores",
    r"^(tcp|ipc|inproc)://[!-~]+$": "must be a ZeroMQ endpoint such as tcp://*:5557",
    r"^[0-9]+(\.[0-9]{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$": "must be a quantity such as 500m, 2 or 1Gi",
}
"""What to write where a pattern says it only to programs, and no rule stands beside it to say it in words."""

_SHOWN_CHARACTERS: Final = 60

Teller = Callable[[ErrorDetails, Schema], str]


def sentence(error: ErrorDetails, schema: Schema) -> str:
    """Say what is wrong and what to write; `schema` is the field's, for an unknown field its parent's."""
    teller = _TELLERS.get(error["type"])
    return teller(error, schema) if teller else error["msg"]


def unknown_field(name: str, known: Iterable[str]) -> str:
    """Refuse a field, naming the known one that is most like it."""
    options = {_plain(option): option for option in known}
    near = difflib.get_close_matches(_plain(name), options, n=1)
    hint = f"did you mean {options[near[0]]}?" if near else f"known here: {', '.join(options.values())}"
    return f"is not a known field; {hint}"


def shown(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Name a value within a sentence, cut short."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "an object"
        case list():
            return "a list"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _missing(_error: ErrorDetails, schema: Schema) -> str:
    description = schema.get("description")
    return f"is required: {description}" if description else "is required"


def _unknown(error: ErrorDetails, schema: Schema) -> str:
    return unknown_field(str(error["loc"][-1]), properties_of(schema))


def _not_text(error: ErrorDetails, _schema: Schema) -> str:
    value = error["input"]
    if isinstance(value, bool | int | float):
        return f'must be text; write it in quotes: "{shown(value)}"'
    return f"must be text, not {shown(value)}"


def _not_a_choice(error: ErrorDetails, schema: Schema) -> str:
    # The object's own apiVersion and kind are no enum in a CRD; the models know them.
    choices = [str(choice) for choice in schema.get("enum", [error["ctx"]["expected"].strip("'")])]
    words = f"must be one of {', '.join(choices)}" if len(choices) > 1 else f"must be {choices[0]}"
    return f"{words}, not {shown(error['input'])}"


def _not_matching(error: ErrorDetails, schema: Schema) -> str:
    pattern = error["ctx"]["pattern"]
    rules = schema.get(VALIDATIONS_KEY)
    words = rules[0]["message"] if rules else PATTERN_WORDS.get(pattern, f"must match {pattern}")
    return f"{words}, not {shown(error['input'])}"


def _must_be(what: str) -> Teller:
    return lambda error, _schema: f"must be {what}, not {shown(error['input'])}"


def _too_short(error: ErrorDetails, _schema: Schema) -> str:
    least = error["ctx"]["min_length"]
    if least == 1:
        return "must not be empty"
    return f"must have at least {least} characters; it has {_size(error['input'])}"


def _bounded(words: str, key: str) -> Teller:
    return lambda error, _schema: words.format(error["ctx"][key], size=_size(error["input"]))


def _size(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return str(len(value)) if isinstance(value, str | list | dict) else shown(value)


_TELLERS: Final[dict[str, Teller]] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "string_type": _not_text,
    "literal_error": _not_a_choice,
    "string_pattern_mismatch": _not_matching,
    "float_type": _must_be("a number"),
    "int_type": _must_be("a whole number"),
    "int_from_float": _must_be("a whole number"),
    "bool_type": _must_be("true or false"),
    "list_type": _must_be("a list"),
    "dict_type": _must_be("an object (a mapping)"),
    "model_type": _must_be("an object (a mapping)"),
    "int_or_string": _must_be("a whole number or a quantity such as 500m"),
    "string_too_short": _too_short,
    "string_too_long": _bounded("must have at most {} characters; it has {size}", "max_length"),
    "too_long": _bounded("must have at most {} entries; it has {size}", "max_length"),
    "greater_than_equal": _bounded("must be at least {}; it is {size}", "ge"),
    "less_than_equal": _bounded("must be at most {}; it is {size}", "le"),
}
