"""Two ways to turn a recipe into a docker-archive file: buildah without a registry, and Docker with one.

Called by `store.ensure`, which holds the lock, chooses the destination and prints the progress.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from e2e.cluster import console
from e2e.cluster.errors import ClusterError
from e2e.cluster.images.recipes import (
    Builder,
    Rootfs,
    Target,
    build_arguments,
    input_files,
    target,
)
from e2e.cluster.processes import tail

CONTEXT_MTIME: Final = 315_619_200
"""1980-01-02, as early as zip allows: buildah's layer cache looks at times, and a fresh clone must hit it."""

CERTIFICATES_AND_PIP: Final = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pip.conf"))
"""Mounted into RUN steps that call pip, where they exist: a host may trust a further CA. `--env` would be
stored in the image; a mount is not."""

LEFT_OUT_OF_ROOTFS: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


class InputsChangedError(RuntimeError):
    """The inputs were edited between digest and copy: the build would not be what its name says."""


class Log:
    """Runs commands with their output in one file per image, and says now and then that they still run."""

    def __init__(self, path: Path, step: console.Step) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        self._path, self._step = path, step

    def run(self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None) -> None:
        """Run a command to its end; raise ClusterError when it fails."""
        words = [str(word) for word in command]
        with self._path.open("ab") as output:
            output.write(f"$ {' '.join(words)}\n".encode())
            output.flush()
            process = subprocess.Popen(
                words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            try:
                while process.returncode is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=1.0)
                    self._step.tick(Path(words[0]).name)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        if process.returncode:
            raise ClusterError(f"{words[0]} ended with {process.returncode}\n{tail(self._path)}")


@contextlib.contextmanager
def build_context(wanted: Target, work: Path, log: Log) -> Iterator[Path]:
    """Lay out the recipe's inputs alone, with fixed times: the build can't see what the digest does not."""
    recipe = wanted.recipe
    with tempfile.TemporaryDirectory(prefix=f"{recipe.name}-", dir=work) as folder:
        context = Path(folder)
        for source, path in input_files(recipe):
            (context / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, context / path)
        if target(recipe.name, wanted.builder) != wanted:
            raise InputsChangedError(recipe.name)
        for command in recipe.host_commands:
            log.run(command, cwd=context)
        for entry in (context, *context.rglob("*")):
            os.utime(entry, (CONTEXT_MTIME, CONTEXT_MTIME))
        yield context


class DockerBuilder:
    """Builds with the Docker daemon, on the bases that the Dockerfiles name."""

    kind: Final[Builder] = "docker"

    def build(self, wanted: Target, archive: Path, work: Path, log: Log) -> None:
        """Build the image, leave it in the daemon and save it."""
        arguments = [f"--build-arg={key}={value}" for key, value in build_arguments(wanted.recipe).items()]
        with build_context(wanted, work, log) as context:
            names: list[str | Path] = ["-t", wanted.reference, "-f", wanted.recipe.dockerfile]
            log.run(["docker", "build", "-q", *arguments, *names, context], cwd=context)
        log.run(["docker", "save", "-o", archive, wanted.reference], cwd=work)


def run_root(cache: Path) -> Path:
    """Return where buildah keeps a cache's locks and mount counts: in /run, since a boot must end them."""
    return Path("/run") / f"cachewright-images-{hashlib.sha256(str(cache).encode()).hexdigest()[:8]}"


