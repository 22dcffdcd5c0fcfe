"""A file system of its own with little room, so that a test can fill it. Needs the right to mount."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BLOCK_BYTES = 4096


def fill(disk: Path) -> Path:
    """Take all room that is left on a disk; returns the file that holds it."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        while left := os.statvfs(disk).f_bavail:
            file.write(bytes(min(left, 256) * BLOCK_BYTES))
            file.flush()
    return ballast


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """Mount a disk in memory until the block ends; skips where this process may not mount."""
    with tempfile.TemporaryDirectory(prefix="cachewright-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "cachewright-test", folder]
        done = subprocess.run(mount, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)
