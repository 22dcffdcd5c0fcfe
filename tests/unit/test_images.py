"""The image recipes: what is digested is what is built."""

import fnmatch
import re
from pathlib import Path

import pytest

from e2e.cluster.images.recipes import (
    CACHEWRIGHT,
    RECIPES,
    ROOT,
    Recipe,
    digest,
    input_files,
    target,
    with_bases,
)

DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """Return a recipe on the python base with a folder of two files as its input."""
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "source/__pycache__").mkdir(parents=True)
    (tmp_path / "source/a.py").write_text("A = 1\n")
    (tmp_path / "source/b.py").write_text("B = 1\n")
    return Recipe("made", tmp_path / "Dockerfile", inputs=((str(tmp_path / "source"), "app"),), base="python")


def test_the_same_inputs_give_the_same_digest(recipe: Recipe, tmp_path: Path) -> None:
    """Compiled files and times of files change nothing."""
    before = digest(recipe, "buildah")
    (tmp_path / "source/__pycache__/a.cpython-311.pyc").write_bytes(b"compiled")
    (tmp_path / "source/a.py").touch()
    assert digest(recipe, "buildah") == before
    assert [path for _, path in input_files(recipe)] == ["app/a.py", "app/b.py"]


def test_every_input_moves_the_digest(recipe: Recipe, tmp_path: Path) -> None:
    """A changed, renamed or added file and a changed Dockerfile each give another digest."""
    seen = {digest(recipe, "buildah")}
    (tmp_path / "source/a.py").write_text("A = 2\n")
    seen.add(digest(recipe, "buildah"))
    (tmp_path / "source/b.py").rename(tmp_path / "source/c.py")
    seen.add(digest(recipe, "buildah"))
    (tmp_path / "source/d.py").touch()
    seen.add(digest(recipe, "buildah"))
    (tmp_path / "Dockerfile").write_text("FROM other\n")
    seen.add(digest(recipe, "buildah"))
    assert len(seen) == 5


def test_the_builders_do_not_share_archives(recipe: Recipe) -> None:
    """Docker builds on other bases, so its images have other digests."""
    assert digest(recipe, "buildah") != digest(recipe, "docker")


def test_bases_come_first_and_once() -> None:
    """With buildah the python base is built before what stands on it; Docker pulls its own."""
    assert with_bases(["engine", "python", "cachewright"], "buildah") == ["python", "engine", "cachewright"]
    assert with_bases(["engine", "python"], "docker") == ["engine", "python"]


def test_images_of_our_own_code_roll_with_it() -> None:
    """The project and its stand-ins are tagged by content, the others stay at one tag."""
    tags = {name: target(name, "buildah").reference.removeprefix(f"localhost/{name}:") for name in RECIPES}
    assert {name for name, tag in tags.items() if tag != "1"} == {"cachewright", "engine", "qdrant"}
    assert tags["engine"] == target("engine", "buildah").digest


def test_the_dockerfile_copies_the_recipes_inputs() -> None:
    """Dockerfile, digested inputs and .dockerignore name the same files, so that none is missed."""
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
        for word in line.split()
    }
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert copied == {source for source, _ in CACHEWRIGHT.inputs} == set(allowed)
    assert all((ROOT / source).exists() for source in copied)


def test_the_project_image_runs_as_a_numeric_user() -> None:
    """The last USER is a number, as runAsNonRoot wants, and the final stage only copies."""
    final = DOCKERFILE.split("\nFROM ")[-1]
    assert re.findall(r"^USER (.+)$", final, re.MULTILINE) == ["65532:65532"]
    assert not fnmatch.filter(final.splitlines(), "RUN *")


def test_a_pin_that_is_missing_is_named(recipe: Recipe) -> None:
    """A recipe that needs a version which constraints.txt lacks says which."""
    unpinned = Recipe("made", recipe.dockerfile, pins=("no-such-package",))
    with pytest.raises(LookupError, match="no-such-package"):
        digest(unpinned, "buildah")
