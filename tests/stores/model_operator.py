"""An operator and the engine that it watches, as far as keyspaces are concerned: steps of `interleavings`.

It keeps the order that matters: permission to write is gone, and the gateways have looked, before a new pod
serves; it is given again once all pods are alike. The record's states are real, and so are its copies.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import KeyspaceState, LayerRecord, PastKeyspace, Record

if TYPE_CHECKING:
    from tests.stores.interleavings import World

LAYER = "Exact"
HEARTBEAT_SECONDS = 3600.0
DONE_SECONDS = 2.0
VERSIONS = ("a", "b")


@dataclass(frozen=True)
class Done:
    """A change that is reported as done from some time on."""

    at: float
    changes: int = 0
    """Answers from before this number of changes are over: all, or those of one entry."""
    key: str | None = None
    revision: int = 0
    """Keyspaces that were in use before this revision only are over."""


class ModelOperator:
    """The operator of one cache."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.at_work = asyncio.Lock()
        """One pass at a time, and none while the store fails over."""
        empty = Record(world.cache_id, 0, 0, fenced=True)
        self.record = empty.with_layer(LAYER, "1" * 16, "binding", "t", "a", "a")
        self.engine: tuple[str, ...] = ("a",)
        """Versions of the model that its pods serve."""
        self.versions: dict[Keyspace, str] = {self.layer.keyspace: "a"}
        """Whose answers a keyspace may hold."""
        self._last_in_use: dict[Keyspace, int] = {}

    @property
    def layer(self) -> LayerRecord:
        """The keyspace in use."""
        return self.record.layers[LAYER]

    def last_in_use(self, keyspace: Keyspace) -> int:
        """Return the last revision at which a keyspace was in use."""
        return self.record.revision if keyspace == self.layer.keyspace else self._last_in_use[keyspace]

    async def act(self, byte: int) -> None:
        """Do one of the things that happen to caches."""
        async with self.at_work:
            if byte < 222:
                await self._beat()
            elif byte < 227:
                await self._revoke()
            elif byte < 240:
                await self._roll(VERSIONS[byte % 2], is_given_up=byte % 5 == 0)
            else:
                await self._miss_a_rollout(VERSIONS[byte % 2], is_given_up=byte % 3 == 0)

    async def _beat(self) -> None:
        """Make a pass that finds nothing new."""
        if not await self._world.store.beat(self.record.cache_id, self.record.revision, HEARTBEAT_SECONDS):
            await self._announce()

    async def _revoke(self) -> None:
        """Raise the epoch: the keyspace is given up at once, and another begun for the same version."""
        self._world.count("revocations")
        await self._switch(self._new_keyspace(self.layer.model_version), KeyspaceState.DELETING)

    async def _roll(self, version: str, *, is_given_up: bool) -> None:
        """See the pods being replaced one by one, and perhaps put back."""
        if self.engine == (version,):
            return
        self._world.count("rollouts")
        readonly = replace(self.layer, state=KeyspaceState.READONLY)
        self._change(replace(self.record, layers={LAYER: readonly}))
        await self._announce()
        before = self.engine
        self.engine = (*before, version)
        await self._world.turn()
        self.engine = before if is_given_up else (version,)
        await self._follow()

    async def _miss_a_rollout(self, version: str, *, is_given_up: bool) -> None:
        """Be away while the pods are replaced: the heartbeat ends before they are."""
        self._world.count("rollouts missed")
        self._world.backdoor.end_heartbeat()
        before = self.engine
        self.engine = (*before, version)
        await self._world.turn()
        self.engine = before if is_given_up else (version,)
        await self._world.turn()
        await self._follow()

    async def _follow(self) -> None:
        """Give the permission to write, now that all pods are alike: where their answers belong."""
        (version,) = self.engine
        if version == self.layer.model_version:
            if self.layer.state is not KeyspaceState.ACTIVE:
                active = replace(self.layer, state=KeyspaceState.ACTIVE)
                self._change(replace(self.record, layers={LAYER: active}))
            await self._announce()
            return
        retained = [
            past for past in self.record.in_state(KeyspaceState.RETAINED) if past.model_version == version
        ]
        if retained:
            self._world.count("rollbacks")
        keyspace = retained[-1].keyspace if retained else self._new_keyspace(version)
        await self._switch(keyspace, KeyspaceState.RETAINED)

    def _new_keyspace(self, version: str) -> Keyspace:
        keyspace = Keyspace("1" * 16 if version == "a" else "2" * 16, self.record.incarnation + 1)
        self.record = replace(self.record, incarnation=keyspace.incarnation)
        self.versions[keyspace] = version
        return keyspace

    async def _switch(self, keyspace: Keyspace, old: KeyspaceState) -> None:
        layer, version = self.layer, self.versions[keyspace]
        self._last_in_use[layer.keyspace] = self.record.revision
        gone = PastKeyspace(
            LAYER, layer.keyspace, "binding", old, "t", "t", layer.model_version, layer.workload
        )
        past = (*(each for each in self.record.past if each.keyspace != keyspace), gone)
        active = LayerRecord(keyspace, "binding", "t", KeyspaceState.ACTIVE, version, version)
        self._change(replace(self.record, layers={LAYER: active}, past=past))
        await self._announce()

    def _change(self, record: Record) -> None:
        self.record = replace(record, revision=record.revision + 1)

    async def _announce(self) -> None:
        """Publish the record until the store has it and the gateways have looked."""
        world, record = self._world, self.record
        while True:
            await world.store.publish_record(record)
            await world.look_around()
            if await world.store.beat(record.cache_id, record.revision, HEARTBEAT_SECONDS):
                break
        world.done.append(Done(world.now + DONE_SECONDS, revision=record.revision))
