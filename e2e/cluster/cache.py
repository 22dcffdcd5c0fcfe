"""Where everything that is made once is kept: tools, images and the state of clusters.

One folder, `$CACHEWRIGHT_CACHE` or `~/.cache/cachewright`, so that removing it removes all.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster import console
from e2e.cluster.errors import ClusterError


def root() -> Path:
    """Return the cache folder; it need not exist yet."""
    configured = os.environ.get("CACHEWRIGHT_CACHE")
    return Path(configured).expanduser().absolute() if configured else Path.home() / ".cache" / "cachewright"


def tools() -> Path:
    """Return the folder of built binaries."""
    return root() / "tools"


def images() -> Path:
    """Return the folder of image tarballs that every node imports."""
    return root() / "images"


def clusters() -> Path:
    """Return the folder that holds one state folder per cluster."""
    return root() / "clusters"


@contextlib.contextmanager
def lock(path: Path, waiting_for: str) -> Iterator[None]:
    """Hold an exclusive lock on a file, saying what is waited for when another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.say(f"waiting for another process: {waiting_for}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def require_free_space(folder: Path, needed_bytes: int, purpose: str) -> None:
    """Raise ClusterError unless the disk of `folder` has room, before anything is written to it."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < needed_bytes:
        message = (
            f"{purpose} needs {needed_bytes / 2**30:.1f} GiB, but {existing} has {free / 2**30:.1f} free; "
            f"free some, or set CACHEWRIGHT_CACHE (and GOCACHE, GOMODCACHE) to a larger disk"
        )
        raise ClusterError(message)
