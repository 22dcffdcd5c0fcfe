"""A real Helm, as the chart's tests use it: values in, manifests or Helm's complaint out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).parents[2] / "charts" / "cachewright"

KUBE_VERSION: Final = "1.36.3"
"""What `helm template` takes as the cluster's version; a Helm built from source would say 1.20."""

TIMEOUT_SECONDS: Final = 120

Manifest = dict[str, Any]


class HelmError(Exception):
    """Helm refused; the text is its own."""


@dataclass(frozen=True, slots=True)
class Helm:
    """The chart in the hands of one Helm binary."""

    binary: Path
    kubeconfig: Path | None = None
    """The cluster to install into; rendering needs none."""

    def lint(self, values: Mapping[str, Any] | None = None) -> str:
        """Lint the chart, warnings counted as errors."""
        return self._run("lint", str(CHART), "--strict", f"--kube-version={KUBE_VERSION}", values=values)

    def render(
        self,
        values: Mapping[str, Any] | None = None,
        release: str = "cw",
        namespace: str = "cachewright-system",
        settings: Sequence[str] = (),
    ) -> str:
        """Render the chart as YAML text; `settings` are arguments of `--set`."""
        flags = [f"--kube-version={KUBE_VERSION}", *(f"--set={setting}" for setting in settings)]
        return self._run("template", release, str(CHART), "-n", namespace, *flags, values=values)

    def manifests(self, values: Mapping[str, Any] | None = None, **names: str) -> list[Manifest]:
        """Render the chart as objects, in Helm's order of installation."""
        return [document for document in yaml.safe_load_all(self.render(values, **names)) if document]

    def install(self, release: str, namespace: str, values: Mapping[str, Any] | None = None) -> str:
        """Install or upgrade without waiting for pods; return what the user sees."""
        return self._run(
            "upgrade", release, str(CHART), "--install", "-n", namespace, "--create-namespace", values=values
        )

    def uninstall(self, release: str, namespace: str) -> str:
        """Remove the release."""
        return self._run("uninstall", release, "-n", namespace)

    def releases(self, namespace: str) -> list[str]:
        """Name the releases of a namespace."""
        return self._run("list", "-n", namespace, "--short").split()

    def _run(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        command = [str(self.binary), *arguments]
        if values is not None:
            command.append("--values=-")
        if self.kubeconfig is not None:
            command.append(f"--kubeconfig={self.kubeconfig}")
        done = subprocess.run(
            command,
            input=json.dumps(values or {}),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise HelmError(done.stdout + done.stderr)
        return done.stdout


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    """Pick the objects of one kind."""
    return [manifest for manifest in manifests if manifest["kind"] == kind]
