"""Questions: what is cut out of a request, what is left to be exact, and which requests have none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.keys.canonical import canonical_json
from cachewright.policy.document import RoutePolicy
from cachewright.policy.question import MOST_CHARACTERS, Question, find_question
from cachewright.policy.reasons import SemanticReason

CHAT = RoutePolicy(name="chat", path="/v1/chat/completions", layers=("Exact",))
RESPONSES = CHAT.model_copy(update={"path": "/v1/responses"})
PROMPTS = CHAT.model_copy(update={"path": "/v1/completions"})
MARKS = {"question_between": ("<q>", "</q>")}
MARKED = CHAT.model_copy(update=MARKS)


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return one message."""
    return {"role": role, "content": content, **more}


def asked(*messages: dict[str, Any], route: RoutePolicy = CHAT, turns: int = 1) -> Question | SemanticReason:
    """Look for the question of a conversation."""
    name = "input" if route.path == RESPONSES.path else "messages"
    return find_question({"model": "m", name: list(messages)}, route, turns)


def text_of(found: Question | SemanticReason) -> str:
    """Return the question's text; fails where there is none."""
    assert isinstance(found, Question)
    return found.text


def test_the_last_users_text_is_the_question() -> None:
    """All before it, and every other field, is the rest."""
    body = {
        "model": "m",
        "seed": 1,
        "messages": [said("system", "Be brief."), said("user", "Why?", name="al")],
    }
    found = find_question(body, CHAT, 1)
    assert isinstance(found, Question)
    assert found.text == "Why?"
    assert found.where == "messages/1/content@0"
    assert found.rest == {**body, "messages": [said("system", "Be brief."), said("user", "", name="al")]}
    assert body["messages"] == [said("system", "Be brief."), said("user", "Why?", name="al")]


def test_of_several_text_parts_the_last_is_the_question() -> None:
    """The others are part of the rest, each by itself."""
    parts = [{"type": "text", "text": "Given this."}, {"type": "text", "text": "Why?"}]
    found = asked(said("user", parts))
    assert isinstance(found, Question)
    assert (found.text, found.where) == ("Why?", "messages/0/content/1/text@0")
    assert found.rest["messages"][0]["content"][0] == parts[0]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], SemanticReason.NO_QUESTION),
        (["hello"], SemanticReason.NO_QUESTION),
        ([said("user", "hi"), said("assistant", "And")], SemanticReason.NO_QUESTION),
        ([said("system", "hi")], SemanticReason.NO_QUESTION),
        ([said("user", " \n")], SemanticReason.NO_QUESTION),
        ([said("user", None)], SemanticReason.PARTS),
        ([said("user", [])], SemanticReason.PARTS),
        ([said("user", ["hi"])], SemanticReason.PARTS),
        ([said("user", [{"type": "image_url", "image_url": {"url": "x"}}])], SemanticReason.PARTS),
        ([said("system", [{"type": "file"}]), said("user", "hi")], SemanticReason.PARTS),
        ([said("user", [{"type": "text", "text": 5}])], SemanticReason.PARTS),
        ([said("tool", "5", tool_call_id="a"), said("user", "hi")], SemanticReason.TOOLS),
        ([said("assistant", "", tool_calls=[{}]), said("user", "hi")], SemanticReason.TOOLS),
        ([said("assistant", "", function_call={"name": "f"}), said("user", "hi")], SemanticReason.TOOLS),
        ([said("critic", "no"), said("user", "hi")], SemanticReason.TOOLS),
        ([said("user", "a"), said("user", "b")], SemanticReason.TURNS),
        ([said("user", "a"), said("assistant", "b"), said("user", "c")], SemanticReason.TURNS),
        ([said("user", "x" * (MOST_CHARACTERS + 1))], SemanticReason.NOT_EMBEDDABLE),
    ],
)
def test_what_is_no_plain_question_has_a_reason(messages: list[Any], reason: SemanticReason) -> None:
    """Such requests are left to the exact layer."""
    assert find_question({"messages": messages}, CHAT, 1) is reason


