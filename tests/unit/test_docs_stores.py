"""What the operations page says of stores: their URLs can be read, and the rights it asks for are enough."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cachewright.stores.redis_acl import GATEWAY_COMMANDS
from cachewright.stores.redis_url import Topology, parse_redis_url
from tests.support.redis_topologies import CLUSTER_CLIENT_RIGHTS

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
STORES = PAGE.partition("\n## Stores\n")[2].partition("\n## ")[0]
URLS = re.findall(r"^\| `([a-z+]+://[^`]*)`", STORES, re.MULTILINE)


def test_every_kind_of_store_has_its_url() -> None:
    """The table shows each topology, and each URL in it is understood."""
    assert {parse_redis_url(url).topology for url in URLS} == set(Topology)


@pytest.mark.parametrize("url", URLS)
def test_urls_with_credentials_are_read(url: str) -> None:
    """Each shows where user and password belong."""
    parsed = parse_redis_url(url)
    assert (parsed.username, parsed.password) == ("user", "password")


def test_the_rights_asked_for_are_those_of_a_managed_store() -> None:
    """No more and no less than the ACL that the operator writes, and a cluster's beside them."""
    block = STORES.partition("ACL SETUSER")[2].partition("```")[0]
    asked = re.findall(r"\+([a-z|]+)", block)
    assert sorted(asked) == sorted(set(GATEWAY_COMMANDS))
    for right in CLUSTER_CLIENT_RIGHTS.split():
        assert f"`{right}`" in STORES
