"""What may happen to a store without anybody's doing, at once: in process memory and in a real server.

Used by the interleavings. A real server is reached by a client that blocks the loop, so that nothing else
happens meanwhile.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Protocol

from redis import Redis

from cachewright.keys.digest import heartbeat_key, key_pattern
from cachewright.keys.scheme import TAGS
from cachewright.stores.memory import MemoryCacheStore


class Backdoor(Protocol):
    """What may happen to a store."""

    def lose(self) -> None:
        """Lose everything."""

    def remember(self) -> None:
        """Copy everything, as a replica does."""

    def go_back(self) -> None:
        """Hold what was copied last, and nothing else; a heartbeat that has ended does not come back."""

    def end_heartbeat(self) -> None:
        """Let the time of the heartbeat be over."""


class MemoryBackdoor:
    """Into a store in process memory."""

    _KEPT = ("_entries", "_size_bytes", "_copies", "_generations", "_floors")

    def __init__(self, store: MemoryCacheStore) -> None:
        self._store = store
        self._copy = {name: deepcopy(getattr(store, name)) for name in self._KEPT}

    def lose(self) -> None:
        """Lose everything."""
        self._store.forget_all()

    def remember(self) -> None:
        """Copy everything."""
        self._copy = {name: deepcopy(getattr(self._store, name)) for name in self._KEPT}

    def go_back(self) -> None:
        """Hold what was copied last, and the heartbeat if it is there."""
        for name, value in self._copy.items():
            setattr(self._store, name, deepcopy(value))

    def end_heartbeat(self) -> None:
        """Forget the heartbeat."""
        self._store._heartbeats.clear()


class RedisBackdoor:
    """Into one cache's keys in a real server."""

    def __init__(self, client: Redis, cache_id: str) -> None:
        self._client = client
        self._pattern = key_pattern(cache_id)
        self._heartbeats = [heartbeat_key(cache_id, tag) for tag in TAGS]
        self._copy: dict[bytes, tuple[bytes, int]] = {}
        """What DUMP gives of each key, and its TTL in milliseconds."""

    def lose(self) -> None:
        """Remove all keys."""
        if keys := self._keys():
            self._client.delete(*keys)

    def remember(self) -> None:
        """Dump all keys but the heartbeats."""
        keys = [key for key in self._keys() if key.decode() not in self._heartbeats]
        dumped = {key: (self._client.dump(key), max(0, self._client.pttl(key))) for key in keys}
        self._copy = {key: (value, ttl_ms) for key, (value, ttl_ms) in dumped.items() if value is not None}

    def go_back(self) -> None:
        """Replace all keys but the heartbeats."""
        heartbeats = [key for key in self._heartbeats if self._client.exists(key)]
        with self._client.pipeline(transaction=True) as pipeline:
            for key in self._keys():
                if key.decode() not in heartbeats:
                    pipeline.delete(key)
            for key, (value, ttl_ms) in self._copy.items():
                pipeline.restore(key, ttl_ms, value)
            pipeline.execute()

    def end_heartbeat(self) -> None:
        """Remove the heartbeats."""
        self._client.delete(*self._heartbeats)

    def _keys(self) -> list[bytes]:
        return list(self._client.scan_iter(match=self._pattern, count=1000))
