"""Turns the pinned Go modules under `tools/` into binaries in the cache folder, each built once.

`path("kubectl")` is what the rest of the project calls; `python -m e2e.cluster tools` is the same by hand.
A binary's folder is named by module, version and a digest of everything that shapes it, so a changed
pin or compiler is another folder and nothing stale is ever run.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.cluster import cache, console
from e2e.cluster.errors import ClusterError

MODULES: Final = Path(__file__).parent / "tools"
BUILD_SPACE_BYTES: Final = 5 * 2**30
"""Modules, build cache and binaries of all tools together take about 8 GiB; the rest may be there already."""


class GoMissingError(ClusterError):
    """There is no Go that can build the pinned modules."""


@dataclass(frozen=True)
class Module:
    """A pinned Go module: the folder under `tools/`, and the dependency whose version names it."""

    name: str
    subject: str

    @property
    def folder(self) -> Path:
        """Where its go.mod is."""
        return MODULES / self.name

    @property
    def version(self) -> str:
        """The version of the subject that go.mod pins."""
        text = (self.folder / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.subject)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise ClusterError(f"{self.folder}/go.mod does not require {self.subject}")
        return found[1]

    @property
    def link_flags(self) -> str:
        """Stripped; the Kubernetes commands are also told their version, which clients read."""
        if self.subject != "k8s.io/kubernetes":
            return "-s -w"
        major, minor, _ = self.version.removeprefix("v").split(".")
        stamp = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
        return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{k}={v}" for k, v in stamp.items())


KUBERNETES: Final = Module("kubernetes", "k8s.io/kubernetes")
HELM: Final = Module("helm", "helm.sh/helm/v3")
COREDNS: Final = Module("coredns", "github.com/coredns/coredns")
POLICIES: Final = Module("kube-network-policies", "sigs.k8s.io/kube-network-policies")
PROVISIONER: Final = Module("local-path-provisioner", "github.com/rancher/local-path-provisioner")


@dataclass(frozen=True)
class Tool:
    """One binary: the module that pins it and the package that is its `main`."""

    name: str
    module: Module
    package: str


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool("kube-apiserver", KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver"),
        Tool("etcd", KUBERNETES, "go.etcd.io/etcd/server/v3"),
        Tool("kubectl", KUBERNETES, "k8s.io/kubernetes/cmd/kubectl"),
        Tool("kube-controller-manager", KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager"),
        Tool("kube-scheduler", KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler"),
        Tool("kubelet", KUBERNETES, "k8s.io/kubernetes/cmd/kubelet"),
        Tool("kube-proxy", KUBERNETES, "k8s.io/kubernetes/cmd/kube-proxy"),
        Tool("helm", HELM, "helm.sh/helm/v3/cmd/helm"),
        Tool("coredns", COREDNS, "."),
        Tool("kube-network-policies", POLICIES, "sigs.k8s.io/kube-network-policies/cmd"),
        Tool("local-path-provisioner", PROVISIONER, "github.com/rancher/local-path-provisioner"),
    )
}
API_TOOLS: Final = ("kube-apiserver", "etcd", "kubectl")
"""What the API tests need; built first because everything else can wait for it."""


def cache_key(module: Module, go_version: str) -> str:
    """Name a module's folder of binaries: version, and a digest of pins, own source, flags and compiler."""
    digest = hashlib.sha256(f"{go_version}\n{module.link_flags}\n".encode())
    for name in ("go.mod", "go.sum", "main.go"):
        source = module.folder / name
        if source.exists():
            digest.update(f"{name} {source.stat().st_size}\n".encode() + source.read_bytes())
    return f"{module.name}-{module.version}-{digest.hexdigest()[:12]}"


def ensure(names: Iterable[str] = tuple(TOOLS)) -> dict[str, Path]:
    """Build what is missing of the named tools and return where each binary is.

    Raises ClusterError for an unknown name, a missing or old Go, a full disk or a failed build.
    """
    wanted = list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in TOOLS]
    if unknown:
        raise ClusterError(f"unknown tool {', '.join(unknown)}; there are: {', '.join(TOOLS)}")
    go = _Go()
    places = {name: _place(TOOLS[name], go.version) for name in wanted}
    missing = [name for name in wanted if not places[name].exists()]
    for number, name in enumerate(missing, start=1):
        _build(TOOLS[name], places[name], f"{number} of {len(missing)}", go)
    return places


def path(name: str) -> Path:
    """Return one binary, built if it has to be; see `ensure`."""
    return ensure([name])[name]


def client(name: str) -> Path:
    """Return a command that only talks to clusters: the pinned one, or without Go whatever is on PATH."""
    try:
        return path(name)
    except GoMissingError:
        found = shutil.which(name)
        if found is None:
            raise
        return Path(found)


def _place(tool: Tool, go_version: str) -> Path:
    return cache.tools() / cache_key(tool.module, go_version) / tool.name


class _Go:
    """The Go command, found and checked once, with the settings every build gets."""

    def __init__(self) -> None:
        found = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
        if found is None:
            raise GoMissingError(
                "Go is not installed, and the test cluster is built from pinned Go modules: install Go 1.26 "
                "or later and put it on PATH (for the API tests alone, KUBEBUILDER_ASSETS may name a folder "
                "with etcd, kube-apiserver and kubectl)"
            )
        self.command = found
        self.environment = os.environ | {
            "CGO_ENABLED": "0",
            "GO111MODULE": "on",
            "GOWORK": "off",
            "GOOS": "linux",
            "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
        }
        # Asked inside a module, Go answers with the version that would build it, or says that it is too old.
        asked = subprocess.run(
            [found, "env", "GOVERSION"],
            cwd=KUBERNETES.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode:
            raise GoMissingError(
                f"{found} cannot build the test cluster, install Go 1.26 or later: {asked.stderr.strip()}"
            )
        self.version = asked.stdout.strip()


def _build(tool: Tool, target: Path, number: str, go: _Go) -> None:
    """Build one tool, unless another process just did, and move it into place when it is whole."""
    with cache.lock(target.with_name(f".{tool.name}.lock"), f"building {tool.name}"):
        if target.exists():
            return
        cache.require_free_space(target, BUILD_SPACE_BYTES, "building the test cluster's tools")
        with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as scratch:
            built = Path(scratch, tool.name)
            _compile(
                tool, built, f"building {tool.name} ({tool.module.name} {tool.module.version}), {number}", go
            )
            built.rename(target)


def _compile(tool: Tool, output: Path, title: str, go: _Go) -> None:
    command = [go.command, "build", "-v", "-ldflags", tool.module.link_flags, "-o", str(output), tool.package]
    log = output.with_suffix(".log")
    with console.Step(title) as step, log.open("w+") as lines:
        process = subprocess.Popen(
            command,
            cwd=tool.module.folder,
            env=go.environment,
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=lines,
        )
        try:
            while True:
                try:
                    process.wait(timeout=1.0)
                    break
                except subprocess.TimeoutExpired:
                    step.tick(f"{log.read_text().count(chr(10))} packages compiled")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode:
            tail = "\n".join(log.read_text().splitlines()[-30:])
            raise ClusterError(
                f"building {tool.name} failed; `{' '.join(command)}` in {tool.module.folder} said:\n{tail}"
            )
