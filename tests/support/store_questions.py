"""Vector stores that say they are well, for clusters in which no pod runs."""

from __future__ import annotations

from cachewright.reconcile.store_checks import StoreQuestions
from cachewright.stores.checking import PostgresAccess, PostgresFacts, QdrantAccess


async def _qdrant(_access: QdrantAccess) -> None:
    """Do all that is asked."""


async def _postgres(_access: PostgresAccess) -> PostgresFacts:
    return PostgresFacts(connections=400)


WELL = StoreQuestions(qdrant=_qdrant, postgres=_postgres)
"""In place of servers that answer."""
