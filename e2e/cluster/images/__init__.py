"""The test cluster's container images, built on this machine without a registry.

Turns recipes (a folder with a Dockerfile, its inputs and its base) into docker-archive files that containerd
or `kind load image-archive` take in. Called by the cluster providers, by the demo and by
`python -m e2e.cluster.images`.
"""

from e2e.cluster.images.store import Image, ensure, ref

__all__ = ["Image", "ensure", "ref"]
