"""From a connection string to the cold tier's store, importing psycopg only where it is used.

Called by the gateway and by `cachewright janitor`.
"""

from __future__ import annotations

from cachewright.stores.embeddings import EmbeddingStore


def open_embedding_store(dsn: str, ca_file: str | None = None) -> EmbeddingStore:
    """Open a store that connects when it is first used; raises InvalidInput for what is no such string.

    `ca_file` holds PEM certificates that count in place of the system's.
    """
    from cachewright.stores.postgres_embeddings import PostgresEmbeddingStore
    from cachewright.stores.postgres_link import open_link

    return PostgresEmbeddingStore(open_link(dsn, ca_file))
