"""What the janitor does in vector stores: from a configuration to drops and sweeps of every store it names.

A store that the semantic layer no longer uses may still hold keyspaces that were given up, so each declared
one is asked. Such a store is opened when there is something to do and closed afterwards, so that a gateway
holds no client of a store that it does not use. Called by the assembly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from cachewright.gateway.mounts import Configuration
from cachewright.keys.keyspaces import Keyspace
from cachewright.layers.janitor import Drop, SweepElsewhere
from cachewright.layers.space_sweep import LAYER, SpaceSweep
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import VectorStore

_Target = tuple[str, str | None, str | None]
"""URL, API key, file of certificate authorities."""


class JanitorVectors:
    """The vector stores of one configuration."""

    def __init__(
        self, configuration: Configuration, in_use: VectorStore | None, wall_clock: Callable[[], float]
    ) -> None:
        """`in_use` is the semantic layer's own store; `wall_clock` gives Unix seconds."""
        policy = configuration.policy
        semantic = policy.semantic
        self._cache_id = policy.cache_id
        self._in_use = in_use
        self._wall_clock = wall_clock
        self._max_entries = semantic.max_entries if semantic else None
        used = semantic.store if semantic else None
        self._others = [target for name, target in _declared(configuration) if name != used]

    def drops(self) -> Mapping[str, Drop]:
        """Return what drops a semantic keyspace; nothing where no store could hold one."""
        return {LAYER: self._drop} if self._in_use is not None or self._others else {}

    def sweeps(self) -> Sequence[SweepElsewhere]:
        """Return the sweep of the store in use; the others are emptied by drops alone."""
        return (
            ()
            if self._in_use is None
            else (SpaceSweep(self._in_use, self._max_entries, self._wall_clock).run,)
        )

    async def _drop(self, keyspace: Keyspace) -> None:
        if self._in_use is not None:
            await self._in_use.drop(self._cache_id, keyspace)
        for url, api_key, ca_file in self._others:
            store = open_vector_store(url, api_key=api_key, ca_file=ca_file)
            try:
                await store.drop(self._cache_id, keyspace)
            finally:
                await store.aclose()


def _declared(configuration: Configuration) -> Iterator[tuple[str, _Target]]:
    """Yield every vector store that the object declares, under its name in the policy."""
    vectors, qdrant = configuration.vectors, configuration.policy.qdrant
    if qdrant is not None:
        yield "Qdrant", (qdrant.url, vectors.qdrant_key, _text(vectors.qdrant_ca_file))
    if vectors.postgres_dsn is not None:
        yield "Postgres", (vectors.postgres_dsn, None, _text(vectors.postgres_ca_file))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
