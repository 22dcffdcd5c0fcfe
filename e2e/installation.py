"""Puts the project on a test cluster: images built and loaded, chart installed. Used by demo and tests.

`python -m e2e.installation` does all of it that takes long, with its progress shown, before a test run whose
time limits are not meant for compiling a Kubernetes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.cluster import clusters, images
from e2e.cluster.console import Step
from e2e.cluster.errors import ClusterError
from e2e.cluster.providers import Cluster
from e2e.kubectl import Kubectl, tool

ROOT: Final = Path(__file__).parent.parent
CHART: Final = ROOT / "charts" / "cachewright"
RELEASE: Final = "cachewright"
NAMESPACE: Final = "cachewright-system"
IMAGES: Final = ("cachewright", "valkey", "redis", "postgres", "engine", "qdrant")
STORES: Final = ("valkey", "redis", "postgres", "qdrant")

QDRANT_IMAGE_VARIABLE: Final = "CACHEWRIGHT_E2E_QDRANT_IMAGE"
"""Names a real Qdrant, which the cluster must be able to pull; without it the stand-in takes its place."""


@dataclass(frozen=True)
class Installation:
    """A cluster that serves, with the images of the checkout as it was when they were built."""

    cluster: Cluster
    images: Mapping[str, str]
    """Image reference by name."""

    @classmethod
    def start(cls, name: str = clusters.DEFAULT_NAME) -> Installation:
        """Build what is missing, bring the cluster up, and load the images into it."""
        for client in ("kubectl", "helm"):
            tool(client)
        built = images.ensure(IMAGES)
        cluster = clusters.up(name)
        cluster.load(image.archive for image in built.values())
        return cls(cluster, {name: image.reference for name, image in built.items()})

    @property
    def kubectl(self) -> Kubectl:
        """The way to the cluster."""
        return Kubectl(self.cluster.state.kubeconfig)

    def install(self, *settings: str, namespace: str = NAMESPACE) -> None:
        """Install or upgrade the chart with `--set` arguments, and wait until the operator is ready."""
        stores = {name: self.images[name] for name in STORES}
        if real := os.environ.get(QDRANT_IMAGE_VARIABLE):
            stores["qdrant"] = real
        images = {**stores, "operator": self.images["cachewright"]}
        pairs = [pair for name, reference in images.items() for pair in _image_values(name, reference)]
        with Step("helm upgrade --install cachewright"):
            self.kubectl.helm(
                "upgrade",
                "--install",
                RELEASE,
                str(CHART),
                f"--namespace={namespace}",
                "--create-namespace",
                "--wait",
                "--timeout=180s",
                *(f"--set-string={pair}" for pair in pairs),
                *(f"--set={setting}" for setting in settings),
            )

    def engine_manifest(self) -> str:
        """Return the stand-in engine's manifest with the locally built image."""
        return self._stand_in("engine")

    def qdrant_manifest(self) -> str:
        """Return the same for the stand-in Qdrant."""
        return self._stand_in("qdrant")

    def _stand_in(self, name: str) -> str:
        text = (ROOT / "examples" / f"{name}.yaml").read_text()
        return text.replace(f"cachewright-{name}:dev", self.images[name])


def _image_values(component: str, reference: str) -> tuple[str, str]:
    """Turn an image reference into the chart's values for it."""
    repository, _, tag = reference.rpartition(":")
    return f"images.{component}.repository={repository}", f"images.{component}.tag={tag}"


if __name__ == "__main__":
    try:
        Installation.start()
    except ClusterError as e:
        sys.exit(f"error: {e}")
