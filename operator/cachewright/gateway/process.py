"""The gateway process: from a folder of mounts to its listening ports, until it is told to stop.

Started by `gateway.main`; tests start it in their own loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from cachewright.asgi_server import AsgiServer, server_config
from cachewright.errors import InvalidInput, StoreError
from cachewright.gateway.admin import AdminApp, AdminState
from cachewright.gateway.app import GatewayApp
from cachewright.gateway.assembly import Assembly
from cachewright.gateway.flow import Flow
from cachewright.gateway.health import Health
from cachewright.gateway.http10 import TrafficProtocol
from cachewright.gateway.janitor import JanitorDuty
from cachewright.gateway.management import ManagementApp
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.gateway.mounts import ADMIN, CONFIGURATION, RECORD, Mounts, Signature
from cachewright.gateway.probing import Parts, ProbeDuty
from cachewright.gateway.throttle import Throttle
from cachewright.gateway.write_queue import WriteQueue
from cachewright.keys.record import Record
from cachewright.layers.janitor import Janitor

POLL_SECONDS: Final = 1.0
"""How often mounted files are looked at."""

STORE_GRACE_SECONDS: Final = 5.0
"""How long a new process stays unready for a store that does not answer yet."""

GRACEFUL_SECONDS: Final = 20
"""How long answers in flight may take to end after SIGTERM."""

DRAIN_WRITES_SECONDS: Final = 2.0

_log = structlog.get_logger(__name__)


App = GatewayApp | ManagementApp | AdminApp


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """How one gateway process runs."""

    config_dir: Path
    host: str
    port: int
    """0: any free one."""
    management_port: int
    admin_port: int | None = None
    """None: not opened; else opened where a token is mounted."""
    probes: bool = False
    """True: layers are tried now and then, and what came of it is left in the store for the operator."""
    lame_duck_seconds: float = 3.0
    """How long requests are still taken after SIGTERM, until every balancer has heard of it."""


class GatewayProcess:
    """One gateway: its mounts, its ports, its connections."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._mounts = Mounts(settings.config_dir)
        self.metrics = GatewayMetrics()
        self.health = Health()
        self._writes = WriteQueue(self.metrics)
        self._throttle = Throttle(time.monotonic)
        self._semantic_writes = WriteQueue(self.metrics, is_semantic=True)
        self._flow = Flow(self.metrics, self._writes, self._semantic_writes)
        self.probing = ProbeDuty(self._parts_and_record)
        self._assembly = Assembly(self.metrics, self._throttle, self.probing.connections_changed)
        self.janitor = JanitorDuty(self._janitor_and_record, self.metrics, self._throttle)
        self._record: Record | None = None
        """The mounted record as last read; what is known may be newer."""
        self._admin_token: bytes | None = None
        """As last read."""
        self._seen: dict[str, Signature] = {}
        self._servers: list[AsgiServer] = []
        self._tasks: list[asyncio.Task[None]] = []
        """One that serves for each port, then those that watch."""
        self._awaiting_store: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the mounts and listen on all ports; raises OSError or SystemExit where a port is taken."""
        self._refresh()
        await self._assembly.warm()
        apps: list[tuple[App, int]] = [
            (GatewayApp(self._flow, self.health, self._throttle, self.metrics), self._settings.port),
            (ManagementApp(self.health, self.metrics.registry), self._settings.management_port),
        ]
        if self._admin_token is not None and self._settings.admin_port is not None:
            apps.append((self._admin_app(), self._settings.admin_port))
        self._servers = [
            AsgiServer(server_config(app, self._settings.host, port, GRACEFUL_SECONDS, TrafficProtocol))
            for app, port in apps
        ]
        self._tasks = [asyncio.create_task(server.serve()) for server in self._servers]
        watching = [self._watch(), self._watch_store(), self.janitor.run()]
        if self._settings.probes:
            watching.append(self.probing.run())
        self._tasks += [asyncio.create_task(each) for each in watching]
        self._awaiting_store = asyncio.create_task(self._await_store())
        while not all(server.started for server in self._servers):
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.005)
        _log.info(
            "gateway_started",
            port=self.port,
            management_port=self.management_port,
            admin_port=self.admin_port,
        )

    @property
    def port(self) -> int:
        """The traffic port in use."""
        return self._servers[0].bound_port

    @property
    def management_port(self) -> int:
        """The management port in use."""
        return self._servers[1].bound_port

    @property
    def admin_port(self) -> int | None:
        """The admin port in use; None where it is not opened."""
        return self._servers[2].bound_port if len(self._servers) > 2 else None

    async def stop(self) -> None:
        """Turn unready, let answers in flight end, write what waits, close everything; bounded."""
        self.health.draining = True
        _log.info("gateway_draining")
        await asyncio.sleep(self._settings.lame_duck_seconds)
        for server in self._servers:
            server.should_exit = True
        serving, watching = self._tasks[: len(self._servers)], self._tasks[len(self._servers) :]
        await asyncio.gather(*serving, return_exceptions=True)
        await self._flow.aclose()
        drained = (queue.drain(DRAIN_WRITES_SECONDS) for queue in (self._writes, self._semantic_writes))
        given_up = sum(await asyncio.gather(*drained))
        for task in watching:
            task.cancel()
        if self._awaiting_store is not None:
            self._awaiting_store.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await self._assembly.aclose()
        _log.info("gateway_stopped", writes_given_up=given_up)

    async def _await_store(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STORE_GRACE_SECONDS):
                await self._assembly.store_answers()
        self.health.store_awaited = True

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                self._refresh()
            except Exception:  # noqa: BLE001 - the edge of a task that must live as long as the process
                _log.exception("refresh_failed")

    async def _watch_store(self) -> None:
        """Let the layer look at its store each second, so that nothing that is done there escapes it."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                serving = self._flow.serving
                if serving is not None and serving.exact is not None:
                    await serving.exact.catch_up()
                if serving is not None and serving.embeddings is not None:
                    await serving.embeddings.layer.catch_up()
            except StoreError as e:
                if (skipped := self._throttle.skipped("catch_up_failed")) is not None:
                    _log.warning("catch_up_failed", error=str(e), skipped=skipped)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("catch_up_failed")

    def _refresh(self) -> None:
        """Read what has changed among the mounts; what does not parse leaves the last good in use."""
        if self._changed("record", RECORD):
            with self._keeping_last_good("record"):
                self._record = self._mounts.read_record()
        if self._changed("configuration", *CONFIGURATION):
            with self._keeping_last_good("configuration"):
                self._flow.serving = self._assembly.build(self._mounts.read_configuration())
                _log.info("configuration_read", cache=self._flow.serving.policy.cache)
        if self._changed("admin_token", ADMIN):
            with self._keeping_last_good("admin_token"):
                self._admin_token = self._mounts.read_admin_token() or self._admin_token
        serving = self._flow.serving
        if serving is None or self._record is None:
            return
        known = self._assembly.known_record(serving.policy.cache_id)
        if known.offer(self._record):
            _log.info("record_read", revision=self._record.revision)
        if known.best is not None:
            self.metrics.record_revision.set(known.best.revision)
        self.health.configured = known.best is not None

    def _janitor_and_record(self) -> tuple[Janitor, Record] | None:
        serving = self._flow.serving
        if serving is None or serving.janitor is None:
            return None
        record = self._assembly.known_record(serving.policy.cache_id).best
        return None if record is None else (serving.janitor, record)

    def _parts_and_record(self) -> tuple[Parts, Record] | None:
        serving = self._flow.serving
        if serving is None:
            return None
        record = self._assembly.known_record(serving.policy.cache_id).best
        return None if record is None else (self._assembly.parts(serving), record)

    def _admin_app(self) -> AdminApp:
        def state() -> AdminState | None:
            serving = self._flow.serving
            if serving is None:
                return None
            known = self._assembly.known_record(serving.policy.cache_id)
            return AdminState(serving, known.best, self.health.ready, self.janitor.news)

        return AdminApp(lambda: self._admin_token, state, self.metrics.registry)

    def _changed(self, kind: str, *names: str) -> bool:
        signature = self._mounts.signature(*names)
        changed = self._seen.get(kind) != signature
        self._seen[kind] = signature
        return changed

    @contextlib.contextmanager
    def _keeping_last_good(self, what: str) -> Iterator[None]:
        try:
            yield
        except InvalidInput as e:
            self.metrics.configuration_errors.inc()
            _log.error("mount_not_read", what=what, error=str(e))
