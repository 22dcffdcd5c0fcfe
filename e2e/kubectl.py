"""Runs kubectl and helm against one kubeconfig: the way of the demo and the tests to the cluster."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from e2e.cluster import binaries
from e2e.cluster.errors import ClusterError

POLL_SECONDS: Final = 0.25
ROUTE_SECONDS: Final = 2.0
"""Without a route to pods, most networks say nothing at all."""

T = TypeVar("T")

_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class Kubectl:
    """kubectl with one kubeconfig and a default namespace."""

    kubeconfig: Path
    namespace: str = "default"

    def within(self, namespace: str) -> Kubectl:
        """Return the same for another namespace."""
        return Kubectl(self.kubeconfig, namespace)

    def run(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = 120.0) -> str:
        """Run kubectl and return what it printed; raises ClusterError with what it complained of."""
        command = [tool("kubectl"), "--namespace", self.namespace, *arguments]
        return run(command, self._environment(), stdin, timeout_seconds)

    def get(self, *arguments: str) -> dict[str, Any]:
        """Read objects as JSON."""
        parsed: dict[str, Any] = json.loads(self.run("get", *arguments, "-o", "json"))
        return parsed

    def find(self, *arguments: str) -> dict[str, Any] | None:
        """Read one object, or None where it does not exist."""
        printed = self.run("get", *arguments, "-o", "json", "--ignore-not-found")
        return json.loads(printed) if printed.strip() else None

    def apply(self, manifest: str) -> str:
        """Apply manifests given as text."""
        return self.run("apply", "-f", "-", stdin=manifest)

    def helm(self, *arguments: str, timeout_seconds: float = 300.0) -> str:
        """Run helm against the same cluster."""
        return run([tool("helm"), *arguments], self._environment(), None, timeout_seconds)

    @contextlib.contextmanager
    def forward(self, target: str, port: int) -> Iterator[int]:
        """Forward a free local port to a pod or Service while the block runs; yields the local port."""
        process = self.open("port-forward", target, f":{port}")
        try:
            yield _forwarded_port(process, target)
        finally:
            process.terminate()
            process.wait(timeout=10)
            if process.stdout:
                process.stdout.close()

    @contextlib.contextmanager
    def reach(self, pod: str, port: int) -> Iterator[tuple[str, int]]:
        """Yield an address of a pod's port: its own where there is a route to it, else a forwarded one.

        What is forwarded passes the API server and the kubelet, which under steady traffic costs more than
        all that answers it.
        """
        address = (str(self.get("pod", pod)["status"]["podIP"]), port)
        if _is_open(address):
            yield address
            return
        with self.forward(f"pod/{pod}", port) as local:
            yield "127.0.0.1", local

    def open(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl and return the process, whose output, with its complaints, is text to be read."""
        return subprocess.Popen(
            [tool("kubectl"), "--namespace", self.namespace, *arguments],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HELM_NAMESPACE": self.namespace}


def _is_open(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=ROUTE_SECONDS):
            return True
    except OSError:
        return False


def tool(name: str) -> str:
    """Find the pinned binary, or on machines without Go the one on PATH."""
    return str(binaries.client(name))


def run(command: list[str], environment: dict[str, str], stdin: str | None, timeout_seconds: float) -> str:
    """Run a command to its end and return its standard output."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
        )
    except subprocess.TimeoutExpired as e:
        raise ClusterError(f"{' '.join(command)}: no end within {timeout_seconds:g} s") from e
    if done.returncode:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def wait_for(what: str, probe: Callable[[], T | None], timeout_seconds: float = 120.0) -> T:
    """Call `probe` until it returns something true; raises ClusterError with the last error otherwise."""
    deadline = time.monotonic() + timeout_seconds
    last = ""
    while time.monotonic() < deadline:
        try:
            if value := probe():
                return value
        except (ClusterError, OSError) as e:
            last = f": {e}"
        time.sleep(POLL_SECONDS)
    raise ClusterError(f"{what} did not happen within {timeout_seconds:g} s{last}")


def _forwarded_port(process: subprocess.Popen[str], target: str) -> int:
    lines: list[str] = []
    found = threading.Event()
    port: list[int] = []

    def read() -> None:
        # Reading on keeps kubectl from blocking on a full pipe while it reports each connection.
        for line in process.stdout or ():
            lines.append(line)
            if not port and (match := _FORWARDING.search(line)):
                port.append(int(match.group(1)))
                found.set()
        found.set()

    threading.Thread(target=read, daemon=True).start()
    found.wait(timeout=30)
    if not port:
        raise ClusterError(f"cannot forward to {target}: {''.join(lines[-3:]).strip() or 'no answer'}")
    return port[0]
