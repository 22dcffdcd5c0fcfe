"""Whether Qdrant and PostgreSQL can do their part: from how they are reached to what is wrong with them.

Called by the operator, which asks as a gateway would, with the same URL, credentials and authorities. What is
wrong leaves as StoreError: StoreUnavailable where nobody answers, StoreRefused where somebody does and will
not, StoreUnfit where the server cannot do what is needed.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final

_QDRANT: Final = "cachewright.stores.qdrant_vectors"
_POSTGRES: Final = "cachewright.stores.postgres_vectors"


@dataclass(frozen=True, slots=True)
class QdrantAccess:
    """How a Qdrant server is reached."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    ca: str | None = None
    """PEM; certificates that count beside the system's."""


@dataclass(frozen=True, slots=True)
class PostgresAccess:
    """How a PostgreSQL database is reached, and what for."""

    dsn: str = field(repr=False)
    ca: str | None = None
    """PEM; certificates that count in place of the system's."""
    holds_vectors: bool = False
    """True where vectors are searched in it, which takes pgvector."""


@dataclass(frozen=True, slots=True)
class PostgresFacts:
    """What a server says of itself."""

    connections: int
    """How many all its clients may have open together, superusers' reserve left out."""


async def load_clients(*, qdrant: bool, postgres: bool) -> None:
    """Import what the checks take, beside the event loop, which has more to do for half a second."""
    for module, is_wanted in ((_QDRANT, qdrant), (_POSTGRES, postgres)):
        if is_wanted and module not in sys.modules:
            await asyncio.to_thread(import_module, module)


async def check_qdrant(access: QdrantAccess) -> None:
    """Return where the server is new enough and takes the key; raises StoreError."""
    from cachewright.stores.qdrant_link import open_link
    from cachewright.stores.qdrant_vectors import QdrantVectorStore

    with _ca_file(access.ca) as ca_file:
        store = QdrantVectorStore(open_link(access.url, access.api_key, ca_file))
        try:
            await store.check()
        finally:
            await store.aclose()


async def check_postgres(access: PostgresAccess) -> PostgresFacts:
    """Return what the server says where it can be used; raises StoreError."""
    from cachewright.stores.postgres_link import open_link
    from cachewright.stores.postgres_server import read_facts
    from cachewright.stores.postgres_vectors import PostgresVectorStore

    with _ca_file(access.ca) as ca_file:
        link = open_link(access.dsn, ca_file, max_connections=1)
        try:
            facts = await read_facts(link)
            if access.holds_vectors:
                await PostgresVectorStore(link).check()
        finally:
            await link.aclose()
    return facts


@contextmanager
def _ca_file(ca: str | None) -> Iterator[str | None]:
    """Put certificates where libraries that take nothing but files find them."""
    if ca is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="cachewright-ca-") as folder:
        path = Path(folder) / "ca.crt"
        path.write_text(ca)
        yield str(path)
