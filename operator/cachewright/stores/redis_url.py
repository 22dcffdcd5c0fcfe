"""From a store's URL to what it says: one server, a unix socket, Sentinels or a cluster, and how to log in.

    redis://user:password@host:6379/0                               one server
    rediss://user:password@host:6379/0?ssl_ca_certs=/path/ca.crt    the same over TLS; ssl_ca_data: PEM itself
    unix://user:password@/run/redis.sock?db=0                       one server, beside us
    redis+sentinel://user:password@host1:26379,host2:26379/mymaster/0
    redis+cluster://user:password@host1:6379,host2:6379

Pure. Used by `redis_client`. Whatever is wrong with a URL, the message names the part and never its text,
since any part of a mistyped URL may be the password.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

from cachewright.errors import InvalidInput

DEFAULT_PORT: Final = 6379
DEFAULT_SENTINEL_PORT: Final = 26379

TLS_OPTIONS: Final = ("ssl_ca_certs", "ssl_ca_data")
"""Authorities to trust beside those of the system: a PEM file, and PEM."""


class Topology(StrEnum):
    """What stands behind a URL."""

    SINGLE = "single"
    UNIX = "unix"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


_SCHEMES: Final = {
    "redis": (Topology.SINGLE, False),
    "rediss": (Topology.SINGLE, True),
    "unix": (Topology.UNIX, False),
    "redis+sentinel": (Topology.SENTINEL, False),
    "rediss+sentinel": (Topology.SENTINEL, True),
    "redis+cluster": (Topology.CLUSTER, False),
    "rediss+cluster": (Topology.CLUSTER, True),
}

_OPTIONS: Final = {
    Topology.SINGLE: ("db",),
    Topology.UNIX: ("db",),
    Topology.SENTINEL: ("db", "sentinel_username", "sentinel_password"),
    Topology.CLUSTER: (),
}


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """A URL's parts, decoded."""

    topology: Topology
    tls: bool
    hosts: tuple[tuple[str, int], ...] = ()
    """Servers, or Sentinels; empty for a unix socket."""
    path: str = ""
    """Of the unix socket."""
    service: str = ""
    """The name under which Sentinels watch the server."""
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    """For the Sentinels themselves; those of the URL's start are for the servers they name."""
    ca_file: str | None = None
    """PEM file of authorities to trust beside those of the system."""
    ca_data: str | None = None
    """The same as PEM itself."""


def with_authorities(url: str, pem: str) -> str:
    """Return the URL of the same store, whose certificate may also be signed by one of these authorities.

    What is wrong with either comes to light when the store is opened.
    """
    return f"{url}{'&' if '?' in url else '?'}ssl_ca_data={quote(pem, safe='')}"


def parse_redis_url(text: str) -> RedisUrl:
    """Read a URL; raises InvalidInput that says what is wrong without repeating any of it."""
    scheme, found, rest = text.strip().partition("://")
    if not found or scheme.lower() not in _SCHEMES:
        raise _invalid("its scheme must be one of " + ", ".join(f"{name}://" for name in _SCHEMES))
    topology, tls = _SCHEMES[scheme.lower()]
    hosts: tuple[tuple[str, int], ...] = ()
    parts: list[str] = []
    rest, _, query = rest.partition("?")
    options = _options(query, (*_OPTIONS[topology], *TLS_OPTIONS), tls)
    if topology is Topology.UNIX:
        login, _, path = rest.rpartition("@")
        if not path.startswith("/"):
            raise _invalid("the socket's path must be absolute")
    else:
        authority, _, tail = rest.partition("/")
        login, _, names = authority.rpartition("@")
        hosts = _hosts(names, DEFAULT_SENTINEL_PORT if topology is Topology.SENTINEL else DEFAULT_PORT)
        path, parts = "", [unquote(part) for part in tail.split("/") if part]
    if topology is Topology.SINGLE and len(hosts) > 1:
        raise _invalid("several hosts need redis+sentinel:// or redis+cluster://")
    service = _service(topology, parts)
    username, password = _login(login)
    return RedisUrl(
        topology=topology,
        tls=tls,
        hosts=hosts,
        path=unquote(path),
        service=service,
        db=_database(topology, parts, options),
        username=username,
        password=password,
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
        ca_file=options.get("ssl_ca_certs"),
        ca_data=options.get("ssl_ca_data"),
    )


def _options(query: str, known: tuple[str, ...], tls: bool) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as e:
        raise _invalid("its options must look like ?name=value") from e
    if set(options) - set(known):
        raise _invalid(f"it has an option that is not known here (known: {', '.join(known)})")
    if not tls and set(options) & set(TLS_OPTIONS):
        raise _invalid("authorities are named, and only schemes that begin with rediss speak TLS")
    return options


def _hosts(names: str, default_port: int) -> tuple[tuple[str, int], ...]:
    return tuple(_host(name, default_port) for name in names.split(","))


def _host(name: str, default_port: int) -> tuple[str, int]:
    if name.startswith("["):  # an IPv6 address
        host, closed, port = name[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise _invalid("an IPv6 address must look like [::1]:6379")
        port = port[1:]
    else:
        host, _, port = name.partition(":")
    if not host:
        raise _invalid("a host is missing")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise _invalid("a port must be a number; in passwords write @ : / ? as %40 %3A %2F %3F")
    return host, int(port) if port else default_port


def _service(topology: Topology, parts: list[str]) -> str:
    if topology is not Topology.SENTINEL:
        return ""
    if not parts:
        raise _invalid("the Sentinels' name for the service must follow the hosts, as in /mymaster")
    return parts.pop(0)


def _database(topology: Topology, parts: list[str], options: dict[str, str]) -> int:
    texts = parts + ([options["db"]] if "db" in options else [])
    if len(texts) > 1 or not all(text.isascii() and text.isdigit() for text in texts):
        raise _invalid("what follows the hosts must be the database's number, once")
    number = int(texts[0]) if texts else 0
    if topology is Topology.CLUSTER and number:
        raise _invalid("a cluster has the database 0 only")
    return number


def _login(login: str) -> tuple[str | None, str | None]:
    username, _, password = login.partition(":")
    return unquote(username) or None, unquote(password) or None


def _invalid(what: str) -> InvalidInput:
    return InvalidInput(f"the store's URL must look like redis://user:password@host:6379/0: {what}")
