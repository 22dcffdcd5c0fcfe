"""What the chart renders from which values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cachewright.controller.main import add_arguments
from tests.chart.helm import Helm, Manifest, of_kind
from tests.chart.pod_security import violations
from tests.conftest import CompareGolden

CRDS: Final = Path(__file__).parents[2] / "crds"

EVERYTHING: dict[str, Any] = {
    "replicas": 2,
    "images": {
        "pullPolicy": "Always",
        "operator": {"repository": "reg.example/cw", "tag": "1.2", "digest": f"sha256:{'a' * 64}"},
        "gateway": {"repository": "reg.example/cw-gateway", "tag": "3"},
        "valkey": {"repository": "reg.example/valkey", "tag": "8"},
        "redis": {"repository": "reg.example/redis", "digest": f"sha256:{'b' * 64}"},
        "qdrant": {"repository": "reg.example/qdrant", "tag": "1"},
        "postgres": {"repository": "reg.example/pgvector", "tag": "pg18"},
        "cloudNativePG": {"repository": "reg.example/cnpg", "tag": "18.1"},
    },
    "imagePullSecrets": [{"name": "registry"}],
    "crds": {"keep": False},
    "serviceAccount": {"name": "wright", "annotations": {"example.com/a": "b"}},
    "resyncSeconds": 60,
    "logging": {"level": "debug", "format": "console"},
    "metrics": {
        "service": {"annotations": {"prometheus.io/scrape": "true"}},
        "podMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}},
    },
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"team": "sre"}}}]},
    "podAnnotations": {"example.com/c": "d"},
    "podLabels": {"team": "serving", "app.kubernetes.io/component": "impostor"},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    ],
}
VALUE_SETS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": EVERYTHING,
    "namespaced": {"watchNamespaces": ["ml", "search"]},
    "bare": {
        "crds": {"enabled": False},
        "rbac": {"create": False},
        "serviceAccount": {"create": False},
        "metrics": {"service": {"enabled": False}},
    },
}


@pytest.fixture(params=VALUE_SETS)
def values(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Each value set in turn."""
    return VALUE_SETS[str(request.param)]


def operator_pod(manifests: list[Manifest]) -> Manifest:
    """Return the one operator pod's spec."""
    (deployment,) = of_kind(manifests, "Deployment")
    spec: Manifest = deployment["spec"]["template"]["spec"]
    return spec


def operator_flags(manifests: list[Manifest]) -> list[str]:
    """Return what the operator is started with."""
    (container,) = operator_pod(manifests)["containers"]
    return list(container["args"])


def test_the_chart_lints_without_a_warning(helm: Helm, values: dict[str, Any]) -> None:
    """`helm lint --strict` has nothing to say for any value set."""
    assert "[WARNING]" not in helm.lint(values)


@pytest.mark.parametrize("name", ["defaults", "everything", "namespaced"])
def test_the_render_equals_the_golden_file(helm: Helm, golden: CompareGolden, name: str) -> None:
    """What users get changes only when somebody means it to; the CRD has its own check."""
    text = helm.render({**VALUE_SETS[name], "crds": {"enabled": False}})
    golden(f"chart/{name}.yaml", text)


def test_every_object_is_ours_and_named_once(helm: Helm, values: dict[str, Any]) -> None:
    """Each object but the CRD, which outlives releases, carries our labels; none is rendered twice."""
    manifests = helm.manifests(values)
    for manifest in manifests:
        if manifest["kind"] == "CustomResourceDefinition":
            continue
        labels = manifest["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "Helm", manifest["metadata"]
        assert labels["app.kubernetes.io/name"] == "cachewright", manifest["metadata"]
    names = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in manifests]
    assert len(names) == len(set(names))


def test_every_pod_keeps_the_restricted_profile(helm: Helm, values: dict[str, Any]) -> None:
    """Nothing the chart runs needs root, capabilities or a writable root."""
    assert violations(operator_pod(helm.manifests(values))) == []


