"""The addresses of a node, and its one visible trace on the host: a veth link with three routes.

The host reaches the API server, pods and services through the link, and pods reach the host at `host_ip`.
"""

import contextlib
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import wait_until

SLOTS: Final = 16
"""How many nodes may run side by side on one machine."""
GONE_SECONDS: Final = 20.0


@dataclass(frozen=True)
class Network:
    """All addresses of the node in one slot."""

    slot: int

    @property
    def link(self) -> str:
        """The host's end of the veth pair."""
        return f"cachewright{self.slot}"

    @property
    def host_ip(self) -> str:
        """The host, as seen from the node and its pods."""
        return f"172.31.250.{4 * self.slot + 1}"

    @property
    def node_ip(self) -> str:
        """The node, as seen from the host and its pods."""
        return f"172.31.250.{4 * self.slot + 2}"

    @property
    def pods(self) -> str:
        """The range of all pods."""
        return f"10.{240 - self.slot}.0.0/16"

    @property
    def node_pods(self) -> str:
        """The part of it that this node gives out."""
        return f"10.{240 - self.slot}.0.0/24"

    @property
    def services(self) -> str:
        """The range of service addresses."""
        return f"10.{112 + self.slot}.0.0/16"

    @property
    def api_service_ip(self) -> str:
        """The service `kubernetes`: always the first of its range."""
        return f"10.{112 + self.slot}.0.1"

    @property
    def dns_ip(self) -> str:
        """The service `kube-dns`."""
        return f"10.{112 + self.slot}.0.10"

    @property
    def api_url(self) -> str:
        """Where the API server listens."""
        return f"https://{self.node_ip}:6443"

    def connect(self, init_pid: int, mark: str) -> None:
        """Make the link into the namespace of a process, marked as ours, and the routes through it."""
        ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", str(init_pid))
        ip("link", "set", self.link, "alias", mark)
        ip("addr", "add", f"{self.host_ip}/30", "dev", self.link)
        ip("link", "set", self.link, "up")
        for destination in (self.pods, self.services):
            ip("route", "add", destination, "via", self.node_ip)

    def disconnect(self, mark: str) -> None:
        """Remove the link, and with it its routes, if it is there and carries our mark."""
        if self._mark() == mark:
            # The kernel removes it too, some time after the node's namespace ended: either may come first.
            with contextlib.suppress(ClusterError):
                ip("link", "delete", self.link)
            wait_until(lambda: self._mark() != mark, f"link {self.link} goes", GONE_SECONDS)

    def is_taken(self) -> bool:
        """Return whether a link of this slot exists."""
        return self._mark() is not None

    def _mark(self) -> str | None:
        """Return the mark on the link, empty when a stranger made it, None when there is no link."""
        try:
            return Path("/sys/class/net", self.link, "ifalias").read_text().strip()
        except OSError:  # absent, or gone between finding and reading
            return None


def ip(*arguments: str) -> str:
    """Run the command of iproute2 and return what it printed."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
