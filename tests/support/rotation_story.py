"""The story of a cache, from bump to rollback, epochs and the end of what was retained, and what breaks it.

A trouble strikes at each step, before the operator has seen it, and may bring back what was there before it.
Told on an API server in memory by the store tests, and on a real one by the API tests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cachewright.kube.protocol import CONFIG_MAPS, INFERENCE_CACHES, SECRETS
from cachewright.reconcile.timestamps import to_timestamp
from tests.support.rotation_world import RotationWorld


@dataclass(frozen=True)
class Step:
    """What people and pods do, and what the record then says of the exact layer."""

    expects: str
    edit: tuple[tuple[str, Any], ...] = ()
    start: str = ""
    stop: str = ""
    hours: int = 0


STORY = (
    Step("1 active", edit=(("version", "2"),)),
    Step("1 readonly", start="2"),
    Step("2 active", stop="1"),
    Step("2 active", edit=(("version", "1"),)),
    Step("2 readonly", start="1"),
    Step("1 active", stop="2"),
    Step("1 active", edit=(("epoch", 1),)),
    Step("1 active", edit=(("epoch", 0),)),
    Step("1 active", edit=(("epoch", 2),)),
    Step("3 active", edit=(("version", "3"),), start="3", stop="1"),
    Step("3 active", hours=25),
)

Strike = Callable[[RotationWorld], Awaitable[None]]


async def nothing_happens(_world: RotationWorld) -> None:
    """All is well, but for an operator that may die."""


async def the_store_dies(world: RotationWorld) -> None:
    """It is away for a pass, and comes back empty."""
    world.server.kill()
    await world.reconcile()
    world.server.restart()


async def the_store_is_emptied(world: RotationWorld) -> None:
    """Somebody takes all of it away."""
    world.backdoor.lose()


async def the_store_fails_over(world: RotationWorld) -> None:
    """To a replica that stopped following a step ago."""
    world.backdoor.go_back()


async def the_record_is_lost(world: RotationWorld) -> None:
    """Somebody deletes its ConfigMap."""
    await world.delete(CONFIG_MAPS, await world.child(CONFIG_MAPS, "demo-record"))


async def the_record_is_an_old_one(world: RotationWorld) -> None:
    """A backup of the ConfigMap is brought back, from a step ago."""
    live = await world.child(CONFIG_MAPS, "demo-record")
    await world.api.replace({**live, "data": world.kept_record["data"]})


async def the_record_is_lost_in_a_failover(world: RotationWorld) -> None:
    """The ConfigMap is deleted while the store, now an older one, has another's word on what was decided."""
    world.backdoor.go_back()
    await the_record_is_lost(world)


async def the_status_is_lost(world: RotationWorld) -> None:
    """Somebody takes it away."""
    metadata = {"name": "demo", "namespace": world.namespace}
    kinds = {"apiVersion": INFERENCE_CACHES.api_version, "kind": INFERENCE_CACHES.kind}
    await world.api.apply_status({**kinds, "metadata": metadata, "status": {}})


async def the_object_is_made_again(world: RotationWorld) -> None:
    """It is another one then, with an id of its own."""
    document = await world.cache_gone()
    await world.make(document["spec"])


async def the_object_adopts_its_id(world: RotationWorld) -> None:
    """The new one names the cache id of the old."""
    cache_id = (await world.record()).cache_id
    document = await world.cache_gone()
    await world.make({**document["spec"], "cacheID": cache_id})


async def a_backup_is_restored(world: RotationWorld) -> None:
    """Object without status, the record of a step ago, and the digest key, none with an owner."""
    keys = await world.child(SECRETS, "demo-keys")
    cache_id = (await world.record()).cache_id
    document = await world.cache_gone()
    await world.make({**document["spec"], "cacheID": cache_id})
    for kind, kept in ((CONFIG_MAPS, world.kept_record), (SECRETS, keys)):
        metadata = {key: kept["metadata"][key] for key in ("name", "labels")}
        await world.create({"metadata": metadata, "data": kept["data"]}, kind)


@dataclass(frozen=True)
class Trouble:
    """One kind of trouble."""

    strike: Strike = nothing_happens
    dies_after: int | None = None
    keeps_entries: bool = False
    """Whether what was retained can be there after the rollback."""
    forgets: bool = False
    """Whether nobody remembers which version the pods served."""
    loses_a_step: bool = False
    """Whether nobody remembers what was decided last, so that only the end is the same."""


TROUBLES = {
    "operator dies after each write": Trouble(dies_after=1, keeps_entries=True),
    "store dies": Trouble(the_store_dies),
    "store emptied": Trouble(the_store_is_emptied),
    "store fails over": Trouble(the_store_fails_over),
    "record lost": Trouble(the_record_is_lost, keeps_entries=True),
    "record lost in a failover": Trouble(the_record_is_lost_in_a_failover, loses_a_step=True),
    "record an old one": Trouble(the_record_is_an_old_one, keeps_entries=True),
    "status lost": Trouble(the_status_is_lost, keeps_entries=True),
    "object made again": Trouble(the_object_is_made_again, forgets=True),
    "object made again, adopting": Trouble(the_object_adopts_its_id),
    "backup without status": Trouble(a_backup_is_restored, keeps_entries=True),
}


async def tell(world: RotationWorld, trouble: Trouble) -> None:
    """Tell the story with one kind of trouble, and check what must hold at each step and at the end."""
    world.dies_after = trouble.dies_after
    world.restart()
    await world.begin("1")
    for step in STORY:
        await world.remember()
        await take(world, step)
        await trouble.strike(world)
        await world.settle()
        record = await world.record()
        layer = record.layers["Exact"]
        if trouble.forgets:
            wanted = (await world.child(INFERENCE_CACHES, "demo"))["spec"]["model"]["version"]
            assert layer.model_version == wanted
            assert (layer.state == "active") == (len(world.pods) == 1)
        elif step is STORY[-1] or not trouble.loses_a_step:
            assert f"{layer.model_version} {layer.state}" == step.expects, step
        conditions = await world.conditions()
        assert conditions["StoresReady"] == "True Ready"
        if trouble.keeps_entries and step.stop == "2":
            assert conditions["RotationComplete"] == "True RolledBack"
            assert await world.served_from() == {0}, "the answers of before the bump are not there"
    over = [past for past in record.past if past.until <= to_timestamp(world.now)]
    assert not over, "what is over was not reclaimed"
    assert world.hits > 0


async def take(world: RotationWorld, step: Step) -> None:
    """Do what a step says, all of it before the operator looks."""
    if step.edit:
        await world.edit(**dict(step.edit))
    if step.start:
        await world.start(step.start)
    if step.stop:
        await world.stop(step.stop)
    world.now += timedelta(hours=step.hours, minutes=1)