def test_selectors_match_the_operators_pods(helm: Helm) -> None:
    """Whatever labels are added: Deployment, Service, budget, policy and monitor all find the pods."""
    manifests = helm.manifests(EVERYTHING)
    (deployment,) = of_kind(manifests, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [deployment["spec"]["selector"]["matchLabels"]]
    selectors += [service["spec"]["selector"] for service in of_kind(manifests, "Service")]
    selectors += [
        budget["spec"]["selector"]["matchLabels"] for budget in of_kind(manifests, "PodDisruptionBudget")
    ]
    selectors += [
        policy["spec"]["podSelector"]["matchLabels"] for policy in of_kind(manifests, "NetworkPolicy")
    ]
    selectors.append(of_kind(manifests, "PodMonitor")[0]["spec"]["selector"]["matchLabels"])
    assert len(selectors) == 5
    for selector in selectors:
        assert selector.items() <= labels.items()
    assert labels["team"] == "serving"


def test_the_operator_is_told_what_the_values_say(helm: Helm) -> None:
    """Images, intervals, logging and election arrive as flags."""
    flags = operator_flags(helm.manifests(EVERYTHING, release="prod", namespace="infra"))
    assert flags == [
        "operator",
        "--leader-elect",
        "--lease-name=prod-cachewright",
        "--lease-namespace=infra",
        "--gateway-image=reg.example/cw-gateway:3",
        "--valkey-image=reg.example/valkey:8",
        f"--redis-image=reg.example/redis@sha256:{'b' * 64}",
        "--qdrant-image=reg.example/qdrant:1",
        "--postgres-image=reg.example/pgvector:pg18",
        "--cloudnative-pg-image=reg.example/cnpg:18.1",
        "--image-pull-policy=Always",
        "--resync-seconds=60",
        "--port=8080",
        "--log-format=console",
        "--log-level=debug",
    ]


@pytest.mark.parametrize("name", VALUE_SETS)
def test_the_operator_understands_its_flags(helm: Helm, name: str) -> None:
    """The command line that the chart renders is one that `cachewright operator` accepts."""
    flags = operator_flags(helm.manifests(VALUE_SETS[name]))
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    options = parser.parse_args(flags[1:])
    assert options.lease_namespace == "cachewright-system"
    assert options.leader_elect


def test_the_gateway_runs_the_operators_image_unless_told_otherwise(helm: Helm) -> None:
    """One image to build and pull is the default, also where it is named by digest."""
    digest = f"sha256:{'c' * 64}"
    manifests = helm.manifests({"images": {"operator": {"repository": "reg.example/cw", "digest": digest}}})
    (container,) = operator_pod(manifests)["containers"]
    assert container["image"] == f"reg.example/cw@{digest}"
    assert f"--gateway-image=reg.example/cw@{digest}" in container["args"]


def test_watched_namespaces_are_flags(helm: Helm) -> None:
    """Each watched namespace is named to the operator; without any it watches all."""
    flags = operator_flags(helm.manifests({"watchNamespaces": ["ml", "search"]}))
    assert [flag for flag in flags if flag.startswith("--namespace=")] == [
        "--namespace=ml",
        "--namespace=search",
    ]
    assert not [flag for flag in operator_flags(helm.manifests()) if flag.startswith("--namespace=")]


def test_a_second_replica_brings_a_disruption_budget(helm: Helm) -> None:
    """A budget for a single pod would only block node drains, so there is none."""
    assert of_kind(helm.manifests(), "PodDisruptionBudget") == []
    (budget,) = of_kind(helm.manifests({"replicas": 2}), "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1


def test_probes_and_metrics_share_one_port(helm: Helm) -> None:
    """Every probe, the Service and the monitor name the port that the container opens."""
    manifests = helm.manifests(EVERYTHING)
    (container,) = operator_pod(manifests)["containers"]
    (port,) = container["ports"]
    for probe, path in [
        ("startupProbe", "/healthz"),
        ("livenessProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
    ]:
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
    (service,) = of_kind(manifests, "Service")
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    monitor = of_kind(manifests, "PodMonitor")[0]
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == port["name"]


def test_gateways_of_watched_namespaces_are_scraped(helm: Helm) -> None:
    """The gateways' monitor looks where the operator works: everywhere, or in the watched namespaces."""
    monitor = {"metrics": {"podMonitor": {"enabled": True}}}
    everywhere = of_kind(helm.manifests(monitor), "PodMonitor")[1]
    assert everywhere["spec"]["namespaceSelector"] == {"any": True}
    watched = of_kind(helm.manifests({**monitor, "watchNamespaces": ["ml"]}), "PodMonitor")[1]
    assert watched["spec"]["namespaceSelector"] == {"matchNames": ["ml"]}


def test_the_crd_can_be_left_out_or_be_let_go(helm: Helm) -> None:
    """`crds.enabled` installs the CRD, `crds.keep` makes uninstalling leave it."""
    (kept,) = of_kind(helm.manifests(), "CustomResourceDefinition")
    assert kept["metadata"]["name"] == "inferencecaches.cachewright.dev"
    assert kept["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    (let_go,) = of_kind(helm.manifests({"crds": {"keep": False}}), "CustomResourceDefinition")
    assert "helm.sh/resource-policy" not in let_go["metadata"].get("annotations", {})
    assert of_kind(helm.manifests({"crds": {"enabled": False}}), "CustomResourceDefinition") == []


def test_the_crd_in_the_chart_is_the_crd_in_the_repository(helm: Helm) -> None:
    """`kubectl apply -f crds/` and the chart install the same schema."""
    (rendered,) = of_kind(helm.manifests(), "CustomResourceDefinition")
    plain = yaml.safe_load((CRDS / "cachewright.dev_inferencecaches.yaml").read_text())
    assert rendered["spec"] == plain["spec"]


@pytest.mark.parametrize("length", [1, 53])
def test_names_fit_whatever_the_release_is_called(helm: Helm, length: int) -> None:
    """The longest release name that Helm allows gives names within a DNS label."""
    for manifest in helm.manifests(release="r" * length):
        if manifest["kind"] != "CustomResourceDefinition":
            assert len(manifest["metadata"]["name"]) <= 90
        if manifest["kind"] in {"Service", "Deployment", "Lease"}:
            assert len(manifest["metadata"]["name"]) <= 63
