"""Runs `cachewright operator` as a process against an API server, and reads what it says of itself."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from e2e.cluster.processes import Process, tail, wait_until

START_SECONDS = 30.0

_numbers = itertools.count(1)


class OperatorProcess:
    """One replica; `with` starts it and ends it."""

    def __init__(self, kubeconfig: Path, folder: Path, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-m", "cachewright.cli", "operator"]
        options = [f"--kubeconfig={kubeconfig}", "--gateway-image=cachewright:test", "--port=0"]
        log = folder / f"operator-{next(_numbers)}.log"
        self._process = Process("operator", [*command, *options, *arguments], log)

    def __enter__(self) -> Self:
        self.wait_for_log("listening", START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            sys.stderr.write(tail(self._process.log, 40) + "\n")
        self._process.stop(grace_seconds=20)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.exit_code

    @property
    def process(self) -> Process:
        """The process, for signals."""
        return self._process

    @property
    def records(self) -> list[dict[str, Any]]:
        """Every log line so far; a line that is not JSON is a failure."""
        lines = self._process.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of one event."""
        return [record for record in self.records if record["event"] == event]

    def wait_for_log(self, event: str, timeout_seconds: float) -> dict[str, Any]:
        """Wait for a log line."""
        self.wait(lambda: bool(self.logged(event)), f"the operator logs {event!r}", timeout_seconds)
        return self.logged(event)[0]

    def wait(self, condition: Callable[[], bool], what: str, timeout_seconds: float) -> None:
        """Wait for anything, and show the log where it does not come."""
        wait_until(condition, what, timeout_seconds, lambda: tail(self._process.log, 40))

    def wait_for_exit(self, timeout_seconds: float) -> int:
        """Wait for the end and return the exit code."""
        self.wait(lambda: self.exit_code is not None, "the operator ends", timeout_seconds)
        assert self.exit_code is not None
        return self.exit_code

    def get(self, path: str) -> tuple[int, str]:
        """Ask the port; status 0 where nothing answers in time."""
        port = int(self.logged("listening")[0]["port"])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()

    @property
    def ready(self) -> bool:
        """Whether it is ready to act, or to stand by."""
        return self.get("/readyz")[0] == http.HTTPStatus.OK

    @property
    def leads(self) -> bool:
        """Whether it says that it is the active replica."""
        return self.metric("cachewright_leader") == 1

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's series that carry these labels; 0 for none."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            found = re.fullmatch(rf"{name}(?:\{{(?P<labels>.*)\}})? (?P<value>\S+)", line)
            if found is None:
                continue
            given = dict(re.findall(r'(\w+)="([^"]*)"', found["labels"] or ""))
            if labels.items() <= given.items():
                total += float(found["value"])
        return total

    @property
    def rss_bytes(self) -> int:
        """Resident memory."""
        return int(psutil.Process(self._process.pid).memory_info().rss)
