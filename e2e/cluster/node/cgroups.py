"""The control groups that hold the node's containers: a folder per hierarchy (v1), or one (v2)."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster.processes import wait_until

ROOT = Path("/sys/fs/cgroup")
EMPTY_SECONDS = 20.0


def make(name: str) -> None:
    """Make a group of this name in every hierarchy, since the kubelet wants its root to exist."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        # A new cpuset of version 1 is empty and would take no process.
        for setting in ("cpuset.cpus", "cpuset.mems"):
            source = hierarchy / setting
            if source.exists() and (group / setting).exists():
                (group / setting).write_text(source.read_text())


def remove(name: str) -> None:
    """Remove the groups of this name with all below them; waits while the last processes leave them."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        wait_until(lambda group=group: _removed(group), f"{group} becomes empty", EMPTY_SECONDS)  # type: ignore[misc]


def _removed(group: Path) -> bool:
    if not group.exists():
        return True
    for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def _hierarchies() -> Iterator[Path]:
    if (ROOT / "cgroup.controllers").exists():
        yield ROOT
        return
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):  # runc also leaves a folder in a hybrid set-up's version 2
            yield Path(folder)
