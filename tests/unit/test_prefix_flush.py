"""Emptying engines' prefix caches after a switch: when, which pods, until when, and what is told."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from cachewright.api.conditions import ConditionType
from cachewright.reconcile.prefix.engine_calls import EngineCalls
from cachewright.reconcile.prefix.seen import PrefixSeen
from e2e.engine import Engine as StandIn
from e2e.engine import PrefixCache
from tests.support.caches import Document
from tests.support.passes import World
from tests.support.prefix import prefix_cache
from tests.support.waiting import PATIENCE_SECONDS
from tests.unit.test_prefix_hits import WORDS

OLD, NEW = "2026-11-30T11:00:00Z", "2026-11-30T13:00:00Z"
"""Before the passes' first moment, and after it."""


class Flushing:
    """A cache whose engine is to be emptied, and passes over it with real calls."""

    def __init__(self, **layer: Any) -> None:
        document = prefix_cache(flush="AfterSwitch", metrics={"enabled": False}, **layer)
        document["metadata"] |= {"namespace": "ml"}
        self.world = World(document)
        self.world.settle()
        self.restart()

    def restart(self) -> None:
        """Begin anew with nothing remembered, as a new process does."""
        self.calls = EngineCalls(lambda: 0.0, 60.0, PATIENCE_SECONDS)

    async def look(self, *pods: Document, problem: str = "") -> str:
        """Run two passes over these pods, as a switch takes; returns the condition's status and reason."""
        for _ in range(2):
            seen = PrefixSeen(pods=pods, problem=problem)
            planned = self.world.step(prefix=seen)
            observed = await self.calls.flush(self.world.look(prefix=seen), planned)
            self.world.step(prefix=observed.prefix)
        condition = self.world.condition(ConditionType.PREFIX_CACHING_READY)
        return f"{condition['status']} {condition['reason']}: {condition['message']}"

    def bump(self, version: str) -> None:
        """Tell of another version of the model."""
        self.world.change(model={**self.world.document["spec"]["model"], "version": version})

    @property
    def flushed(self) -> str:
        """Return what status says."""
        return str((self.world.document["status"].get("prefix") or {}).get("flushed", ""))


def pod(engine: StandIn | int, name: str = "vllm-0", created: str = OLD) -> Document:
    """Return a running pod whose engine is at this port."""
    port = engine if isinstance(engine, int) else urlsplit(engine.url).port
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": created},
        "spec": {"containers": [{"name": "engine", "args": [*WORDS, f"--port={port}"]}]},
        "status": {"phase": "Running", "podIP": "127.0.0.1"},
    }


async def test_pods_are_emptied_once_after_a_switch() -> None:
    """Not when the layer comes, and not again by a new process."""
    cache = PrefixCache(block_size=1)
    async with StandIn(prefix_cache=cache, dev_mode=True) as engine:
        flushing, there = Flushing(), pod(engine)
        cache.use({"prompt": "a b c"})
        assert (await flushing.look(there)).startswith("True Ready")
        assert cache.use({"prompt": "a b c"}).cached
        first = flushing.flushed
        flushing.bump("2")
        assert (await flushing.look(there)).startswith("True Ready")
        assert not cache.use({"prompt": "a b c"}).cached
        assert flushing.flushed not in ("", first)
        for _ in range(2):
            flushing.restart()
            await flushing.look(there)
        assert cache.use({"prompt": "a b c"}).cached


async def test_a_refusal_is_told_and_tried_again() -> None:
    """`success: false` while requests hold blocks; the pod that did it is not asked twice."""
    held, free = PrefixCache(block_size=1), PrefixCache(block_size=1)
    async with (
        StandIn(prefix_cache=held, dev_mode=True) as one,
        StandIn(prefix_cache=free, dev_mode=True) as two,
    ):
        flushing, pods = Flushing(), (pod(one, "vllm-0"), pod(two, "vllm-1"))
        await flushing.look(*pods)
        before = flushing.flushed
        flushing.bump("2")
        one.holds_blocks = True
        told = await flushing.look(*pods)
        assert told.startswith("False FlushPending: 1 pods of Deployment vllm may still hold")
        assert "pod vllm-0 has requests that hold blocks" in told
        assert flushing.flushed == before
        free.use({"prompt": "a b c"})
        one.holds_blocks = False
        assert (await flushing.look(*pods)).startswith("True Ready")
        assert free.use({"prompt": "a b c"}).cached
        assert flushing.flushed != before


async def test_an_engine_without_the_endpoint_is_told_of_until_it_is_gone() -> None:
    """Its status, or its silence; a pod that is younger than the switch has nothing to empty."""
    async with StandIn(prefix_cache=PrefixCache()) as engine:
        flushing, there = Flushing(), pod(engine)
        await flushing.look(there)
        flushing.bump("2")
        assert "answers /reset_prefix_cache with status 404" in await flushing.look(there)
    assert "gives no answer at /reset_prefix_cache" in await flushing.look(there)
    done = await flushing.look(problem="Deployment vllm does not exist")
    assert done.startswith("False WorkloadNotFound")
    assert not flushing.flushed.startswith(str(flushing.world.record().layers["Prefix"].keyspace))
    assert (await flushing.look(pod(1, created=NEW))).startswith("True Ready")
    assert flushing.flushed == str(flushing.world.record().layers["Prefix"].keyspace)


@pytest.mark.parametrize(("status", "is_done"), [(200, True), (400, False)])
async def test_sglang_says_it_by_its_status(status: int, is_done: bool) -> None:
    """It answers with a sentence, and with 400 while requests run; without salts the exact layer switches."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(
            status=status, text="Cache flushed.\nPlease check backend logs for more details.\n"
        )

    app = web.Application()
    app.router.add_post("/flush_cache", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        sglang = {"engine": "SGLang", "engineVersion": "0.5.10", "tenantSalt": False}
        flushing, there = Flushing(**sglang), pod(runner.addresses[0][1])
        there["spec"]["containers"][0]["args"] = ["--enable-cache-report", "--enable-metrics"]
        there["spec"]["containers"][0]["args"] += [f"--port={runner.addresses[0][1]}"]
        assert (await flushing.look(there)).startswith("True Ready")
        flushing.bump("2")
        assert (await flushing.look(there)).startswith("True Ready" if is_done else "False FlushPending")
    finally:
        await runner.cleanup()


async def test_nobody_is_asked_unless_the_object_says_so() -> None:
    """By default a switch empties nothing: another salt is enough."""
    cache = PrefixCache(block_size=1)
    async with StandIn(prefix_cache=cache, dev_mode=True) as engine:
        flushing = Flushing()
        flushing.world.document["spec"]["layers"]["prefix"]["flush"] = "Never"
        cache.use({"prompt": "a b c"})
        await flushing.look(pod(engine))
        flushing.bump("2")
        await flushing.look(pod(engine))
        assert cache.use({"prompt": "a b c"}).cached
        assert flushing.flushed == ""
