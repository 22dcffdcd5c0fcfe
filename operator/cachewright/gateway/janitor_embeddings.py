"""What the janitor does in the cold tier of embeddings: drops and sweeps of the declared database.

A database that the layer no longer uses may still hold keyspaces that were given up; it is opened when there
is something to do and closed afterwards. Called by the assembly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cachewright.gateway.mounts import Configuration
from cachewright.keys.embedding import EMBEDDING
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.embedding_sweep import EmbeddingSweep
from cachewright.layers.janitor import Drop, SweepElsewhere
from cachewright.stores.embedding_opening import open_embedding_store
from cachewright.stores.embeddings import EmbeddingStore


class JanitorEmbeddings:
    """The cold tier of one configuration."""

    def __init__(self, configuration: Configuration, in_use: EmbeddingStore | None) -> None:
        """`in_use` is the layer's own store, where it has one."""
        self._cache_id = configuration.policy.cache_id
        self._in_use = in_use
        self._dsn = configuration.vectors.postgres_dsn
        self._ca_file = configuration.vectors.postgres_ca_file

    def drops(self) -> Mapping[str, Drop]:
        """Return what drops a keyspace; nothing where no database could hold one."""
        return {EMBEDDING: self._drop} if self._dsn is not None else {}

    def sweeps(self) -> Sequence[SweepElsewhere]:
        """Return the sweep of the store in use; another one is emptied by drops alone."""
        return () if self._in_use is None else (EmbeddingSweep(self._in_use).run,)

    async def _drop(self, keyspace: Keyspace) -> None:
        if self._in_use is not None:
            await self._in_use.drop(self._cache_id, keyspace)
        elif self._dsn is not None:
            store = open_embedding_store(self._dsn, str(self._ca_file) if self._ca_file else None)
            try:
                await store.drop(self._cache_id, keyspace)
            finally:
                await store.aclose()
