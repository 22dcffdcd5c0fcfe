"""The operator, started as the chart starts it and with the rights that the chart grants, does its work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import binaries
from e2e.cluster.apiserver import ApiServer
from tests.api.operator_process import OperatorProcess
from tests.chart.helm import Helm

pytestmark = pytest.mark.api

OPERATOR = "system:serviceaccount:cachewright-system:cachewright"
PATIENCE_SECONDS = 30.0

CACHE = {
    "apiVersion": "cachewright.dev/v1alpha1",
    "kind": "InferenceCache",
    "metadata": {"name": "bot", "namespace": "ml"},
    "spec": {
        "model": {"name": "m", "version": "1"},
        "upstream": {"url": "http://engine.ml:8000/v1"},
        "tenancy": {"mode": "Single"},
        "stores": {"redis": {"managed": {}}},
        "layers": {"exact": {}},
    },
}
CHILDREN = (
    "configmap/bot-record",
    "configmap/bot-gateway",
    "configmap/bot-redis",
    "secret/bot-keys",
    "secret/bot-admin",
    "secret/bot-redis",
    "service/bot-gateway",
    "service/bot-redis",
    "statefulset/bot-redis",
    "deployment/bot-gateway",
    "poddisruptionbudget/bot-gateway",
    "networkpolicy/bot-redis",
)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start an API server with a namespace to work in."""
    with ApiServer() as started:
        started.kubectl("create", "namespace", "ml")
        yield started


def start(server: ApiServer, folder: Path) -> OperatorProcess:
    """Start the operator as the installed Deployment says, as its ServiceAccount."""
    text = server.kubectl("get", "deployment", "cachewright", "-n", "cachewright-system", "-o", "json")
    pod = json.loads(text)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    flags = [flag for flag in container["args"][1:] if not flag.startswith("--port")]
    account = server.service_account_kubeconfig("cachewright-system", pod["serviceAccountName"])
    return OperatorProcess(account, folder, flags)


def missing(server: ApiServer) -> list[str]:
    """Name the children that are not there."""
    found = server.kubectl("get", *CHILDREN, "-n", "ml", "-o", "name", "--ignore-not-found")
    names = {line.replace(".apps", "").replace(".networking.k8s.io", "") for line in found.split()}
    return sorted(set(CHILDREN) - {name.replace(".policy", "") for name in names})


def record(server: ApiServer) -> dict[str, Any]:
    """Read the record."""
    text = server.kubectl("get", "configmap", "bot-record", "-n", "ml", "-o", "json")
    parsed: dict[str, Any] = json.loads(json.loads(text)["data"]["record.json"])
    return parsed


@pytest.mark.parametrize("values", [{}, {"watchNamespaces": ["ml"]}], ids=["cluster-wide", "namespaced"])
def test_the_operator_needs_no_right_that_the_chart_does_not_grant(
    server: ApiServer, tmp_path: Path, values: dict[str, Any]
) -> None:
    """It is elected, makes every child, repairs one, moves the record, tells status: and meets no 403."""
    Helm(binaries.path("helm"), server.kubeconfig).install("cachewright", "cachewright-system", values)
    server.kubectl("wait", "--for=condition=Established", "crd/inferencecaches.cachewright.dev")
    with start(server, tmp_path) as operator:
        operator.wait(lambda: operator.ready and operator.leads, "the operator is ready", PATIENCE_SECONDS)
        server.kubectl("apply", "-f", "-", stdin=json.dumps(CACHE))
        operator.wait(lambda: not missing(server), "every child is made", PATIENCE_SECONDS)

        server.kubectl("delete", "deployment", "bot-gateway", "-n", "ml")
        operator.wait(lambda: not missing(server), "the deleted child is back", PATIENCE_SECONDS)

        before = record(server)["revision"]
        newer = {"spec": {"model": {"version": "2"}}}
        server.kubectl("patch", "icache", "bot", "-n", "ml", "--type=merge", "-p", json.dumps(newer))
        operator.wait(lambda: record(server)["revision"] > before, "the record moves", PATIENCE_SECONDS)
        server.kubectl("wait", "icache/bot", "-n", "ml", "--for=condition=Ready=False", "--timeout=30s")

        server.kubectl("delete", "icache", "bot", "-n", "ml")
    requests = list(server.audit_events(OPERATOR))
    assert {"list", "watch", "patch", "create", "update"} <= {request["verb"] for request in requests}
    refused = [r for r in requests if r["responseStatus"]["code"] == HTTPStatus.FORBIDDEN]
    assert refused == []
