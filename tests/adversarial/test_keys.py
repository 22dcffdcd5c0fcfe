"""Tenants at the level of keys: pairs by the hundred thousand, which no HTTP run could send."""

from __future__ import annotations

import random
import string

from cachewright.keys.canonical import parse_json
from cachewright.keys.context import Context
from cachewright.keys.digest import ExactQuestion, exact_digest, tenant_tag
from tests.adversarial.cases import load_cases

KEY = bytes(range(32))
PAIRS = 100_000
ALPHABET = (string.ascii_letters + string.digits + "-_.:/{}*? ").encode()


def test_random_tenant_pairs_never_share_a_key() -> None:
    """10^5 pairs of tenants, most of them one edit apart, ask one question: no tag and no digest twice."""
    drawn = random.Random(20261130)  # noqa: S311 - not a secret
    body = parse_json(b'{"model":"llama","messages":[{"role":"user","content":"hi"}],"temperature":0}')
    assert isinstance(body, dict)
    question = ExactQuestion("/v1/chat/completions", "", (), body, Context())
    seen: dict[str, bytes] = {}
    pairs = 0
    while pairs < PAIRS:
        first = bytes(drawn.choices(ALPHABET, k=drawn.randint(1, 24)))
        second = edited(first, drawn)
        if first == second:
            continue
        pairs += 1
        for tenant in (first, second):
            tag = tenant_tag(KEY, tenant)
            assert seen.setdefault(tag, tenant) == tenant
            if pairs % 5 == 0:
                digest = exact_digest(KEY, tag, question)
                assert seen.setdefault(digest, tenant) == tenant


def edited(tenant: bytes, drawn: random.Random) -> bytes:
    """Return the name with one character changed, dropped, doubled, added or in the other case."""
    at = drawn.randrange(len(tenant))
    one = tenant[at : at + 1]
    other = bytes(drawn.choices(ALPHABET, k=1))
    piece = drawn.choice([other, b"", one * 2, one + other, one.swapcase()])
    return tenant[:at] + piece + tenant[at + 1 :]


def test_every_set_has_both_verdicts_to_find() -> None:
    """A run that called everything shared, or everything apart, would fail on this set."""
    assert {case.share for case in load_cases()} == {True, False}
