"""URLs of stores: what each form says, and that a wrong one tells what is wrong but never the password."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cachewright.errors import InvalidInput
from cachewright.stores.redis_url import RedisUrl, Topology, parse_redis_url, with_authorities

SINGLE = RedisUrl(Topology.SINGLE, tls=False, hosts=(("host", 6379),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("redis://host", SINGLE),
        (" redis://host:6379/0\n", SINGLE),
        ("redis://gateway:p%40ss@host/3", replace(SINGLE, db=3, username="gateway", password="p@ss")),
        ("redis://gateway:p@ss@host", replace(SINGLE, username="gateway", password="p@ss")),
        ("redis://:p@host", replace(SINGLE, password="p")),
        ("redis://host?db=2", replace(SINGLE, db=2)),
        ("redis://[::1]:7000", replace(SINGLE, hosts=(("::1", 7000),))),
        ("redis://[::1]", replace(SINGLE, hosts=(("::1", 6379),))),
        ("rediss://host:7000", replace(SINGLE, tls=True, hosts=(("host", 7000),))),
        ("rediss://host?ssl_ca_certs=/a%20b.pem", replace(SINGLE, tls=True, ca_file="/a b.pem")),
        (
            with_authorities("rediss://host?db=2", "--\nA+b/c=\n"),
            replace(SINGLE, tls=True, db=2, ca_data="--\nA+b/c=\n"),
        ),
        (
            with_authorities("rediss+cluster://host", "--\n"),
            RedisUrl(Topology.CLUSTER, tls=True, hosts=(("host", 6379),), ca_data="--\n"),
        ),
        ("unix:///run/redis.sock", RedisUrl(Topology.UNIX, tls=False, path="/run/redis.sock")),
        (
            "unix://gateway:p%40ss@/run/redis.sock?db=1",
            RedisUrl(
                Topology.UNIX, tls=False, path="/run/redis.sock", db=1, username="gateway", password="p@ss"
            ),
        ),
        (
            "redis+sentinel://gateway:p%40ss@h1,h2:7000/mymaster/1?sentinel_password=s",
            RedisUrl(
                Topology.SENTINEL,
                tls=False,
                hosts=(("h1", 26379), ("h2", 7000)),
                service="mymaster",
                db=1,
                sentinel_password="s",
                username="gateway",
                password="p@ss",
            ),
        ),
        (
            "rediss+cluster://h1,[::2]:7000",
            RedisUrl(Topology.CLUSTER, tls=True, hosts=(("h1", 6379), ("::2", 7000))),
        ),
    ],
)
def test_a_url_is_read(text: str, expected: RedisUrl) -> None:
    """Every form gives its parts, decoded, with the usual defaults."""
    assert parse_redis_url(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "scheme"),
        ("hunter2", "scheme"),
        ("http://u:hunter2@host", "scheme"),
        ("redis://u:hunter2@", "host is missing"),
        ("redis://u:hunter2@host:port", "port must be a number"),
        ("redis://u:hunter2@host:0", "port must be a number"),
        ("redis://u:hunter2@host:65536", "port must be a number"),
        ("redis://u:hunter2/x@host:1", "port must be a number"),
        ("redis://u:hunter2@[::1", "IPv6"),
        ("redis://u:hunter2@h1,h2", "several hosts"),
        ("redis://u:hunter2@host/mymaster", "number"),
        ("redis://u:hunter2@host/0?db=1", "once"),
        ("redis://u:hunter2@host?socket_timeout=9", "not known here"),
        ("redis://u:hunter2@host?ssl_ca_certs=/x", "rediss speak TLS"),
        (with_authorities("redis+cluster://u:hunter2@host", "hunter2"), "rediss speak TLS"),
        ("rediss://u:hunter2@host?ssl_cert_reqs=none", "not known here"),
        ("redis://u:hunter2@host?db", "?name=value"),
        ("unix://u:hunter2@redis.sock", "absolute"),
        ("redis+sentinel://u:hunter2@h1,h2", "/mymaster"),
        ("redis+cluster://u:hunter2@h1/1", "database 0"),
    ],
)
def test_a_wrong_url_is_explained(text: str, problem: str) -> None:
    """The message names the part that is wrong, and repeats nothing of what was written."""
    with pytest.raises(InvalidInput) as caught:
        parse_redis_url(text)
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_url_shows_no_password() -> None:
    """Neither does what was read from it."""
    url = parse_redis_url("redis+sentinel://u:hunter2@h/m?sentinel_password=hunter3")
    assert "hunter" not in repr(url)
