"""The model of an engine's prefix cache, and the tokens it works on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cachewright.engines.prefix.blocks import BlockCache, block_hashes
from cachewright.engines.prefix.tokens import LONGEST_TOKEN, split_tokens


@given(st.text())
def test_tokens_put_together_are_the_text(text: str) -> None:
    """No character is lost or made up."""
    assert "".join(split_tokens(text)) == text


@given(st.text(), st.text(), st.text())
def test_a_shared_beginning_gives_shared_first_tokens(start: str, one: str, other: str) -> None:
    """Two texts with the same start differ in no token that ends well before it does."""
    first, second = split_tokens(start + one), split_tokens(start + other)
    length = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        length += len(left)
    assert length + LONGEST_TOKEN + 1 + _run_length(start) >= len(start)


def _run_length(text: str) -> int:
    """Count the white space at the end, which is one token however long."""
    return len(text) - len(text.rstrip())


def test_only_full_blocks_are_reused() -> None:
    """Ten tokens in blocks of four: two blocks come back, the rest is computed."""
    cache = BlockCache(4)
    tokens = [str(n) for n in range(10)]
    assert cache.use(tokens)[0].hit_tokens == 0
    assert cache.use(tokens)[0].hit_tokens == 8


def test_the_last_token_is_always_computed() -> None:
    """Eight tokens are two full blocks, and one of them must run again."""
    cache = BlockCache(4)
    tokens = [str(n) for n in range(8)]
    cache.use(tokens)
    assert cache.use(tokens)[0].hit_tokens == 4


def test_nothing_is_reused_after_a_difference() -> None:
    """A block is worth something only when all before it is the same."""
    cache = BlockCache(2)
    cache.use(["a", "b", "c", "d", "e", "f"])
    assert cache.use(["a", "b", "X", "d", "e", "f", "g"])[0].hit_tokens == 2


def test_salts_share_nothing() -> None:
    """The salt counts into the first block, so another tenant starts from nothing."""
    cache = BlockCache(2)
    cache.use(["a", "b", "c"], salt="one")
    assert cache.use(["a", "b", "c"], salt="two")[0].hit_tokens == 0
    assert cache.use(["a", "b", "c"], salt="one")[0].hit_tokens == 2


def test_a_small_cache_evicts_what_was_not_used_longest() -> None:
    """With room for two blocks, a third pushes the oldest out."""
    cache = BlockCache(1, capacity_tokens=2)
    cache.use(["a", "x"])
    cache.use(["b", "y"])
    assert cache.use(["a", "z"])[0].hit_tokens == 0


def test_tokens_are_told_apart_within_a_block() -> None:
    """The block of "ab" and "c" is another than that of "a" and "bc"."""
    assert block_hashes(["ab", "c"], 2, "") != block_hashes(["a", "bc"], 2, "")
