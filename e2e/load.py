"""Steady traffic for tests of rotation: many clients on kept-alive connections, and what each answer said.

The mix has questions asked all the time (which old answers would show), questions of a moment (which many
clients ask at once) and questions asked once (so that there is always something to write).
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from e2e.client import TIMEOUT_SECONDS
from e2e.engine import version_in
from e2e.kubectl import wait_for

CLIENTS: Final = 8
REQUESTS_PER_SECOND: Final = 240.0
"""Of all clients together."""
TENANTS: Final = ("acme", "globex", "initech")
HOT_QUESTIONS: Final = 12
MOMENT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Told:
    """One answer: when it was asked for by the monotonic clock, who said it, and whether from the cache."""

    started: float
    ended: float
    status: int
    question: str
    version: str
    """Of the engine that said it; empty where none did."""
    is_hit: bool


class Load:
    """Clients that ask until told to stop; use it as a context manager."""

    def __init__(self, gateways: Sequence[tuple[str, int]], model: str = "demo-model") -> None:
        """`gateways` are hosts and ports; clients are spread over them."""
        self._gateways = tuple(gateways)
        self._model = model
        self._told: list[list[Told]] = [[] for _ in range(CLIENTS)]
        self._broken: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(CLIENTS)]

    def __enter__(self) -> Self:
        self.begun = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=TIMEOUT_SECONDS)
        self.ended = time.monotonic()

    @property
    def told(self) -> list[Told]:
        """All answers so far, by the time they were asked for."""
        return sorted((each for told in self._told for each in list(told)), key=lambda each: each.started)

    @property
    def broken(self) -> list[str]:
        """Requests that got no answer, as errors in words."""
        return list(self._broken)

    def since(self, moment: float) -> list[Told]:
        """Return answers to requests that began after a moment of the monotonic clock."""
        return [each for each in self.told if each.started > moment]

    def wait_for_more(self, count: int, timeout_seconds: float = 60.0) -> None:
        """Wait until that many further answers came."""
        goal = sum(map(len, self._told)) + count
        wait_for(f"{count} more answers", lambda: sum(map(len, self._told)) >= goal, timeout_seconds)

    def wait(self, seconds: float) -> None:
        """Let traffic flow for some time."""
        self._stop.wait(seconds)

    def wait_until_said_by(self, version: str, timeout_seconds: float = 60.0) -> None:
        """Wait until an engine of this version answered anybody."""
        wait_for(
            f"an answer of version {version}",
            lambda: any(each.version == version for told in self._told for each in told[-50:]),
            timeout_seconds,
        )

    def summary(self) -> Summary:
        """Count what there was; call it after the end."""
        told = self.told
        return Summary(
            seconds=self.ended - self.begun,
            statuses=Counter(each.status for each in told),
            hits=sum(each.is_hit for each in told),
            versions=Counter(each.version for each in told),
        )

    def _run(self, number: int) -> None:
        client = _Client(self._gateways[number % len(self._gateways)], number, self._model)
        interval = CLIENTS / REQUESTS_PER_SECOND
        due = time.monotonic() + interval * number / CLIENTS
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            # A client that fell behind catches up for a second, so that pauses do not lower the rate.
            due = max(due + interval, time.monotonic() - 1.0)
            try:
                self._told[number].append(client.ask())
            except (OSError, http.client.HTTPException) as e:
                self._broken.append(repr(e))
                client.reconnect()
        client.close()


@dataclass(frozen=True)
class Summary:
    """A load's figures."""

    seconds: float
    statuses: Counter[int]
    hits: int
    versions: Counter[str]

    @property
    def rate(self) -> float:
        """Answers in a second."""
        return self.statuses.total() / self.seconds

    def __str__(self) -> str:
        said = ", ".join(f"{count} by version {version or '?'}" for version, count in self.versions.items())
        pace = f"{self.statuses.total()} answers in {self.seconds:.0f} s ({self.rate:.0f}/s)"
        return f"{pace}, {self.hits} hits, {said}"


@dataclass
class _Client:
    """One client on one connection."""

    gateway: tuple[str, int]
    number: int
    model: str
    _count: int = 0
    _connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.reconnect()

    def reconnect(self) -> None:
        """Begin a new connection with the next request."""
        if self._count:
            self.close()
        self._connection = http.client.HTTPConnection(*self.gateway, timeout=TIMEOUT_SECONDS)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def ask(self) -> Told:
        """Ask the next question."""
        self._count += 1
        question = self._question()
        body = {
            "model": self.model,
            "temperature": 0,
            "messages": [{"role": "user", "content": question}],
        }
        headers = {"Content-Type": "application/json", "X-Tenant-Id": TENANTS[self._count % len(TENANTS)]}
        started = time.monotonic()
        self._connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        response = self._connection.getresponse()
        text = response.read().decode(errors="replace")
        cache_status = response.getheader("Cache-Status") or ""
        version = version_in(text) if response.status == http.HTTPStatus.OK else ""
        is_hit = "; hit" in cache_status
        return Told(started, time.monotonic(), response.status, question, version, is_hit)

    def _question(self) -> str:
        match self._count % 4:
            case 0:
                return f"asked once, by {self.number} as its {self._count}"
            case 1:
                return f"of the moment {time.monotonic() // MOMENT_SECONDS:.0f}, {self._count % 8}"
            case _:
                return f"asked all the time, {(self._count + self.number) % HOT_QUESTIONS}"
