"""A user's arguments and ours: what contradicts, what is kept, what is added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.engines.arguments import merge, missing_arguments
from cachewright.engines.configuring import configure
from cachewright.engines.settings import Engine, PrefixSettings
from cachewright.engines.versions import EngineVersion

VLLM = configure(Engine.VLLM, EngineVersion(0, 32), PrefixSettings(block_size=32))
SGLANG = configure(Engine.SGLANG, EngineVersion(0, 5, 23), PrefixSettings(report_cached_tokens=False))
OURS = ("--enable-prefix-caching", "--block-size=32", "--enable-prompt-tokens-details")


def test_nothing_of_the_users_is_lost() -> None:
    """The model's name, a port, a flag we know nothing of: all stay, ours come after."""
    words = ["serve", "meta/llama", "--port", "8000", "--unknown=1"]
    assert merge(words, VLLM).words == (*words, *OURS)


@pytest.mark.parametrize(
    "word",
    ["--no-enable-prefix-caching", "--no_enable_prefix_caching", "--no-enable-prefix-caching=true"],
)
def test_the_switch_that_turns_it_off_goes(word: str) -> None:
    """In each form that the parser takes, and the model that stands after it stays."""
    merged = merge(["serve", word, "meta/llama"], VLLM)
    assert merged.words == ("serve", "meta/llama", *OURS)
    assert [found.word for found in merged.contradictions] == [word]


@pytest.mark.parametrize("words", [["--block-size", "16"], ["--block-size=16"], ["--block_size=16"]])
def test_another_value_is_replaced(words: list[str]) -> None:
    """Both words of a flag and its value go, and the sentence says what is wanted."""
    merged = merge(["meta/llama", *words, "--port=1"], VLLM)
    assert merged.words == ("meta/llama", "--port=1", *OURS)
    assert str(merged.contradictions[0]) == f"{words[0]}: --block-size=32 is wanted"


@pytest.mark.parametrize("words", [["--block-size", "32"], ["--block-size=32"]])
def test_what_is_there_already_stays(words: list[str]) -> None:
    """The same value in the user's own words is left alone."""
    merged = merge(words, VLLM)
    assert merged.words == (*words, OURS[0], OURS[2])
    assert merged.contradictions == ()


def test_a_switch_takes_no_word_that_follows() -> None:
    """`--enable-prefix-caching meta/llama` is a switch and a model."""
    words = ["serve", "--enable-prefix-caching", "meta/llama"]
    assert merge(words, VLLM).words == (*words, *OURS[1:])


def test_of_two_values_neither_is_trusted() -> None:
    """A flag given twice is given once, with ours."""
    merged = merge(["--block-size=16", "--block-size=32"], VLLM)
    assert merged.words.count("--block-size=32") == 1
    assert "--block-size=16" not in merged.words


def test_sglang_is_on_unless_it_is_turned_off() -> None:
    """Nothing is added for it, one flag goes, an abbreviation of it too."""
    assert merge(["--model=x", "--disable-radix-cache"], SGLANG).words == ("--model=x", "--enable-metrics")
    assert merge(["--model=x", "--disable-radix"], SGLANG).words == ("--model=x", "--enable-metrics")


def test_what_runs_is_compared() -> None:
    """A pod that lacks a flag, or has it with another value, is told from one that has it."""
    assert missing_arguments(merge(["x"], VLLM).words, VLLM) == ()
    assert [a.flag for a in missing_arguments(["--block-size=16", *OURS[::2]], VLLM)] == ["--block-size"]


WORDS = st.lists(
    st.sampled_from([
        "serve", "m", "--block-size", "16", "32", "--block-size=16", "--no-enable-prefix-caching", "--port",
        "--enable-prefix-caching", "--", "-x", "--no_enable_prefix_caching=1", "--block_size",
    ])
)  # fmt: skip


@given(WORDS)
def test_merging_twice_changes_nothing_more(words: list[str]) -> None:
    """Idempotent: what was merged needs nothing, contradicts nothing, and stays as it is."""
    once = merge(words, VLLM)
    again = merge(once.words, VLLM)
    assert again.words == once.words
    assert again.contradictions == ()
    assert missing_arguments(once.words, VLLM) == ()
