"""`LeaderElection`: turns a Lease into the right to write, held by one operator replica at a time.

`controller` waits in `acquire`, keeps it with `keep`, gives it back with `release`.

The library's own election is not used. Its requests have no time limit, so a leader on a silent network still
believes in its lease long after another has taken it; it counts in wall-clock time, which jumps; only
ApiException is caught, so any connection error ends it; its LeaseLock cannot create a Lease that does not
exist; and it never releases one.

Nobody trusts another replica's clock: a Lease counts as expired when this replica has seen no change of it
for its duration, and a leader stops at RENEW_DEADLINE_SECONDS after the start of its last good renewal,
three seconds before anybody else may begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog

from cachewright.errors import CachewrightError, KubeConflict, KubeError, KubeNotFound
from cachewright.kube.protocol import LEASES, KubeClient, Manifest

LEASE_DURATION_SECONDS: Final = 10
RENEW_DEADLINE_SECONDS: Final = 7.0
RETRY_SECONDS: Final = 2.0
ATTEMPT_TIMEOUT_SECONDS: Final = 3.0
"""Bounds one renewal, so that a silent one leaves time for a second within the deadline."""

log = structlog.get_logger(__name__)


class LeaseLost(CachewrightError):
    """Another replica may be the leader by now: this process must not write any more."""


@dataclass(frozen=True, slots=True)
class Time:
    """The clocks and the pause of an election; tests bring their own."""

    now: Callable[[], datetime]
    """Wall-clock time, for people who read the Lease."""
    monotonic: Callable[[], float]
    """Seconds that never jump, for every decision."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class LeaderElection:
    """One replica's part in the election."""

    def __init__(self, kube: KubeClient, namespace: str, name: str, identity: str, time: Time) -> None:
        self.namespace = namespace
        self.name = name
        self.identity = identity
        self._kube = kube
        self._time = time
        self._lease: Manifest | None = None
        self._changed_at = 0.0
        """When this replica last saw the Lease change."""
        self._renewed_at: float | None = None
        """Start of the last good renewal; None while we are not the leader."""
        self._news = asyncio.Event()

    @property
    def leads(self) -> bool:
        """Whether this replica may write at this moment."""
        return (
            self._renewed_at is not None
            and self._time.monotonic() - self._renewed_at < RENEW_DEADLINE_SECONDS
        )

    def observe(self, lease: Manifest) -> None:
        """Take note of the Lease as a watch shows it; a released one is taken up at once."""
        if self._renewed_at is None:
            self._note(lease)
            if not _holder(lease):
                self._news.set()

    async def acquire(self) -> None:
        """Return once this replica is the leader."""
        while not await self._attempt(self._try_to_acquire):
            self._news.clear()
            news = asyncio.ensure_future(self._news.wait())
            pause = asyncio.ensure_future(self._time.sleep(RETRY_SECONDS))
            _, late = await asyncio.wait({news, pause}, return_when=asyncio.FIRST_COMPLETED)
            for each in late:
                each.cancel()
        log.info("lease acquired", lease=f"{self.namespace}/{self.name}", identity=self.identity)

    async def keep(self) -> None:
        """Renew the Lease for ever.

        Raises LeaseLost when it is not ours any more or could not be renewed before the deadline.
        """
        while True:
            await self._time.sleep(RETRY_SECONDS)
            if not await self._attempt(self._renew) and not self.leads:
                raise LeaseLost(f"lease {self.namespace}/{self.name} was not renewed in time")

    async def release(self) -> None:
        """Give the Lease back, so that another replica need not wait for it to expire."""
        if not self.leads or self._lease is None:
            return
        self._renewed_at = None
        spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT_SECONDS):
                await self._kube.replace({**self._lease, "spec": spec})
        except (KubeError, TimeoutError) as error:
            log.warning("lease not released, it expires by itself", error=str(error))
        else:
            log.info("lease released", lease=f"{self.namespace}/{self.name}")

    async def _attempt(self, action: Callable[[], Awaitable[bool]]) -> bool:
        started = self._time.monotonic()
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT_SECONDS):
                done = await action()
        except (KubeError, TimeoutError) as error:
            log.warning("lease not reachable", error=str(error) or type(error).__name__)
            return False
        if done:
            self._renewed_at = started
        return done

    async def _try_to_acquire(self) -> bool:
        lease = await self._kube.get(LEASES, self.namespace, self.name)
        if lease is None:
            return await self._write(self._kube.create, self._fresh(None))
        self._note(lease)
        holder = _holder(lease)
        duration = lease["spec"].get("leaseDurationSeconds") or LEASE_DURATION_SECONDS
        if holder not in ("", self.identity) and self._time.monotonic() - self._changed_at < duration:
            return False
        return await self._write(self._kube.replace, self._fresh(lease))

    async def _renew(self) -> bool:
        assert self._lease is not None, "keep comes after acquire"  # noqa: S101 - for the type checker
        renewed = {**self._lease, "spec": {**self._lease["spec"], "renewTime": self._timestamp()}}
        try:
            self._lease = await self._kube.replace(renewed)
        except (KubeConflict, KubeNotFound):
            # Somebody wrote to the Lease or removed it. Ours still, it is renewed from what is there now.
            return await self._renew_what_is_there()
        return True

    async def _renew_what_is_there(self) -> bool:
        lease = await self._kube.get(LEASES, self.namespace, self.name)
        if lease is None:
            return await self._write(self._kube.create, self._fresh(None))
        if _holder(lease) != self.identity:
            self._renewed_at = None
            raise LeaseLost(f"lease {self.namespace}/{self.name} is held by {_holder(lease) or 'nobody'}")
        return await self._write(
            self._kube.replace, {**lease, "spec": {**lease["spec"], "renewTime": self._timestamp()}}
        )

    async def _write(self, write: Callable[[Manifest], Awaitable[Manifest]], lease: Manifest) -> bool:
        try:
            self._lease = await write(lease)
        except KubeConflict:
            return False
        return True

    def _note(self, lease: Manifest) -> None:
        before = self._lease
        if before is None or _version(before) != _version(lease):
            self._lease = lease
            self._changed_at = self._time.monotonic()

    def _fresh(self, lease: Manifest | None) -> Manifest:
        """Return a Lease of ours, made anew or taken over from another holder."""
        moment = self._timestamp()
        before: dict[str, Any] = lease["spec"] if lease else {}
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_DURATION_SECONDS,
            "acquireTime": moment,
            "renewTime": moment,
            "leaseTransitions": before.get("leaseTransitions", 0) + (1 if lease else 0),
        }
        metadata = lease["metadata"] if lease else {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}

    def _timestamp(self) -> str:
        return self._time.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _holder(lease: Manifest) -> str:
    return str(lease.get("spec", {}).get("holderIdentity") or "")


def _version(lease: Manifest) -> str:
    return str(lease["metadata"]["resourceVersion"])