def test_max_turns_counts_what_users_said() -> None:
    """The history of a longer conversation is part of the rest."""
    history = [said("user", "a"), said("assistant", "b")]
    found = asked(*history, said("user", "c"), turns=2)
    assert isinstance(found, Question)
    assert (found.text, found.rest["messages"][:2]) == ("c", history)
    assert asked(*history, *history, said("user", "c"), turns=2) is SemanticReason.TURNS


def test_responses_take_a_text_or_messages() -> None:
    """Everything else among the input is somebody's tool."""
    assert text_of(find_question({"input": "Why?"}, RESPONSES, 1)) == "Why?"
    parts = [{"type": "input_text", "text": "Why?"}]
    assert text_of(asked(said("user", parts, type="message"), route=RESPONSES)) == "Why?"
    called = {"type": "function_call_output", "call_id": "a", "output": "5"}
    assert asked(called, said("user", "hi"), route=RESPONSES) is SemanticReason.TOOLS
    assert find_question({}, RESPONSES, 1) is SemanticReason.NO_QUESTION


def test_a_prompt_has_a_question_only_between_marks() -> None:
    """Nothing else tells it from the instructions around it."""
    prompt = "Answer briefly. <q>Why?</q> Thanks."
    assert find_question({"prompt": prompt}, PROMPTS, 1) is SemanticReason.NO_QUESTION
    marked = PROMPTS.model_copy(update=MARKS)
    found = find_question({"prompt": prompt}, marked, 1)
    assert isinstance(found, Question)
    assert (found.text, found.rest["prompt"]) == ("Why?", "Answer briefly. <q></q> Thanks.")
    assert find_question({"prompt": [prompt]}, marked, 1) is SemanticReason.NO_QUESTION


def test_other_paths_have_no_question() -> None:
    """Whatever they carry."""
    route = CHAT.model_copy(update={"path": "/v1/audio"})
    assert find_question({"messages": [said("user", "hi")]}, route, 1) is SemanticReason.NO_QUESTION


@pytest.mark.parametrize(
    "text",
    [
        "Why?",
        "<q>Why?",
        "Why?</q>",
        "</q>Why?<q>",
        "<q>one</q> <q>two</q>",
        "<q>a <q>b</q>",
        "<q>a</q> b</q>",
        "<q></q>",
    ],
)
def test_unclear_marks_leave_no_question(text: str) -> None:
    """Nobody moves the border by writing a mark into the question or into what is quoted around it."""
    assert asked(said("user", text), route=MARKED) is SemanticReason.NO_QUESTION


@given(st.text(), st.text(), st.text(), st.text())
def test_question_and_rest_say_all_that_the_request_said(
    frame: str, question: str, tail: str, system: str
) -> None:
    """The text put back at its place gives the request again, so no two requests have both parts alike."""
    text = f"{frame}<q>{question}</q>{tail}"
    found = asked(said("system", system), said("user", text), route=MARKED)
    if isinstance(found, SemanticReason):
        return
    at = int(found.where.partition("@")[2])
    left = found.rest["messages"][1]["content"]
    assert left[:at] + found.text + left[at:] == text
    assert found.rest["messages"][0]["content"] == system


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    )
)
def test_whatever_is_sent_is_cut_or_refused(value: Any) -> None:
    """No shape of a body raises."""
    for name in ("messages", "input", "prompt"):
        for route in (CHAT, RESPONSES, PROMPTS.model_copy(update=MARKS)):
            find_question({name: value}, route, 1)
            find_question({name: [{"role": "user", "content": value}]}, route, 1)


def test_texts_are_not_shown() -> None:
    """What a log might print of a question holds no word of it."""
    found = asked(said("user", "my secret"))
    assert "secret" not in repr(found)
    assert isinstance(found, Question)
    assert "secret" not in json.dumps(found.rest)
    assert canonical_json(found.rest)
