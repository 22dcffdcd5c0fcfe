"""The cache of built images: which archives exist, which are missing, and one builder at a time.

Turns names into paths of docker-archive files under `$CACHEWRIGHT_CACHE/images`. Called through the package's
`ensure` and `ref`.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from e2e.cluster.images.builders import BuildahBuilder, DockerBuilder, InputsChangedError, Log
from e2e.cluster.images.recipes import Builder, Target, target, with_bases


def ensure(names: Iterable[str], builder: Builder | None = None) -> dict[str, Path]:
    """Build what is missing and return each name's docker-archive file.

    Without a builder, Docker builds where its daemon answers and buildah elsewhere. Raises KeyError for a
    name that has no recipe and BuildError when a step fails.
    """
    wanted, chosen = list(names), builder or default_builder()
    archives = {name: archive_of(target(name, chosen)) for name in wanted}
    if not all(archive.exists() for archive in archives.values()):
        with _lock():
            archives |= _build_missing(with_bases(wanted, chosen), chosen)
    return {name: archives[name] for name in wanted}


def ref(name: str, builder: Builder | None = None) -> str:
    """Return the reference under which pods name an image, in the state that `ensure` would give it now."""
    return target(name, builder or default_builder()).reference


def folder() -> Path:
    """Return where archives, logs and buildah's storage are kept."""
    root = os.environ.get("CACHEWRIGHT_CACHE") or Path.home() / ".cache/cachewright"
    return Path(root).absolute() / "images"


def archive_of(wanted: Target) -> Path:
    """Return the archive's path, existing or not."""
    return folder() / wanted.archive_name


@cache
def default_builder() -> Builder:
    """Return docker where its daemon answers, else buildah."""
    try:
        asked = subprocess.run(["docker", "info"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        return "buildah"
    return "docker" if asked.returncode == 0 else "buildah"


def _build_missing(names: list[str], kind: Builder) -> dict[str, Path]:
    builder = DockerBuilder() if kind == "docker" else BuildahBuilder(folder())
    archives = {}
    for name in names:
        while name not in archives:
            wanted = target(name, kind)
            try:
                if not archive_of(wanted).exists():
                    _build(wanted, builder)
            except InputsChangedError:
                _say(f"{name}: its inputs changed meanwhile; starting again")
            else:
                archives[name] = archive_of(wanted)
    return archives


def _build(wanted: Target, builder: DockerBuilder | BuildahBuilder) -> None:
    started, name, archive = time.monotonic(), wanted.recipe.name, archive_of(wanted)
    _say(f"{name}: building with {builder.kind}")
    work = folder() / "work"
    work.mkdir(exist_ok=True)
    unfinished = work / archive.name
    unfinished.unlink(missing_ok=True)
    builder.build(wanted, unfinished, work, Log(folder() / f"log/{name}.log"))
    unfinished.rename(archive)
    for older in set(folder().glob(f"{name}-{'[0-9a-f]' * len(wanted.digest)}.tar")) - {archive}:
        older.unlink()
    _say(f"{name}: built in {time.monotonic() - started:.1f} s, {archive.stat().st_size / 1e6:.0f} MB")


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """Let one process build at a time: they share buildah's storage and, mostly, what they want to build."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    print(f"image {line}", file=sys.stderr, flush=True)
