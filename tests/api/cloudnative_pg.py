"""Installs CloudNativePG's kinds in an API server of tests, and removes them; nothing acts on them."""

from __future__ import annotations

import json

from e2e.cluster.apiserver import ApiServer
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import wait_until
from tests.support.cloudnative_pg import definitions

_NAMES = [str(each["metadata"]["name"]) for each in definitions()]


def install(server: ApiServer) -> None:
    """Install both kinds, and wait until objects of them are served."""
    items = {"apiVersion": "v1", "kind": "List", "items": definitions()}
    server.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def are_served() -> bool:
        try:
            server.kubectl("get", "--all-namespaces", ",".join(_NAMES))
        except ClusterError:
            return False
        return True

    wait_until(are_served, "CloudNativePG's kinds are not served", 60)


def remove(server: ApiServer) -> None:
    """Remove both kinds, and all objects of them."""
    server.kubectl("delete", "crd", "--ignore-not-found", *_NAMES)
