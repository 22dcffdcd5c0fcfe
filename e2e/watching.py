"""Everything that an object's status ever said while a block ran, from a watch of the API server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from e2e.kubectl import Kubectl, wait_for

_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True)
class State:
    """One state of the object, with the moment of the monotonic clock at which it was heard of."""

    at: float
    document: dict[str, Any]

    @property
    def generation(self) -> int:
        """Of the spec."""
        return int(self.document["metadata"]["generation"])

    @property
    def observed_generation(self) -> int:
        """Which spec the status speaks of."""
        return int(self.document.get("status", {}).get("observedGeneration", 0))

    @property
    def keyspace(self) -> str:
        """The one that status names for the exact layer; empty where it names none."""
        layers = self.document.get("status", {}).get("layers", [])
        return next((str(each["keyspace"]) for each in layers if each["name"] == "Exact"), "")

    def condition(self, kind: str) -> dict[str, str]:
        """Return a condition; empty where there is none."""
        conditions = self.document.get("status", {}).get("conditions", [])
        return next((dict(each) for each in conditions if each["type"] == kind), {})

    def said(self, kind: str) -> str:
        """Return a condition as `True/Reason`; empty where there is none."""
        found = self.condition(kind)
        return f"{found['status']}/{found['reason']}" if found else ""


class Watch:
    """Hears of each state of one InferenceCache; use it as a context manager."""

    def __init__(self, kubectl: Kubectl, name: str = "demo") -> None:
        self._kubectl = kubectl
        self._name = name
        self._states: list[State] = []

    def __enter__(self) -> Self:
        self._process = self._kubectl.open("get", "icache", self._name, "--watch", "-o", "json")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        wait_for("the first state", lambda: bool(self._states), 30)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=10)
        self._thread.join(timeout=10)
        if self._process.stdout:
            self._process.stdout.close()

    @property
    def states(self) -> list[State]:
        """All states so far."""
        return list(self._states)

    def wait_until(self, what: str, holds: Callable[[State], bool], timeout_seconds: float = 120.0) -> State:
        """Wait until the newest state is as wanted, and return it; raises ClusterError."""

        def probe() -> State | None:
            newest = self._states[-1]
            return newest if holds(newest) else None

        return wait_for(what, probe, timeout_seconds)

    def story(self, kind: str) -> list[str]:
        """Return what a condition said, each change once."""
        told: list[str] = []
        for state in self._states:
            if not told or told[-1] != state.said(kind):
                told.append(state.said(kind))
        return told

    def _read(self) -> None:
        text = ""
        for line in self._process.stdout or ():
            text += line
            if line != "}\n":
                continue
            document, _ = _DECODER.raw_decode(text)
            self._states.append(State(time.monotonic(), document))
            text = ""
