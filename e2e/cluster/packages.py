"""The Debian packages that tests and node need: named first, then installed, and only those that are missing.

`python -m e2e.cluster packages` installs; the node provider calls `ensure` for its groups.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from e2e.cluster import console
from e2e.cluster.errors import ClusterError

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "python": ("python3-venv",),
    "api": ("openssl",),
    "stores": ("redis-server",),
    "bench": ("wrk",),
    "images": ("buildah", "mmdebstrap", "busybox-static", "gcc", "libc6-dev"),
    "node": (
        "containerd",
        "runc",
        "containernetworking-plugins",
        "iptables",
        "conntrack",
        "iproute2",
        "kmod",
        "mount",
        "util-linux",
        "openssl",
    ),
}
"""What each part needs: virtual environment, API server's certificates, store tests, load, images, node."""

POLICY: Final = Path("/usr/sbin/policy-rc.d")
"""While this script answers 101, Debian starts no service that it installs (invoke-rc.d(8))."""


def ensure(groups: Iterable[str] = tuple(GROUPS)) -> None:
    """Install what is missing of these groups, after printing its names.

    Raises ClusterError for an unknown group, and when something is missing but cannot be installed here.
    """
    chosen = list(groups)
    unknown = [group for group in chosen if group not in GROUPS]
    if unknown:
        raise ClusterError(f"unknown group {', '.join(unknown)}; there are: {', '.join(GROUPS)}")
    absent = missing(package for group in chosen for package in GROUPS[group])
    if not absent:
        return
    names = " ".join(absent)
    if shutil.which("apt-get") is None:
        raise ClusterError(f"this is no Debian: install what these packages hold, then try again: {names}")
    if os.geteuid() != 0:
        raise ClusterError(f"not root: run `sudo apt-get install --no-install-recommends {names}`")
    console.say(f"installing Debian packages: {names}")
    with console.Step("apt-get install"), _no_service_starts():
        _install(absent)


def missing(packages: Iterable[str]) -> list[str]:
    """Return those packages that dpkg does not have as installed; all of them where there is no dpkg."""
    wanted = list(dict.fromkeys(packages))
    if shutil.which("dpkg-query") is None:
        return wanted
    asked = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,  # it fails when it does not know one of them
    )
    present = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in wanted if package not in present]


def _install(packages: list[str]) -> None:
    install = ("install", "--yes", "--no-install-recommends", *packages)
    if _apt_get(*install).returncode == 0:
        return
    # The lists may be absent, as in a fresh container, or name versions that the mirror no longer has.
    updated = _apt_get("update")
    done = _apt_get(*install)
    if done.returncode:
        lines = f"{updated.stderr}\n{done.stdout}\n{done.stderr}".strip().splitlines()
        message = f"apt-get install {' '.join(packages)} failed:\n" + "\n".join(lines[-20:])
        raise ClusterError(message)


def _apt_get(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
    )


@contextlib.contextmanager
def _no_service_starts() -> Iterator[None]:
    """Keep Debian from starting containerd and redis-server: the tests run their own, elsewhere."""
    if POLICY.exists():  # the machine's owner has a rule already
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
