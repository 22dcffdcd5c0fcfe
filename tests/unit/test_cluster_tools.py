"""The test cluster's binaries: what names their folder, and that each is built once, whole or not at all."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.cluster import binaries
from e2e.cluster.binaries import HELM, KUBERNETES, TOOLS, Module, cache_key, ensure
from e2e.cluster.errors import ClusterError

PROJECT = Path(binaries.__file__).parents[2]
COMPILER = """#!/bin/sh
# Stands in for the Go command: answers its version, and "builds" by writing what -o names.
if [ "$1" = env ]; then {version}; fi
echo "$PWD $*" >> "{log}"
{build}
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\n' > "$2"; chmod 755 "$2"
"""


def put_compiler(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    version: str = "echo go1.99.0; exit 0",
    build: str = "sleep 0.3",
) -> Path:
    """Put a `go` command in front of PATH and the cache in `folder`; return the log of its builds."""
    command = folder / "bin" / "go"
    command.parent.mkdir()
    log = folder / "builds.log"
    command.write_text(COMPILER.format(version=version, build=build, log=log))
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CACHEWRIGHT_CACHE", str(folder / "cache"))
    return log


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Make a module of our own under another folder of modules."""
    monkeypatch.setattr(binaries, "MODULES", tmp_path)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "go.mod").write_text("module x\n\nrequire (\n\texample.org/some v1.2.3\n)\n")
    (tmp_path / "some" / "go.sum").write_text("example.org/some v1.2.3 h1:abc=\n")
    return Module("some", "example.org/some")


def test_key_names_module_and_version(module: Module) -> None:
    """A folder of binaries can be told from others by eye."""
    assert re.fullmatch(r"some-v1\.2\.3-[0-9a-f]{12}", cache_key(module, "go1.26.0"))


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go"])
def test_key_moves_with_every_input(module: Module, file: str) -> None:
    """A changed pin, hash or source is another binary."""
    before = cache_key(module, "go1.26.0")
    with (module.folder / file).open("a") as handle:
        handle.write("\n")
    assert cache_key(module, "go1.26.0") != before


def test_key_moves_with_the_compiler(module: Module) -> None:
    """Another Go version builds again, and the same one does not."""
    assert cache_key(module, "go1.26.0") == cache_key(module, "go1.26.0") != cache_key(module, "go1.27.0")


def test_module_without_its_subject_is_an_error(module: Module) -> None:
    """A go.mod that lost its main requirement is named instead of guessed at."""
    (module.folder / "go.mod").write_text("module x\n\nrequire example.org/other v1.2.3\n")
    with pytest.raises(ClusterError, match=r"does not require example\.org/some"):
        cache_key(module, "go1.26.0")


def test_kubernetes_is_stamped_with_the_version_it_is_pinned_to() -> None:
    """Clients read the server's version and must not see v0.0.0."""
    assert f"gitVersion={KUBERNETES.version} " in KUBERNETES.link_flags
    assert HELM.link_flags == "-s -w"


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_every_tool_is_pinned_by_hash(tool: binaries.Tool) -> None:
    """Each module has a version and the hash of that version's source, and no address of a server."""
    sums = (tool.module.folder / "go.sum").read_text()
    assert re.search(rf"^{re.escape(tool.module.subject)} {tool.module.version} h1:", sums, re.MULTILINE)
    assert "://" not in sums + (tool.module.folder / "go.mod").read_text()


def test_a_tool_is_built_once_and_then_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call compiles nothing."""
    log = put_compiler(tmp_path, monkeypatch)
    first = ensure(["helm"])["helm"]
    assert ensure(["helm"])["helm"] == first
    assert first.stat().st_mode & stat.S_IXUSR
    assert len(log.read_text().splitlines()) == 1


def test_two_processes_build_a_tool_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that comes second waits for the first and uses its binary."""
    log = put_compiler(tmp_path, monkeypatch)
    command = [sys.executable, "-m", "e2e.cluster", "tools", "helm"]
    both = [subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate(timeout=30)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(printed) == 1
    assert len(log.read_text().splitlines()) == 1


def test_a_failed_build_leaves_no_binary_and_shows_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a binary would be run for ever after; the compiler's words are what the reader needs."""
    put_compiler(tmp_path, monkeypatch, build="echo 'undefined: x' >&2; exit 2")
    with pytest.raises(ClusterError, match="undefined: x"):
        ensure(["helm"])
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_an_old_compiler_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the version to install."""
    put_compiler(tmp_path, monkeypatch, version="echo 'go.mod requires go >= 1.26.0' >&2; exit 1")
    with pytest.raises(ClusterError, match=r"install Go 1\.26 or later"):
        ensure(["helm"])


def test_unknown_tool_is_refused_with_those_there_are() -> None:
    """A misspelt name is answered with the list."""
    with pytest.raises(ClusterError, match=r"unknown tool kubctl; there are: .*kubectl"):
        ensure(["kubctl"])
