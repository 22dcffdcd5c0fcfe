"""`/v1/completions`: which requests are cached, and which answers may be stored."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cachewright.keys.context import Context
from cachewright.keys.digest import ExactQuestion, exact_digest
from cachewright.policy.cacheable import why_not_cached
from cachewright.policy.reasons import BypassReason, RefusalReason
from cachewright.policy.validate import Answer, storable_body
from tests.unit.test_policy_cacheable import ENVELOPE, POLICY, ROUTE

PATH = "/v1/completions"
HERE = replace(ENVELOPE, route=ROUTE.model_copy(update={"path": PATH}))
BODY: dict[str, Any] = {"model": "llama", "prompt": "Once upon", "temperature": 0}


def choice(**changes: Any) -> dict[str, Any]:
    """Return a choice with some fields changed."""
    return {"index": 0, "text": " a time.", "logprobs": None, "finish_reason": "stop", **changes}


def verdict(request: dict[str, Any], *choices: object, **changes: Any) -> bytes | RefusalReason:
    """Judge an answer with these choices."""
    document = {"id": "1", "object": "text_completion", "model": "llama", "choices": choices, **changes}
    return storable_body(
        Answer(200, "application/json", "", json.dumps(document).encode()), request, PATH, POLICY
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, None),
        ({"prompt": ["one", "two"]}, None),
        ({"prompt": [1, 2, 3]}, None),
        ({"prompt": [[1, 2], [3]]}, None),
        ({"suffix": "end", "echo": True, "logprobs": 2}, None),
        ({"n": 2}, BypassReason.N),
        ({"best_of": 1}, BypassReason.SAMPLING),
        ({"best_of": 3}, BypassReason.SAMPLING),
        ({"temperature": 1}, BypassReason.SAMPLING),
        ({"stream": True}, None),
        ({"stream": 1}, BypassReason.AMBIGUOUS_JSON),
        ({"model": "other"}, BypassReason.MODEL),
    ],
)
def test_which_requests_are_cached(fields: dict[str, Any], reason: BypassReason | None) -> None:
    """Every form of prompt is; streams, several choices and sampling are not."""
    assert why_not_cached(HERE, {**BODY, **fields}, POLICY) == reason


def test_every_field_is_in_the_key() -> None:
    """No two of these requests share an answer, in whatever form their prompts come."""
    variants: list[dict[str, Any]] = [
        {},
        {"prompt": ["Once upon"]},
        {"prompt": ["Once", "upon"]},
        {"prompt": [1, 23]},
        {"prompt": [12, 3]},
        {"prompt": [[1, 23]]},
        {"prompt": [[1], [23]]},
        {"suffix": "end"},
        {"echo": True},
        {"logprobs": 1},
        {"best_of": 1},
        {"n": 1},
        {"max_tokens": 5},
    ]
    digests = {
        exact_digest(b"k" * 32, "tag", ExactQuestion(PATH, "", (), {**BODY, **variant}, Context()))
        for variant in variants
    }
    assert len(digests) == len(variants)


@pytest.mark.parametrize(
    ("request_fields", "choices"),
    [
        ({}, [choice()]),
        ({}, [choice(logprobs={"tokens": [" a"]})]),
        ({"prompt": ["one", "two"]}, [choice(), choice(index=1)]),
        ({"prompt": [1, 2, 3]}, [choice()]),
        ({"prompt": [[1, 2], [3]]}, [choice(), choice(index=1)]),
        ({"prompt": []}, [choice()]),
        ({"echo": True}, [choice(text="Once upon a time.")]),
        ({"response_format": {"type": "json_object"}}, [choice(text='{"a": 1}')]),
    ],
)
def test_a_whole_answer_is_stored(request_fields: dict[str, Any], choices: list[Any]) -> None:
    """One choice for each prompt, each ended by itself."""
    assert isinstance(verdict({**BODY, **request_fields}, *choices), bytes)


@pytest.mark.parametrize(
    ("request_fields", "choices", "reason"),
    [
        ({}, [], RefusalReason.UNPARSABLE),
        ({}, ["text"], RefusalReason.UNPARSABLE),
        ({}, [{"message": {"content": "chat"}, "finish_reason": "stop"}], RefusalReason.UNPARSABLE),
        ({}, [choice(), choice()], RefusalReason.UNPARSABLE),
        ({"prompt": ["one", "two"]}, [choice()], RefusalReason.UNPARSABLE),
        ({"prompt": [[1], [2]]}, [choice()], RefusalReason.UNPARSABLE),
        ({}, [choice(finish_reason="length")], RefusalReason.FINISH_REASON),
        ({}, [choice(finish_reason=None)], RefusalReason.FINISH_REASON),
        ({}, [choice(finish_reason="content_filter")], RefusalReason.FINISH_REASON),
        ({}, [choice(text="")], RefusalReason.EMPTY),
        ({}, [choice(text=" \n")], RefusalReason.EMPTY),
        ({"prompt": ["one", "two"]}, [choice(), choice(text="")], RefusalReason.EMPTY),
        ({"echo": True}, [choice(text="Once upon")], RefusalReason.EMPTY),
        ({"response_format": {"type": "json_object"}}, [choice(text="a")], RefusalReason.INVALID_FORMAT),
    ],
)
def test_what_is_not_stored(
    request_fields: dict[str, Any], choices: list[Any], reason: RefusalReason
) -> None:
    """Cut off, empty, failed answers, and those that lack a prompt's choice."""
    assert verdict({**BODY, **request_fields}, *choices) is reason


def test_another_model_is_not_stored() -> None:
    """The rules for all endpoints hold here too."""
    assert verdict(BODY, choice(), model="fallback") is RefusalReason.MODEL
