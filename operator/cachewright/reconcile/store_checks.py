"""Ask the stores beside Redis whether they can do their part, and remember for a while what they said.

Called by observe in each pass. A store that is well is asked again after a minute, one in trouble after a few
seconds, and one that is reached in another way than before at once. What is remembered may be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cachewright.api.conditions import Reason
from cachewright.errors import InvalidInput, StoreError, StoreRefused, StoreUnfit
from cachewright.reconcile.state import StoreFinding
from cachewright.reconcile.store_targets import StoreTargets
from cachewright.stores.checking import (
    PostgresAccess,
    PostgresFacts,
    QdrantAccess,
    check_postgres,
    check_qdrant,
)

T = TypeVar("T")

WELL_SECONDS: Final = 60.0
"""How long a store that was well is taken to be so."""

TROUBLE_SECONDS: Final = 4.0
"""The same for one in trouble; a pass that found trouble is followed by another within 5 s."""

TIMEOUT_SECONDS: Final = 5.0
"""Longest wait for one store: each call of the stores is bounded itself, and a check makes a few of them."""


@dataclass(frozen=True, slots=True)
class StoreQuestions:
    """How stores are asked; either raises StoreError."""

    qdrant: Callable[[QdrantAccess], Awaitable[None]] = check_qdrant
    postgres: Callable[[PostgresAccess], Awaitable[PostgresFacts]] = check_postgres


@dataclass(frozen=True, slots=True)
class _Remembered:
    targets: StoreTargets
    findings: tuple[StoreFinding, ...]
    at: float


@dataclass(slots=True)
class StoreChecks:
    """What the stores of all objects said last, by the object's uid."""

    monotonic: Callable[[], float]
    questions: StoreQuestions = field(default_factory=StoreQuestions)
    _remembered: dict[str, _Remembered] = field(default_factory=dict)

    async def look(self, uid: str, targets: StoreTargets) -> tuple[StoreFinding, ...]:
        """Return what is wrong with the stores of an object; nothing where all is well."""
        last = self._remembered.get(uid)
        if last is not None and last.targets == targets and self.monotonic() < last.at + _lasts(last):
            return last.findings
        if targets == StoreTargets():
            self._remembered.pop(uid, None)
            return ()
        found = await asyncio.gather(self._qdrant(targets), self._postgres(targets))
        findings = tuple(finding for each in found for finding in each)
        self._remembered[uid] = _Remembered(targets, findings, self.monotonic())
        return findings

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._remembered.pop(uid, None)

    async def _qdrant(self, targets: StoreTargets) -> tuple[StoreFinding, ...]:
        if targets.qdrant is None:
            return ()
        finding, _ = await _asked("Qdrant", self.questions.qdrant(targets.qdrant))
        return (finding,) if finding else ()

    async def _postgres(self, targets: StoreTargets) -> tuple[StoreFinding, ...]:
        if targets.postgres is None:
            return ()
        finding, facts = await _asked("PostgreSQL", self.questions.postgres(targets.postgres))
        if finding is not None or facts is None:
            return (finding,) if finding else ()
        wanted = targets.postgres_connections
        if facts.connections >= wanted:
            return ()
        mend = "raise its max_connections, or put a pooler in front of it"
        if targets.postgres_is_managed:
            mend = "raise stores.postgres.managed.memory, from which that number is derived"
        message = (
            f"all gateways together may open {wanted} connections, and the server allows {facts.connections};"
            f" {mend}"
        )
        return (StoreFinding("PostgreSQL", Reason.TOO_FEW_CONNECTIONS, message, serves=True),)


def reason_of(error: StoreError | InvalidInput) -> Reason:
    """Name the kind of trouble that an error of a store tells of."""
    match error:
        case InvalidInput():
            return Reason.SECRET_INVALID
        case StoreUnfit():
            return Reason.STORE_UNFIT
        case StoreRefused():
            return Reason.STORE_REFUSED
        case _:
            return Reason.STORE_UNREACHABLE


def _lasts(last: _Remembered) -> float:
    return TROUBLE_SECONDS if last.findings else WELL_SECONDS


async def _asked(store: str, question: Awaitable[T]) -> tuple[StoreFinding | None, T | None]:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return None, await question
    except TimeoutError:
        message = f"no answer within {TIMEOUT_SECONDS:g} s"
        return StoreFinding(store, Reason.STORE_UNREACHABLE, message), None
    except (StoreError, InvalidInput) as e:
        return StoreFinding(store, reason_of(e), str(e)), None
