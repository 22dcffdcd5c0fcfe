"""Workloads that an InferenceCache patched and left behind when it was deleted. IO; called by service.

No finalizer holds up the object's end for them: they carry its name in a label, and are found by that, also
by an operator that was not there when it was deleted.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.names import LABEL_PREFIX_PATCHED
from cachewright.errors import KubeNotFound
from cachewright.kube.protocol import KubeClient, Manifest, patched_kinds
from cachewright.reconcile.prefix.patched_workload import given_back

STEPS: Final = 2
"""Writes that give a workload back: its words, then who owns them."""


async def give_back(kube: KubeClient, namespace: str, cache_name: str, *, engine_stacks: bool) -> None:
    """Put back the words of every workload that this object patched."""
    for kind in patched_kinds(engine_stacks=engine_stacks):
        try:
            listed = await kube.list(kind, namespace, f"{LABEL_PREFIX_PATCHED}={cache_name}")
        except KubeNotFound:
            continue  # A stack that is not installed.
        for found in listed:
            workload: Manifest = {**found, "apiVersion": kind.api_version, "kind": kind.kind}
            for _ in range(STEPS):
                restored, released = given_back(workload, cache_name)
                if restored is not None:
                    workload = await kube.apply(restored)
                elif released is not None:
                    workload = await kube.replace(released)
