"""The stage of a measurement: a store, an upstream and the gateways, all running.

Called by the command line.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench.contenders import Contender, Variant, run_ours, run_peer
from bench.load import Connection
from bench.processes import free_port, running
from tests.support.redis_servers import RedisServer, run_redis


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything a scenario may use."""

    folder: Path
    store: RedisServer
    upstream_url: str
    contenders: tuple[Contender, ...]

    async def conduct(self, **changes: float) -> int:
        """Change the upstream's conduct; returns how many calls it has had so far."""
        connection = await Connection.open(self.upstream_url)
        body = orjson.dumps(changes)
        head = f"POST /bench/conduct HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        timing = await connection.ask(head.encode() + body)
        connection.close()
        return int(orjson.loads(timing.body)["calls"])


@asynccontextmanager
async def beside(
    stage: Stage, variant: Variant = "usual", store_url: str | None = None
) -> AsyncIterator[Stage]:
    """Start further gateways in front of a stage's upstream; the peer too where there is another store."""
    with_peer = store_url is not None and len(stage.contenders) > 1
    context = set_up(with_peer, store_url, under=stage, variant=variant)
    other = await asyncio.to_thread(context.__enter__)
    try:
        yield other
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


@contextmanager
def set_up(
    with_peer: bool, store_url: str | None = None, under: Stage | None = None, *, variant: Variant = "usual"
) -> Iterator[Stage]:
    """Start everything and end it with the block.

    With `under`, the gateways are new ones in front of that stage's upstream and store; `store_url` is
    another way to that store, with USER in place of the user and the password.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachewright-bench-")))
        if under is None:
            store = stack.enter_context(run_redis("redis"))
            upstream_url = f"http://127.0.0.1:{free_port()}"
            command = [sys.executable, "-m", "bench.upstream", "--port", upstream_url.rpartition(":")[2]]
            log = folder / "upstream.log"
            stack.enter_context(running(command, log, f"{upstream_url}/bench/calls"))
        else:
            store, upstream_url = under.store, under.upstream_url

        def address(user: str) -> str:
            return store_url.replace("USER", user) if store_url else store.url(user)

        ours = run_ours(folder / "ours", store.cache_id, address("gateway"), upstream_url, variant=variant)
        contenders = [stack.enter_context(ours)]
        if with_peer:
            peer = run_peer(folder / "peer", address("root"), upstream_url)
            contenders.append(stack.enter_context(peer))
        yield Stage(folder, store, upstream_url, tuple(contenders))
