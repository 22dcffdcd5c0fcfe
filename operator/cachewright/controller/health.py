"""Whether this replica works, and the one port that says so: `/healthz`, `/readyz`, `/metrics`.

The signals are real ones. The Lease is renewed by requests and seen again through a watch, so a dead API
connection of either kind shows; and an object that nobody reconciled for two resync intervals shows a stuck
queue. The standby answers too: it sees the leader's renewals.
An API server that gives no answer is no reason to restart: that cures nothing, and Kubernetes waits longer
with each restart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from cachewright.controller.metrics import CONTENT_TYPE, OperatorMetrics
from cachewright.controller.roster import Roster
from cachewright.kube.connection import UNANSWERED

LEASE_SILENCE_SECONDS: Final = 60.0
"""Renewals come every 2 s, a take-over lasts up to 12 s; after longer silence we see nothing any more."""
OUTAGE_SECONDS: Final = 900.0
"""After this long without an answer a restart is tried all the same: the fault may be in the process."""
UNANSWERED_SECONDS: Final = 15.0
"""A request that failed this recently says that the API server is silent: one is sent every 5 s."""

IPV4_ADDRESS_PARTS: Final = 2
"""Address and port; IPv6 has flow and scope too."""


class Vitals:
    """What the process notes about itself."""

    def __init__(
        self, roster: Roster, monotonic: Callable[[], float], resync_seconds: float, *, elects: bool
    ) -> None:
        self._roster = roster
        self._monotonic = monotonic
        self._resync_seconds = resync_seconds
        self._elects = elects
        self._lease_seen_at = monotonic()
        self._lease_seen = False
        self._unanswered_at: float | None = None
        self.leads = False
        self.watches = False
        """Whether kopf's watches have started; only the leader's do."""
        self.stopping = False

    def saw_renewal(self) -> None:
        """Note that a renewal of the Lease came through the watch."""
        self._lease_seen_at = self._monotonic()
        self._lease_seen = True

    def saw_request(self, code: str) -> None:
        """Note how a request to the API server ended."""
        if code in UNANSWERED or code.startswith("5"):
            self._unanswered_at = self._monotonic()

    @property
    def _lease_silence_seconds(self) -> float:
        return self._monotonic() - self._lease_seen_at

    @property
    def _patience_seconds(self) -> float:
        failed_at = self._unanswered_at
        known = failed_at is not None and self._monotonic() - failed_at < UNANSWERED_SECONDS
        return OUTAGE_SECONDS if known else LEASE_SILENCE_SECONDS

    def ailments(self) -> list[str]:
        """Return why the process should be restarted; empty for a healthy one."""
        found = []
        silence = self._lease_silence_seconds
        if self._elects and silence > self._patience_seconds:
            found.append(f"no renewal of the lease came through the watch for {silence:.0f} s")
        waiting = self._roster.oldest_visit_seconds
        if self.leads and waiting > 2 * self._resync_seconds:
            found.append(f"an object was not reconciled for {waiting:.0f} s")
        return found

    def obstacles(self) -> list[str]:
        """Return why the process is not ready; empty for a ready one."""
        found = self.ailments()
        if self.stopping:
            found.append("stopping")
        if self._elects and not self._lease_seen:
            found.append("the lease was not seen yet")
        elif self._elects and not found and self._lease_silence_seconds > LEASE_SILENCE_SECONDS:
            found.append("the API server does not answer")
        if (self.leads or not self._elects) and not self.watches:
            found.append("the watches have not started yet")
        return found


def health_app(vitals: Vitals, metrics: OperatorMetrics) -> web.Application:
    """Return the application behind the one port."""

    def answer(problems: list[str]) -> web.Response:
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        return web.Response(status=status, text="\n".join(problems or ["ok"]) + "\n")

    async def healthz(_: web.Request) -> web.Response:
        return answer(vitals.ailments())

    async def readyz(_: web.Request) -> web.Response:
        return answer(vitals.obstacles())

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", show_metrics)
    return app


@asynccontextmanager
async def serving(app: web.Application, port: int) -> AsyncIterator[int]:
    """Serve on every address while the context lasts, and give the port; 0 picks a free one."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, port=port)
        await site.start()
        # Port 0 gives each address family a port of its own; IPv4 is what loopback clients try first.
        yield max(runner.addresses, key=lambda address: len(address) == IPV4_ADDRESS_PARTS)[1]
    finally:
        await runner.cleanup()
