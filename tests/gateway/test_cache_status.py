"""`Cache-Status`: the id of an entry, and what nobody can learn from it or from any other header."""

from __future__ import annotations

import base64
import re

from cachewright.keys.entry_id import entry_name
from tests.gateway.harness import Answered, Gateway, root_client
from tests.support.waiting import until

KEY = bytes.fromhex("ab" * 32)


async def hit(gateway: Gateway, tenant: str = "acme") -> Answered:
    """Ask until the answer comes from the cache."""
    answers: list[Answered] = []

    async def is_hit() -> bool:
        answers.append(await gateway.call(headers={"X-Tenant-Id": tenant}))
        return answers[-1].is_hit

    await until(is_hit)
    return answers[-1]


async def test_hits_and_misses_name_their_entry(gateway: Gateway) -> None:
    """By one id, as a string of RFC 9211, and Age beside it on a hit."""
    miss = await gateway.call()
    assert re.fullmatch(r'cachewright; fwd=miss; key="e[\w-]{128}"', miss.headers["Cache-Status"])
    found = await hit(gateway)
    assert re.fullmatch(r'cachewright; hit; ttl=\d+; key="e[\w-]{128}"', found.headers["Cache-Status"])
    fresh = await gateway.call(headers={"X-Tenant-Id": "acme", "Cache-Control": "no-cache"})
    assert fresh.headers["Cache-Status"].startswith("cachewright; fwd=request; detail=client; key=")
    assert miss.entry_id == found.entry_id == fresh.entry_id
    assert int(found.headers["Age"]) >= 0
    async with root_client(gateway.redis) as client:
        assert await client.exists(entry_name(KEY, gateway.policy.cache_id, found.entry_id).key) == 1


async def test_what_is_not_looked_up_has_no_id(gateway: Gateway) -> None:
    """There is no entry that it could name."""
    assert (await gateway.call(temperature=1)).entry_id == ""
    assert (await gateway.call(headers=[])).entry_id == ""


async def test_tenants_share_no_id(gateway: Gateway) -> None:
    """The same question of two tenants: nobody learns from a header that the other asked it too."""
    ours = base64.urlsafe_b64decode((await hit(gateway, "acme")).entry_id[1:])
    theirs = base64.urlsafe_b64decode((await hit(gateway, "umbrella")).entry_id[1:])
    assert sum(a == b for a, b in zip(ours, theirs, strict=True)) < 8


async def test_no_header_shows_what_keys_are_made_of(gateway: Gateway) -> None:
    """Neither digest, tenant tag nor keyspace, nor the tenant, in hits, misses and bypasses."""
    answers = [await gateway.call(), await hit(gateway), await gateway.call(temperature=1)]
    name = entry_name(KEY, gateway.policy.cache_id, answers[1].entry_id)
    secrets = [name.digest, name.tenant_tag, str(name.keyspace), gateway.policy.cache_id, "acme"]
    for answer in answers:
        shown = repr(list(answer.headers.items()))
        assert [secret for secret in secrets if secret[:12] in shown] == []