class BuildahBuilder:
    """Builds with buildah in its own storage, on Debian root file systems instead of a registry's images."""

    kind: Final[Builder] = "buildah"

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._env = {
            key: value for key, value in os.environ.items() if not key.startswith(("BUILDAH", "STORAGE_"))
        }
        # chroot: the other ways of isolation want capabilities that a container or a small VM may lack.
        self._env |= {"BUILDAH_ISOLATION": "chroot"}
        self._driver = self._fastest_driver()

    def build(self, wanted: Target, archive: Path, work: Path, log: Log) -> None:
        """Build the image, keep it as a base for others, and push it to the archive."""
        recipe, kept = wanted.recipe, _kept(wanted)
        options = [f"--build-arg={key}={value}" for key, value in build_arguments(recipe).items()]
        if recipe.pip:
            options += [f"--volume={path}:{path}:ro" for path in CERTIFICATES_AND_PIP if path.exists()]
        if recipe.base:
            options.append(f"--build-arg=BASE_IMAGE={self._base(target(recipe.base, self.kind), log)}")
        elif recipe.rootfs:
            options.append(f"--build-arg=BASE_IMAGE={self._rootfs(recipe.rootfs, work, log)}")
        with build_context(wanted, work, log) as context:
            names: list[str | Path] = ["-t", kept, "-f", recipe.dockerfile]
            self._buildah(log, "bud", "--layers", "--pull=never", *options, *names, context)
        self._buildah(log, "push", kept, f"docker-archive:{archive}:{wanted.reference}")
        self._forget_older(wanted)

    def _base(self, base: Target, log: Log) -> str:
        """Return the name of a built base in the storage, loaded from its archive if the storage is new."""
        kept = _kept(base)
        if not self._holds(kept):
            self._buildah(log, "pull", f"docker-archive:{self._cache / base.archive_name}")
            self._buildah(log, "tag", base.reference, kept)
        return kept

    def _rootfs(self, rootfs: Rootfs, work: Path, log: Log) -> str:
        """Make an image of Debian packages, taken from Debian's default mirror."""
        packages = ",".join(rootfs.packages)
        state = hashlib.sha256(f"{rootfs.suite} {packages}".encode()).hexdigest()[:12]
        name = f"localhost/rootfs-{rootfs.suite}:{state}"
        if self._holds(name):
            return name
        with tempfile.TemporaryDirectory(prefix="rootfs-", dir=work) as folder:
            context = Path(folder)
            (context / "Dockerfile").write_text("FROM scratch\nADD rootfs.tar /\n")
            excludes = [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT_OF_ROOTFS]
            log.run(
                [
                    "mmdebstrap",
                    "--variant=essential",
                    "--dpkgopt=force-unsafe-io",
                    *excludes,
                    f"--include={packages}",
                    rootfs.suite,
                    "rootfs.tar",
                ],
                cwd=context,
            )
            self._buildah(log, "bud", "-t", name, context)
        return name

    def _forget_older(self, wanted: Target) -> None:
        """Remove earlier builds; what the new one shares with them stays, and a failure costs only disk."""
        listed = self._ask("images", "--format={{.Name}}:{{.Tag}}").stdout.split()
        for name in listed:
            if name.startswith(f"localhost/{wanted.recipe.name}:") and name != _kept(wanted):
                self._ask("rmi", name)

    def _fastest_driver(self) -> str:
        """Take overlay where the cache's file system carries it: vfs copies every layer whole."""
        self._driver = "overlay"
        return "overlay" if self._ask("info").returncode == 0 else "vfs"

    def _holds(self, name: str) -> bool:
        return self._ask("inspect", "--type=image", name).returncode == 0

    def _command(self, *arguments: str | Path) -> list[str | Path]:
        run = run_root(self._cache)
        storage = self._cache / f"storage-{self._driver}"
        return [
            "buildah",
            f"--root={storage}",
            f"--runroot={run}",
            f"--storage-driver={self._driver}",
            *arguments,
        ]

    def _buildah(self, log: Log, *arguments: str | Path) -> None:
        log.run(self._command(*arguments), cwd=self._cache, env=self._env)

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(*arguments),
            cwd=self._cache,
            env=self._env,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )


def _kept(wanted: Target) -> str:
    """Name an image in buildah's storage by its digest, so that a stale one is never taken for a base."""
    return f"localhost/{wanted.recipe.name}:{wanted.digest}"
