"""From a vector store's URL to the store, importing a client only where it is used.

    memory://                        the process's own memory; numpy
    http://host:6333, https://…      Qdrant; qdrant-client
    postgresql://user@host/db        PostgreSQL with pgvector; psycopg

Called by the gateway, which holds none of these libraries in memory unless its configuration names the store.
"""

from __future__ import annotations

import re
from typing import Final

from cachewright.errors import InvalidInput
from cachewright.stores.vectors import VectorStore

_MEMORY: Final = re.compile(r"memory://(?:\?max_bytes=([1-9][0-9]{0,15}))?")


def open_vector_store(url: str, *, api_key: str | None = None, ca_file: str | None = None) -> VectorStore:
    """Open a store that connects when it is first used; raises InvalidInput for a URL that is not one.

    `api_key` is Qdrant's; `ca_file` holds PEM certificates that count beside the system's.
    """
    if found := _MEMORY.fullmatch(url):
        from cachewright.stores.memory_vectors import DEFAULT_MAX_BYTES, MemoryVectorStore

        return MemoryVectorStore(int(found[1] or DEFAULT_MAX_BYTES))
    if url.startswith(("http://", "https://")):
        from cachewright.stores.qdrant_link import open_link
        from cachewright.stores.qdrant_vectors import QdrantVectorStore

        return QdrantVectorStore(open_link(url, api_key, ca_file))
    if url.startswith(("postgresql://", "postgres://")):
        from cachewright.stores import postgres_link
        from cachewright.stores.postgres_vectors import PostgresVectorStore

        return PostgresVectorStore(postgres_link.open_link(url, ca_file))
    raise InvalidInput("a vector store's URL begins with memory://, http://, https:// or postgresql://")
