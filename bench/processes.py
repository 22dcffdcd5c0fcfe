"""Processes of a measurement: started, watched until they answer, weighed, and ended by their own number."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 10.0


def free_port() -> int:
    """Return a port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], log: Path, ready_url: str, environment: Mapping[str, str] | None = None
) -> Iterator[psutil.Process]:
    """Run a command until the block ends; it has begun once `ready_url` answers 200."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **(environment or {})}
        )
    try:
        _await(process, ready_url, log)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own loopback address
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} did not start:\n{log.read_text(errors='replace')[-2000:]}")


@dataclass(frozen=True, slots=True)
class Weight:
    """What a process has used and holds, children included."""

    cpu_seconds: float
    rss_bytes: int


def weigh(process: psutil.Process) -> Weight:
    """Weigh a process and its children."""
    cpu_seconds, rss_bytes = 0.0, 0
    for member in [process, *process.children(recursive=True)]:
        with member.oneshot():
            times = member.cpu_times()
            cpu_seconds += times.user + times.system
            rss_bytes += member.memory_info().rss
    return Weight(cpu_seconds, rss_bytes)
