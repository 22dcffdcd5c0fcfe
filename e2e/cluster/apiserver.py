"""A real kube-apiserver with its etcd, alone, on loopback: what the API tests run the operator against.

`with ApiServer() as server:` gives a kubeconfig within a few seconds. There is no controller manager: nothing
collects garbage, makes service accounts or ends a namespace, so a test sees the operator's acts alone.
Binaries come from `KUBEBUILDER_ASSETS` when that is set, else from the pinned modules.
"""

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from e2e.cluster import binaries, pki
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import Process, tail, wait_until
from e2e.cluster.readiness import is_ready

START_SECONDS: Final = 300.0
START_ATTEMPTS: Final = 3
"""A free port may be taken by someone else between the look and the use."""
SERVICE_RANGE: Final = "10.0.0.0/16"
"""Room for the Services of many objects, since a Service without an address is refused."""
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def api_tools() -> dict[str, Path]:
    """Return etcd, kube-apiserver and kubectl: those of `KUBEBUILDER_ASSETS`, else the pinned ones."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        return binaries.ensure(binaries.API_TOOLS)
    found = {name: Path(assets, name) for name in binaries.API_TOOLS}
    absent = [name for name, path in found.items() if not os.access(path, os.X_OK)]
    if absent:
        raise ClusterError(
            f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(absent)}; unset it to use the pinned ones"
        )
    return found


class ApiServer:
    """etcd and kube-apiserver with RBAC on; `start` gives an administrator's kubeconfig."""

    def __init__(self, folder: Path | None = None, *, extra_arguments: Sequence[str] = ()) -> None:
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="cachewright-api-"))
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self.audit_log = self.folder / "audit.log"
        self.url = ""
        self._extra = tuple(extra_arguments)
        self._tools: dict[str, Path] = {}
        self._processes: dict[str, Process] = {}
        self._ports: dict[str, int] = {}

    def start(self) -> Path:
        """Start both servers, wait until they are ready, and return the administrator's kubeconfig."""
        self._tools = api_tools()
        self._authority = pki.Authority(self.folder / "pki")
        self._serving = self._authority.server("apiserver", ["localhost"], ["127.0.0.1", "10.0.0.1"])
        self._admin = self._authority.client("admin", ["system:masters"])
        (self.folder / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                self._launch()
            except ClusterError as error:
                self._stop_processes()
                if attempt == START_ATTEMPTS or "address already in use" not in str(error):
                    raise
            else:
                break
        return pki.write_kubeconfig(self.kubeconfig, *self._endpoint(), pki.certificate_user(self._admin))

    def stop(self) -> None:
        """Stop both servers and remove the folder unless the caller named it."""
        self._stop_processes()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def pause(self) -> None:
        """Freeze kube-apiserver: connections stay open and nothing answers, as behind a broken network."""
        self._processes["kube-apiserver"].signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused kube-apiserver go on."""
        self._processes["kube-apiserver"].signal(signal.SIGCONT)

    def wait(self) -> None:
        """Wait until one of the two servers ends."""
        wait_until(lambda: any(p.exit_code is not None for p in self._processes.values()), "an end", math.inf)

    def restart(self) -> None:
        """Stop kube-apiserver, closing every connection, and start it again: same address, same data."""
        self._processes.pop("kube-apiserver").stop()
        self._start_apiserver()

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user, known by client certificate; RBAC decides what it may do."""
        target = self.folder / f"user-{user.replace('/', '_').replace(':', '_')}.kubeconfig"
        entry = pki.certificate_user(self._authority.client(user, groups))
        return pki.write_kubeconfig(target, *self._endpoint(), entry)

    def service_account_kubeconfig(self, namespace: str, name: str, *, create: bool = False) -> Path:
        """Write a kubeconfig with a token of a ServiceAccount (24 h), created first when asked."""
        if create:
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace},
            }
            self.kubectl("apply", "-f", "-", stdin=json.dumps(account))
        token = self.kubectl("create", "token", name, "-n", namespace, "--duration=24h").strip()
        target = self.folder / f"serviceaccount-{namespace}-{name}.kubeconfig"
        return pki.write_kubeconfig(target, *self._endpoint(), {"token": token})

    def kubectl(self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> str:
        """Run kubectl, as administrator unless another kubeconfig is given, and return what it printed."""
        command = [str(self._tools["kubectl"]), f"--kubeconfig={kubeconfig or self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def audit_events(self, user: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the requests answered so far (verb, user, objectRef, responseStatus), all or one user's."""
        for line in self.audit_log.read_text().splitlines():
            event: dict[str, Any] = json.loads(line)
            if user is None or event["user"]["username"] == user:
                yield event

    def _endpoint(self) -> tuple[str, Path]:
        return self.url, self._authority.pair.certificate

    def _launch(self) -> None:
        self._ports = dict(zip(("etcd", "peer", "api"), _free_ports(3), strict=True))
        self.url = f"https://127.0.0.1:{self._ports['api']}"
        client, peer = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "peer"))
        arguments = [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]
        self._start_process("etcd", arguments)
        self._start_apiserver()

    def _start_apiserver(self) -> None:
        key = self._authority.signing_key("service-accounts")
        ca = self._authority.pair.certificate
        arguments = [
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._ports['api']}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={ca}",
            "--anonymous-auth=false",
            "--authorization-mode=RBAC",
            # Without a controller manager nothing makes the default account that the one plugin insists on,
            # and nothing takes away the finalizer that the other gives to volume claims.
            "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--allow-privileged",
            # The default keeps a stopping server up for a minute while watches last.
            "--shutdown-delay-duration=0s",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
            *self._extra,
        ]
        self._start_process("kube-apiserver", arguments)
        wait_until(
            self._ready, "kube-apiserver is ready", START_SECONDS, lambda: tail(self._log("kube-apiserver"))
        )

    def _start_process(self, name: str, arguments: Sequence[str]) -> None:
        self._processes[name] = Process(name, [self._tools[name], *arguments], self._log(name), tied=True)

    def _ready(self) -> bool:
        for process in self._processes.values():
            if process.exit_code is not None:
                raise ClusterError(f"{process.name} ended with {process.exit_code}\n{tail(process.log)}")
        return is_ready(f"{self.url}/readyz", self._authority.pair.certificate, self._admin)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _stop_processes(self) -> None:
        # The API server first: without etcd it would log errors and linger.
        for name in ("kube-apiserver", "etcd"):
            if process := self._processes.pop(name, None):
                process.stop()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
