"""The stand-in for a Qdrant server as a process of its own, or a real server whose URL is given.

`CACHEWRIGHT_TEST_QDRANT_URL` (and `CACHEWRIGHT_TEST_QDRANT_API_KEY`) name a real one. Tests that freeze or
kill a server always use processes of their own.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
START_SECONDS = 30.0
API_KEY = "qdrant-test-key"


@dataclass
class QdrantServer:
    """A running server."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]
    api_key: str = API_KEY

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self.port}"

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word to its clients."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start it anew on the same port, with what it had stored."""
        self.kill()
        self.process = _start(self.port, self.folder)

    def connections(self) -> int:
        """Count its clients' connections."""
        found = psutil.Process(self.process.pid).net_connections(kind="tcp")
        return sum(1 for connection in found if connection.status == psutil.CONN_ESTABLISHED)


@dataclass
class GivenServer:
    """A real server that somebody else runs."""

    url: str
    api_key: str | None


def given_server() -> GivenServer | None:
    """Return the real server that the environment names, if any."""
    url = os.environ.get("CACHEWRIGHT_TEST_QDRANT_URL")
    return GivenServer(url, os.environ.get("CACHEWRIGHT_TEST_QDRANT_API_KEY")) if url else None


@contextmanager
def run_qdrant() -> Iterator[QdrantServer]:
    """Run the stand-in until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="cachewright-qdrant-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = QdrantServer(port, folder, _start(port, folder))
    try:
        yield server
    finally:
        server.thaw() if server.process.poll() is None else None
        server.kill()
        shutil.rmtree(folder)


def _start(port: int, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "e2e.qdrant", "--port", str(port), "--folder", str(folder / "storage")],
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "QDRANT__SERVICE__API_KEY": API_KEY},
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, (folder / "log").read_text()
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.01)
    raise AssertionError(f"the stand-in did not start: {(folder / 'log').read_text()}")
