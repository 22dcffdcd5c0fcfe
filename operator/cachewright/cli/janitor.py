"""`cachewright janitor`: from mounted files to tidied stores, once, where no gateway does it.

Run as a Job by the operator for caches without gateways and for `deletionPolicy: Delete`; people may run it
too. Prints what it did as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import sys
import time
from pathlib import Path
from typing import Any, Final

from cachewright.cli.admin_client import show
from cachewright.errors import InvalidInput, StoreError
from cachewright.gateway.mounts import (
    DEFAULT_FOLDER,
    POSTGRES_CA,
    POSTGRES_DSN,
    QDRANT_CA,
    QDRANT_KEY,
    STORE_URL,
    Mounts,
)
from cachewright.keys.embedding import EMBEDDING
from cachewright.keys.record import KeyspaceState, PastKeyspace, Record
from cachewright.layers.deletion import delete_keys, delete_spaces, drop_from
from cachewright.layers.janitor import Janitor, JanitorSettings, Removal
from cachewright.layers.pace import Pace
from cachewright.policy.document import SweepPolicy
from cachewright.stores.embedding_opening import open_embedding_store
from cachewright.stores.embeddings import EmbeddingStore
from cachewright.stores.opening import open_store
from cachewright.stores.protocols import CacheStore
from cachewright.stores.reclaim import ReclaimReport, ReclaimState, SweepReport
from cachewright.stores.vector_opening import open_vector_store
from cachewright.stores.vectors import VectorStore

EXAMPLES: Final = """\
examples:
  cachewright janitor --config-dir /etc/cachewright
  cachewright janitor --delete-cache 0123456789abcdef --config-dir ./stores
  cachewright janitor --delete-cache 0123456789abcdef --config-dir ./stores --qdrant-url http://qdrant:6333

