"""What one node is made of: its folder, addresses, tools and rendered configuration files.

Written by the provider on the host and read again by the node's first process.
"""

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from e2e.cluster.node.network import Network
from e2e.cluster.pki import Authority, KeyPair, certificate_user, write_kubeconfig

TEMPLATES: Final = Path(__file__).parent / "templates"
NODE_NAME: Final = "node0"
TOOLS: Final = (
    "etcd",
    "kube-apiserver",
    "kubectl",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "coredns",
    "kube-network-policies",
    "local-path-provisioner",
)
API_HOSTS: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
CLIENTS: Final = {
    "kubelet": (f"system:node:{NODE_NAME}", ("system:nodes",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kube-proxy": ("system:kube-proxy", ()),
    "coredns": ("coredns", ()),
}
"""Each process has its own identity, as in a real cluster: user and groups."""


@dataclass(frozen=True)
class NodeConfig:
    """One node's inputs; everything else about it follows from these."""

    name: str
    folder: Path
    network: Network
    tools: dict[str, Path]

    @property
    def mark(self) -> str:
        """What the host's traces of this node carry, so that a stranger's are never removed."""
        return f"cachewright:{self.folder}"

    @property
    def cgroup(self) -> str:
        """The control group below which all containers are."""
        return f"cachewright-{self.name}"

    @property
    def run(self) -> Path:
        """What lives as long as the node: etcd, rendered files, volumes, kubelet's folder."""
        return self.folder / "run"

    @property
    def pki(self) -> Path:
        """Certificates, keys and kubeconfigs of the node's processes; made anew at each start."""
        return self.folder / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def containerd(self) -> Path:
        """The image store, kept when the node goes."""
        return self.folder / "containerd"

    def log(self, name: str) -> Path:
        """Return the log file of one process."""
        return self.folder / "log" / f"{name}.log"

    @cached_property
    def authority(self) -> Authority:
        """The node's certificate authority."""
        return Authority(self.pki)

    @property
    def admin(self) -> KeyPair:
        """The administrator's certificate."""
        return KeyPair(self.pki / "client-admin.crt", self.pki / "client-admin.key")

    def write(self) -> None:
        """Write everything the first process reads, over whatever an earlier node left."""
        for stale in (self.run, self.pki, self.folder / "log"):
            shutil.rmtree(stale, ignore_errors=True)
        for folder in (self.run / "cni", self.folder / "log", self.containerd):
            folder.mkdir(parents=True, exist_ok=True)
        self._write_identities()
        for template in TEMPLATES.glob("*.in"):
            target = self.run / ("cni" if "conflist" in template.name else "") / template.stem
            target.write_text(self._rendered(template.read_text()))
        tools = {name: str(path) for name, path in self.tools.items()}
        content = {"name": self.name, "slot": self.network.slot, "tools": tools}
        (self.folder / "node.json").write_text(json.dumps(content, indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read back what `write` wrote."""
        content = json.loads((folder / "node.json").read_text())
        tools = {name: Path(path) for name, path in content["tools"].items()}
        return cls(content["name"], folder, Network(content["slot"]), tools)

    def _write_identities(self) -> None:
        network, authority = self.network, self.authority
        authority.server("apiserver", API_HOSTS, ["127.0.0.1", network.api_service_ip, network.node_ip])
        authority.server("kubelet", [NODE_NAME], [network.node_ip])
        authority.client("kube-apiserver-kubelet-client")
        authority.client("front-proxy-client")
        authority.signing_key("service-accounts")
        for process, (user, groups) in CLIENTS.items():
            self._write_kubeconfig(self.pki / f"{process}.kubeconfig", authority.client(user, groups))
        self._write_kubeconfig(self.kubeconfig, authority.client("admin", ["system:masters"]))

    def _write_kubeconfig(self, target: Path, pair: KeyPair) -> None:
        certificate = self.authority.pair.certificate
        write_kubeconfig(target, self.network.api_url, certificate, certificate_user(pair))

    def _rendered(self, template: str) -> str:
        values = {
            "FOLDER": str(self.folder),
            "CGROUP": self.cgroup,
            "NODE_IP": self.network.node_ip,
            "NODE_PODS": self.network.node_pods,
            "DNS_IP": self.network.dns_ip,
        }
        for key, value in values.items():
            template = template.replace(f"@{key}@", value)
        return template
