"""One run of `cachewright local`: starts store, upstream and gateway, shows them, and ends them all.

The gateway is the very process that runs in a cluster, on a folder with the same files. Called by
`cli.local`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import secrets
import signal
import socket
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.quantities import parse_bytes
from cachewright.api.stores import ManagedRedis
from cachewright.errors import LocalError
from cachewright.gateway.mounts import ADMIN, Mounts
from cachewright.gateway.process import GatewayProcess, GatewaySettings
from cachewright.local.declared import Declared, Source
from cachewright.local.edition import Edition, UpstreamChoice
from cachewright.local.facts import Facts
from cachewright.local.keeper import Keeper, Reclaims
from cachewright.local.numbers import Tally, take_tally
from cachewright.local.run_store import RunStore
from cachewright.local.secret_options import SecretOption
from cachewright.local.stand_in import StandIn
from cachewright.local.state_folder import Running, StateFolder, default_state_folder, write_private
from cachewright.local.store_choice import StoreChoice, choose_store, external_store
from cachewright.local.telling import PlainLines, Quiet, Teller

FROM_MANIFEST: Final = "manifest"
"""`--upstream manifest`: where the manifest says."""

READY_SECONDS: Final = 15.0
ENACT_SECONDS: Final = 10.0
"""Longest wait for the gateway to see an edited manifest; it looks every second."""

STOP_SECONDS: Final = 1.5
"""How long answers under way may take after the first Ctrl-C."""


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What the command line says."""

    host: str
    port: int
    """0: any free one."""
    management_port: int
    state_dir: Path | None
    """None: the default place."""
    ephemeral: bool
    store: str
    upstream: str | None
    """A URL, `manifest`, or None for the stand-in."""
    latency_seconds: float
    """Of the stand-in."""
    secrets: tuple[SecretOption, ...]
    output: Literal["text", "json"]
    plain: bool
    interval_seconds: float
    """Between two plain lines."""


