"""A model of an engine's prefix cache: full blocks only, each hashed with all before it, least used evicted.

Semantics of vLLM's automatic prefix caching: a block is reused only when everything before it is the same,
the salt counts into the first block, and the last token is always computed anew.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reuse:
    """What the cache knew of one prompt."""

    tokens: int
    """Length of the prompt."""
    hit_tokens: int
    """Tokens that need not be computed."""
    last_block: bytes | None
    """Hash of the last block that was found; None where none was."""


class BlockCache:
    """Blocks that were computed, by hash."""

    def __init__(self, block_size: int, capacity_tokens: int | None = None) -> None:
        """`capacity_tokens` bounds it; None: it never evicts, which gives the most that can be had."""
        self._block_size = block_size
        self._capacity_blocks = None if capacity_tokens is None else max(1, capacity_tokens // block_size)
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def use(self, tokens: Sequence[str], salt: str = "") -> tuple[Reuse, tuple[bytes, ...]]:
        """Look a prompt up and keep all its full blocks; also returns their hashes."""
        hashes = block_hashes(tokens, self._block_size, salt)
        found = 0
        # The last token is computed always, for it gives the first new one.
        most = max(0, (len(tokens) - 1) // self._block_size)
        while found < min(len(hashes), most) and hashes[found] in self._blocks:
            found += 1
        for block in hashes:
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        if self._capacity_blocks is not None:
            while len(self._blocks) > self._capacity_blocks:
                self._blocks.popitem(last=False)
        last = hashes[found - 1] if found else None
        return Reuse(len(tokens), found * self._block_size, last), hashes


def block_hashes(tokens: Sequence[str], block_size: int, salt: str) -> tuple[bytes, ...]:
    """Hash each full block together with all before it."""
    hashes: list[bytes] = []
    parent = salt.encode()
    for start in range(0, len(tokens) - block_size + 1, block_size):
        block = "\x00".join(tokens[start : start + block_size]).encode("utf-8", "surrogatepass")
        parent = hashlib.blake2b(parent + b"\x01" + block, digest_size=16).digest()
        hashes.append(parent)
    return tuple(hashes)