The folder is that of a gateway. For --delete-cache, redis/url, qdrant/api-key and postgres/dsn are enough,
those of them that there are; stop the cache's gateways first.
"""

CACHE_ID: Final = "[0-9a-f]{16}"

DEFAULT_TIMEOUT_SECONDS: Final = 240.0
"""Within the five minutes for which the operator holds up a deletion at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--config-dir",
        type=Path,
        default=DEFAULT_FOLDER,
        help="folder with the mounted policy, record and store URLs (default: %(default)s)",
    )
    parser.add_argument(
        "--delete-cache",
        metavar="ID",
        help="remove all that the stores hold of the cache with this id; without it, do what is due",
    )
    parser.add_argument("--qdrant-url", help="with --delete-cache: the Qdrant server that held vectors")
    parser.add_argument(
        "--rate",
        type=_positive,
        help="keys looked at per second (default: the policy's, or 10000)",
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=DEFAULT_TIMEOUT_SECONDS,
        help="seconds after which to give up; what was removed stays so (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Tidy once; the exit code is 0 when nothing is left to do, 1 when something is, 2 for wrong files."""
    work = _delete(options) if options.delete_cache else _tidy(options)
    try:
        return asyncio.run(asyncio.wait_for(work, options.timeout))
    except TimeoutError:
        print(f"not done within {options.timeout:g} s; what was removed stays so", file=sys.stderr)
        return 1
    except StoreError as e:
        print(f"a store did not do it: {e}", file=sys.stderr)
        return 1
    except InvalidInput as e:
        print(e, file=sys.stderr)
        return 2


async def _tidy(options: argparse.Namespace) -> int:
    """Do what a gateway's janitor would do now."""
    mounts = Mounts(options.config_dir)
    record, policy = mounts.read_record(), mounts.read_policy()
    sweep = policy.sweep or SweepPolicy()
    store = open_store(mounts.read_store_url() or "")
    vectors = _vector_stores(mounts, policy.qdrant.url if policy.qdrant else None)
    cold = _cold_stores(mounts)
    drops = {"Semantic": drop_from(vectors, policy.cache_id)} if vectors else {}
    drops |= {EMBEDDING: drop_from(cold, policy.cache_id)} if cold else {}
    settings = JanitorSettings(
        policy.cache_id, options.rate or sweep.keys_per_second, sweep.interval_seconds, drops
    )
    notes = _Notes()
    try:
        await Janitor(store, settings, notes, time.monotonic, time.time).work(record)
        left = await _left(record, store)
    finally:
        await store.aclose()
        for one in vectors:
            await one.aclose()
        for each in cold:
            await each.aclose()
    told = {"removed": notes.keys, "reclaimed": notes.done, "failed": notes.failed, "left": left}
    show({**told, "entries": notes.entries})
    return 1 if left else 0


async def _delete(options: argparse.Namespace) -> int:
    """Remove a cache from every store that the folder or the command line names."""
    cache_id, mounts = options.delete_cache, Mounts(options.config_dir)
    if re.fullmatch(CACHE_ID, cache_id) is None:
        raise InvalidInput("--delete-cache takes the 16 hex digits that `cachewright stats` shows as cacheID")
    url = mounts.read_store_url()
    vectors = _vector_stores(mounts, options.qdrant_url)
    if url is None and not vectors:
        raise InvalidInput(
            f"{options.config_dir} names no store: {STORE_URL}, {POSTGRES_DSN} or --qdrant-url"
        )
    deleted: dict[str, Any] = {"cacheID": cache_id, "spaces": 0, "keys": 0}
    spaces: list[VectorStore | EmbeddingStore] = [*vectors, *_cold_stores(mounts)]
    stores: list[VectorStore | EmbeddingStore | CacheStore] = list(spaces)
    try:
        for one in spaces:
            deleted["spaces"] += await delete_spaces(one, cache_id)
        if url is not None:
            store = open_store(url)
            stores.append(store)
            pace = Pace(options.rate or SweepPolicy().keys_per_second, time.monotonic)
            deleted["keys"] = await delete_keys(store, cache_id, pace)
    finally:
        for opened in stores:
            await opened.aclose()
    show({**deleted, "verified": True})
    return 0


def _vector_stores(mounts: Mounts, qdrant_url: str | None) -> list[VectorStore]:
    stores = []
    if qdrant_url is not None:
        key, ca_file = mounts.read_given(QDRANT_KEY), mounts.given_file(QDRANT_CA)
        stores.append(open_vector_store(qdrant_url, api_key=key, ca_file=ca_file))
    if (dsn := mounts.read_given(POSTGRES_DSN)) is not None:
        stores.append(open_vector_store(dsn, ca_file=mounts.given_file(POSTGRES_CA)))
    return stores


def _cold_stores(mounts: Mounts) -> list[EmbeddingStore]:
    dsn = mounts.read_given(POSTGRES_DSN)
    return [] if dsn is None else [open_embedding_store(dsn, mounts.given_file(POSTGRES_CA))]


async def _left(record: Record, store: CacheStore) -> list[str]:
    """Return the keyspaces that are given up and not known to be empty."""
    keyspaces = [past.keyspace for past in record.in_state(KeyspaceState.DELETING)]
    reports = await store.read_reclaims(record.cache_id, keyspaces)
    done = {keyspace for keyspace, report in reports.items() if report.state is ReclaimState.DONE}
    return [str(keyspace) for keyspace in keyspaces if keyspace not in done]


class _Notes:
    """Listener that remembers."""

    def __init__(self) -> None:
        self.keys = 0
        self.done: list[str] = []
        self.failed: dict[str, str] = {}
        self.entries: dict[str, int] | None = None
        """By keyspace; None where no sweep was due."""

    def removed(self, keys: int, why: Removal) -> None:  # noqa: ARG002 - the listener's signature
        """Add up."""
        self.keys += keys

    def reclaimed(self, past: PastKeyspace, report: ReclaimReport) -> None:
        """Keep what came of a keyspace."""
        if report.state is ReclaimState.DONE:
            self.done.append(str(past.keyspace))
        else:
            self.failed[str(past.keyspace)] = report.problem

    def swept(self, report: SweepReport) -> None:
        """Keep what is there."""
        self.entries = {str(keyspace): count for keyspace, count in report.entries.items()}


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(text)
    return number