class LocalSession:
    """A run from its start to its end."""

    def __init__(self, source: Source, declared: Declared, options: LocalOptions) -> None:
        self._source = source
        self._declared = declared
        self._options = options
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Serve until SIGINT or SIGTERM; a second one ends it at once.

        Raises InvalidInput for what is missing in manifest or options, and LocalError.
        """
        self._obey_signals()
        async with AsyncExitStack() as closing:
            await self._start(closing)
            teller = self._greet()
            follow = self._keeper.follow(self._store.url, teller.tell, self._enacted, self._reclaims)
            background = [
                asyncio.create_task(teller.run()),
                asyncio.create_task(follow),
                asyncio.create_task(self._store.watch(teller.tell)),
            ]
            try:
                await self._stopped(background)
            finally:
                for task in background:
                    task.cancel()
                await asyncio.gather(*background, return_exceptions=True)

    async def _start(self, closing: AsyncExitStack) -> None:
        options = self._options
        for port, option in ((options.port, "--port"), (options.management_port, "--management-port")):
            _refuse_taken(options.host, port, option)
        state = self._open_state(closing)
        upstream, self._upstream_shown = await self._choose_upstream(closing)
        self._keeper = Keeper(self._source, options.secrets, state, upstream)
        max_memory_bytes = _max_memory_bytes(self._declared.cache)
        self._store = await RunStore.open(
            self._choose_store(), state.run / "store", self._keeper.cache_id, max_memory_bytes
        )
        closing.callback(self._store.close)
        self._keeper.take(self._declared, self._store.url)
        self._admin_token = state.run / ADMIN
        write_private(self._admin_token, secrets.token_urlsafe(32))
        Mounts(state.run).read_configuration()  # what the gateway could not read is told here, at once
        self._process = GatewayProcess(
            GatewaySettings(
                state.run,
                options.host,
                options.port,
                options.management_port,
                admin_port=0,
                lame_duck_seconds=0,
            )
        )
        await self._process.start()
        closing.push_async_callback(self._stop_gateway)
        await self._ready()
        self._run_folder = state.run
        self._publish()

    def _publish(self) -> None:
        """Tell other commands what runs."""
        keeper = self._keeper
        Running(keeper.document, self._facts().metrics_url, keeper.upstream_url).write(self._run_folder)

    async def _ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not self._process.health.ready:
            if time.monotonic() > deadline:
                raise LocalError(f"the gateway did not become ready within {READY_SECONDS:.0f} s")
            await asyncio.sleep(0.01)

    def _open_state(self, closing: AsyncExitStack) -> StateFolder:
        if self._options.ephemeral:
            path = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="cachewright-local-")))
        else:
            path = self._options.state_dir or default_state_folder(self._declared.cache.metadata.name)
        state = StateFolder.open(path)
        closing.callback(state.close)
        return state

    async def _choose_upstream(self, closing: AsyncExitStack) -> tuple[UpstreamChoice, str]:
        asked = self._options.upstream
        if asked == FROM_MANIFEST:
            return UpstreamChoice(None), ""
        if asked is not None:
            return UpstreamChoice(asked), asked
        latency_seconds = self._options.latency_seconds
        stand_in = StandIn(latency_seconds)
        url = await stand_in.start()
        closing.push_async_callback(stand_in.aclose)
        latency = f"{latency_seconds * 1000:.0f} ms"
        shown = f"STAND-IN: a fake model, {latency} per answer; for a real one: --upstream URL"
        return UpstreamChoice(url, is_stand_in=True), shown

    def _choose_store(self) -> StoreChoice:
        """Choose by `--store`; `auto` takes the manifest's external store if its URL is given."""
        redis = self._declared.cache.spec.stores.redis
        if self._options.store == "auto" and redis.external is not None:
            given = external_store(redis.external, self._keeper.secrets(self._declared))
            if given is not None:
                return given
        prefer_redis = redis.managed is not None and redis.managed.flavor == "Redis"
        return choose_store(self._options.store, prefer_redis)

    def _greet(self) -> Teller:
        if self._options.output == "json":
            _say(self._facts().ready_line())
            return Quiet()
        _say(self._facts().greeting())
        if self._options.plain or not sys.stdout.isatty():
            return PlainLines(self._count, self._options.interval_seconds)
        try:
            from cachewright.local.view import LiveView
        except ImportError:  # rich comes with the extra `local`, and is no reason not to serve
            return PlainLines(self._count, self._options.interval_seconds)
        return LiveView(self._facts, self._count)

    async def _stopped(self, background: list[asyncio.Task[None]]) -> None:
        """Return when a signal came; a failure of what runs beside is ours and ends the run."""
        stopping = asyncio.create_task(self._stopping.wait())
        waiting: set[asyncio.Task[Any]] = {stopping, *background}
        try:
            while not stopping.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            stopping.cancel()

    async def _stop_gateway(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.stop()

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        running = asyncio.current_task()

        def stop() -> None:
            if self._stopping.is_set() and running is not None:
                running.cancel()
            self._stopping.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop)

    async def _enacted(self, edition: Edition) -> None:
        self._store.resize(_max_memory_bytes(edition.cache))
        self._publish()
        deadline = time.monotonic() + ENACT_SECONDS
        while self._revision() < edition.record.revision:
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.01)

    def _reclaims(self) -> Reclaims:
        return self._process.janitor.news.reclaims

    def _revision(self) -> float:
        """Return the record's revision that the gateway uses."""
        return self._process.metrics.registry.get_sample_value("cachewright_record_revision") or 0.0

    def _facts(self) -> Facts:
        return Facts(
            self._keeper.edition,
            self._source.shown,
            self._options.host,
            self._process.port,
            self._process.management_port,
            self._process.admin_port or 0,
            self._admin_token,
            self._store.shown,
            self._upstream_shown or self._keeper.edition.cache.spec.upstream.url,
        )

    def _count(self) -> Tally:
        return take_tally(self._process.metrics.registry, time.monotonic())


def _refuse_taken(host: str, port: int, option: str) -> None:
    """Raise LocalError where a port is taken, before anything is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as e:
            if e.errno == errno.EADDRINUSE:
                raise LocalError(
                    f"port {port} is in use; choose another with {option} (0: any free one)"
                ) from e
            raise LocalError(
                f"cannot listen on {host} port {port}: {e.strerror}; see --host, {option}"
            ) from e


def _max_memory_bytes(cache: InferenceCache) -> int:
    managed = cache.spec.stores.redis.managed or ManagedRedis()
    return parse_bytes(managed.max_memory)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
