"""The cache of built images: which archives exist, which are missing, and one builder at a time.

Turns names into paths of docker-archive files under `$CACHEWRIGHT_CACHE/images`. Called through the package's
`ensure` and `ref`.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache as remember
from pathlib import Path
from typing import Final

from e2e.cluster import cache, console, packages
from e2e.cluster.errors import ClusterError
from e2e.cluster.images.builders import BuildahBuilder, DockerBuilder, InputsChangedError, Log
from e2e.cluster.images.recipes import RECIPES, Builder, Target, target, with_bases

SPACE_BYTES: Final = 3 * 2**30


@dataclass(frozen=True)
class Image:
    """A built image: the file that a cluster loads and the name that its pods then use."""

    reference: str
    archive: Path


def ensure(names: Iterable[str] = tuple(RECIPES), builder: Builder | None = None) -> dict[str, Image]:
    """Build what is missing and return each image.

    Without a builder, Docker builds where its daemon answers and buildah elsewhere. Raises ClusterError for
    an unknown name, a full disk, or a step that fails.
    """
    wanted, chosen = list(dict.fromkeys(names)), builder or default_builder()
    unknown = [name for name in wanted if name not in RECIPES]
    if unknown:
        raise ClusterError(f"unknown image {', '.join(unknown)}; there are: {', '.join(RECIPES)}")
    targets = [target(name, chosen) for name in wanted]
    if not all(archive_of(one).exists() for one in targets):
        with cache.lock(cache.images() / "lock", "building images"):
            targets = _build_missing(with_bases(wanted, chosen), chosen)
    images = {one.recipe.name: Image(one.reference, archive_of(one)) for one in targets}
    return {name: images[name] for name in wanted}


def ref(name: str, builder: Builder | None = None) -> str:
    """Return the reference that `ensure` would give the image now.

    Sources that are edited between the two calls give another one: prefer what `ensure` returns.
    """
    return target(name, builder or default_builder()).reference


def archive_of(wanted: Target) -> Path:
    """Return the archive's path, existing or not."""
    return cache.images() / wanted.archive_name


@remember
def default_builder() -> Builder:
    """Return docker where its daemon answers, else buildah."""
    try:
        asked = subprocess.run(["docker", "info"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        return "buildah"
    return "docker" if asked.returncode == 0 else "buildah"


def _build_missing(names: list[str], kind: Builder) -> list[Target]:
    cache.require_free_space(cache.images(), SPACE_BYTES, "building images")
    if kind == "buildah":
        packages.ensure(["images"])
    builder = DockerBuilder() if kind == "docker" else BuildahBuilder(cache.images())
    built: dict[str, Target] = {}
    for name in names:
        while name not in built:
            wanted = target(name, kind)
            try:
                if not archive_of(wanted).exists():
                    _build(wanted, builder)
            except InputsChangedError:
                console.say(f"the inputs of image {name} changed meanwhile; starting again")
            else:
                built[name] = wanted
    return list(built.values())


def _build(wanted: Target, builder: DockerBuilder | BuildahBuilder) -> None:
    """Build one image, move its archive into place when it is whole, and remove older ones."""
    name, archive = wanted.recipe.name, archive_of(wanted)
    work = cache.images() / "work"
    work.mkdir(exist_ok=True)
    unfinished = work / archive.name
    unfinished.unlink(missing_ok=True)  # docker-archive: is never overwritten
    with console.Step(f"building image {name} with {builder.kind}") as step:
        builder.build(wanted, unfinished, work, Log(cache.images() / f"log/{name}.log", step))
        unfinished.rename(archive)
    for older in set(cache.images().glob(f"{name}-{'[0-9a-f]' * len(wanted.digest)}.tar")) - {archive}:
        older.unlink()
