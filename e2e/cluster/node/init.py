"""The node's first process: sets up its namespaces, starts every server of the node, then collects the dead.

Run by the provider as `unshare … python -m e2e.cluster.node.init FOLDER`; killing it ends the node.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.cluster.node.config import NODE_NAME, NodeConfig
from e2e.cluster.processes import Process, wait_until
from e2e.cluster.readiness import is_ready

START_SECONDS: Final = 120.0
QUEUE: Final = "100"
CHAIN: Final = "CACHEWRIGHT-POLICY"
TOKEN_FOLDER: Final = Path("/run/secrets/kubernetes.io/serviceaccount")
"""In the node's private /run; the policy enforcer looks for its credentials nowhere else."""


class Init:
    """The node, seen from within."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        # Kept, because `subprocess` reaps those that nobody holds, and their exit code would be lost.
        self.processes: dict[int, Process] = {}

    def main(self) -> None:
        """Bring the node up and never return."""
        self.set_up_namespaces()
        self.start_control_plane()
        self.start_node()
        self.start_addons()
        self.collect_dead_for_ever()

    def start(self, name: str, arguments: Sequence[str | Path], env: dict[str, str] | None = None) -> None:
        """Start one server with its own log; the first word is the command, pinned or the system's."""
        executable = self.config.tools.get(name, Path(name))
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        process = Process(name, [executable, *arguments], self.config.log(name), environment | (env or {}))
        self.processes[process.pid] = process

    def set_up_namespaces(self) -> None:
        """Make mounts, host name and network of the node's own."""
        run("mount", "--make-rshared", "/")
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
        run("hostname", NODE_NAME)
        for name, place in (
            ("kubelet", "/var/lib/kubelet"),
            ("pod-logs", "/var/log/pods"),
            ("container-logs", "/var/log/containers"),
            ("cni-state", "/var/lib/cni"),
        ):
            source = self.config.run / name
            for folder in (source, Path(place)):
                folder.mkdir(parents=True, exist_ok=True)
            run("mount", "--bind", source, place)
        run("mount", "--make-rshared", "/")
        network = self.config.network
        run("ip", "link", "set", "lo", "up")
        wait_until(Path("/sys/class/net/eth0").exists, "the host connects the node", START_SECONDS)
        run("ip", "addr", "add", f"{network.node_ip}/30", "dev", "eth0")
        run("ip", "link", "set", "eth0", "up")
        run("ip", "route", "add", "default", "via", network.host_ip)
        for setting in ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"):
            Path("/proc/sys", setting).write_text("1\n")

    def start_control_plane(self) -> None:
        """Start etcd, containerd and the API server, and wait for that, so that nobody else backs off."""
        self.start("etcd", [f"--data-dir={self.config.run}/etcd", "--unsafe-no-fsync", "--log-level=warn"])
        self.start("containerd", ["-c", self.config.run / "containerd.toml"])
        self.start("kube-apiserver", self.apiserver_arguments())
        ready = f"{self.config.network.api_url}/readyz"
        authority = self.config.pki / "ca.crt"
        wait_until(lambda: is_ready(ready, authority, self.config.admin), "API server", START_SECONDS)

    def apiserver_arguments(self) -> list[str]:
        """Return the API server's flags; the kubelet is reached with a client certificate of its own."""
        pki, network = self.config.pki, self.config.network
        return [
            "--etcd-servers=http://127.0.0.1:2379",
            "--secure-port=6443",
            f"--advertise-address={network.node_ip}",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            "--anonymous-auth=false",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            f"--kubelet-client-certificate={pki}/client-kube-apiserver-kubelet-client.crt",
            f"--kubelet-client-key={pki}/client-kube-apiserver-kubelet-client.key",
            f"--kubelet-certificate-authority={pki}/ca.crt",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={pki}/ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki}/client-front-proxy-client.crt",
            f"--proxy-client-key-file={pki}/client-front-proxy-client.key",
            f"--service-account-key-file={pki}/service-accounts.key",
            f"--service-account-signing-key-file={pki}/service-accounts.key",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-cluster-ip-range={network.services}",
        ]

    def start_node(self) -> None:
        """Start what makes an API server a cluster with one node."""
        pki, network = self.config.pki, self.config.network
        # The default limit delays the default service account, and with it every first pod, by 5 s.
        rates = ["--kube-api-qps=500", "--kube-api-burst=1000"]
        controllers = [
            f"--kubeconfig={pki}/kube-controller-manager.kubeconfig",
            f"--service-account-private-key-file={pki}/service-accounts.key",
            f"--root-ca-file={pki}/ca.crt",
            "--use-service-account-credentials",
            f"--cluster-signing-cert-file={pki}/ca.crt",
            f"--cluster-signing-key-file={pki}/ca.key",
            "--allocate-node-cidrs",
            f"--cluster-cidr={network.pods}",
            f"--service-cluster-ip-range={network.services}",
            "--leader-elect=false",
            *rates,
        ]
        self.start("kube-controller-manager", controllers)
        scheduler = [f"--kubeconfig={pki}/kube-scheduler.kubeconfig", "--leader-elect=false", *rates]
        self.start("kube-scheduler", scheduler)
        proxy = [
            f"--kubeconfig={pki}/kube-proxy.kubeconfig",
            f"--hostname-override={NODE_NAME}",
            f"--cluster-cidr={network.pods}",
            "--proxy-mode=iptables",
            # Only the machine's first network namespace may set these kernel parameters.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ]
        self.start("kube-proxy", proxy)
        kubelet = [
            f"--config={self.config.run}/kubelet.yaml",
            f"--kubeconfig={pki}/kubelet.kubeconfig",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={network.node_ip}",
        ]
        self.start("kubelet", kubelet)

    def start_addons(self) -> None:
        """Start DNS, volumes and NetworkPolicy enforcement, as processes beside the node's own."""
        folder, network = self.config.run, self.config.network
        kubectl: list[str | Path] = [self.config.tools["kubectl"], f"--kubeconfig={self.config.kubeconfig}"]
        run(*kubectl, "apply", "-f", folder / "bootstrap.yaml")
        self.start("coredns", ["-conf", folder / "Corefile"])
        provisioner = [
            "start",
            f"--kubeconfig={self.config.kubeconfig}",
            f"--config={folder}/local-path.json",
            "--helper-image=localhost/busybox:1",
            f"--helper-pod-file={folder}/local-path-pod.yaml",
        ]
        self.start("local-path-provisioner", provisioner)
        TOKEN_FOLDER.mkdir(parents=True)
        (TOKEN_FOLDER / "ca.crt").write_bytes((self.config.pki / "ca.crt").read_bytes())
        create = ("-n", "kube-system", "create", "token", "kube-network-policies", "--duration=720h")
        (TOKEN_FOLDER / "token").write_text(run(*kubectl, *create))
        enforcer = [
            f"--hostname-override={NODE_NAME}",
            "--disable-nri",  # this containerd has no such interface
            f"--nfqueue-id={QUEUE}",
            "--netfilter-bug-1766-fix=false",  # it would let DNS through unasked
            f"--metrics-bind-address={network.node_ip}:9080",
        ]
        place = {"KUBERNETES_SERVICE_HOST": network.node_ip, "KUBERNETES_SERVICE_PORT": "6443"}
        self.start("kube-network-policies", enforcer, place)
        self.queue_pod_traffic()

    def queue_pod_traffic(self) -> None:
        """Hand the first packet of every pod connection to the policy enforcer.

        It would do so itself by nftables, which needs a kernel option that not every kernel has (NFT_QUEUE).
        Nothing bypasses the queue, so without the enforcer pods reach nobody.
        """
        pods = self.config.network.pods
        queue = ("-j", "NFQUEUE", "--queue-num", QUEUE)
        mangle("-N", CHAIN)
        mangle("-A", CHAIN, "-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "RETURN")
        mangle("-A", CHAIN, "-m", "owner", "--uid-owner", "0", "-j", "RETURN")  # the kubelet's probes
        mangle("-A", CHAIN, "-s", pods, *queue)
        mangle("-A", CHAIN, "-d", pods, *queue)
        mangle("-A", "POSTROUTING", "-j", CHAIN)
        # DNS and API server are processes of the node, so what pods send them is input here.
        mangle("-A", "INPUT", "-i", "cni0", "-m", "conntrack", "--ctstate", "NEW", *queue)

    def collect_dead_for_ever(self) -> None:
        """Reap orphans, as a first process must, and record which of our servers ended."""
        ended = self.config.run / "ended"
        while True:
            pid, status = os.wait()
            if process := self.processes.get(pid):
                line = f"{process.name} {os.waitstatus_to_exitcode(status)}\n"
                with ended.open("a") as record:
                    record.write(line)


def run(*command: str | Path) -> str:
    """Run a command to its end and return what it printed; its errors go to this process's log."""
    words = [str(word) for word in command]
    return subprocess.run(
        words, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ).stdout


def mangle(*arguments: str) -> None:
    """Change the mangle table of the node's own network namespace."""
    run("iptables", "-w", "-t", "mangle", *arguments)


if __name__ == "__main__":
    Init(NodeConfig.read(Path(sys.argv[1]))).main()
