"""The test cluster itself: what a pod can rely on in it, and that nothing of it stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import clusters, images
from e2e.cluster.errors import ClusterError
from e2e.cluster.providers import Cluster
from e2e.kubectl import Kubectl, wait_for

pytestmark = pytest.mark.e2e

NAMESPACE = "cluster-test"
PODS = """
apiVersion: v1
kind: Pod
metadata: {{name: server, labels: {{app: server}}}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsUser: 65532, runAsNonRoot: true, fsGroup: 65532}}
  containers:
  - name: main
    image: {image}
    imagePullPolicy: Never
    command: [sh, -c, "echo written > /data/file && exec python3 -m http.server --directory /data 8000"]
    readinessProbe: {{httpGet: {{path: /file, port: 8000}}, periodSeconds: 1}}
    volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 16Mi}}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: server}}
spec: {{selector: {{app: server}}, ports: [{{port: 80, targetPort: 8000}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: client}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {{name: main, image: {image}, imagePullPolicy: Never, command: [sleep, "3600"]}}
"""
POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: server}
spec:
  podSelector: {matchLabels: {app: server}}
  ingress: [{from: [{podSelector: {matchLabels: {may: enter}}}]}]
"""
FETCH = (
    "import urllib.request as r; print(r.urlopen('http://server/file', timeout=2).read().decode(), end='')"
)


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """Start two pods, a service and a volume in a namespace of the shared test cluster."""
    cluster = clusters.up()
    image = images.ensure(["python"])["python"]
    cluster.load([image.archive])
    kubectl = Kubectl(cluster.state.kubeconfig).within(NAMESPACE)
    kubectl.run("create", "namespace", NAMESPACE)
    try:
        kubectl.apply(PODS.format(image=image.reference))
        kubectl.run("wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s")
        yield kubectl
    finally:
        kubectl.run("delete", "namespace", NAMESPACE)


def fetch(kubectl: Kubectl) -> str:
    """Ask the server for its file from within the client pod; empty when it cannot be reached."""
    try:
        return kubectl.run("exec", "client", "--", "python3", "-c", FETCH)
    except ClusterError:
        return ""


def fetch_until(kubectl: Kubectl, wanted: str) -> str:
    """Repeat `fetch` until it gives what is wanted: rules of services and policies arrive a moment later."""
    deadline = time.monotonic() + 20
    while (answer := fetch(kubectl)) != wanted and time.monotonic() < deadline:
        pass
    return answer


def test_a_pod_reaches_another_by_its_service_s_name(kubectl: Kubectl) -> None:
    """DNS, services and a volume that a non-root pod can write: all that a store needs."""
    assert fetch_until(kubectl, "written\n") == "written\n"


def test_a_policy_keeps_out_whom_it_does_not_name(kubectl: Kubectl) -> None:
    """Network policies are enforced, or the store's policy would be tested against nothing."""
    kubectl.apply(POLICY)
    assert fetch_until(kubectl, "") == ""
    kubectl.run("label", "pod", "client", "may=enter")
    assert fetch_until(kubectl, "written\n") == "written\n"
    kubectl.run("delete", "networkpolicy", "server")
    kubectl.run("label", "pod", "client", "may-")


def test_a_pod_s_log_can_be_read(kubectl: Kubectl) -> None:
    """The API server reaches the kubelet, as every diagnosis needs."""
    assert '"GET /file HTTP/1.1" 200' in kubectl.run("logs", "server")


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """Make a cluster that may be harmed, with a running pod in it."""
    cluster = clusters.up("harmed")
    try:
        image = images.ensure(["python"])["python"]
        cluster.load([image.archive])
        run = ("run", "some", f"--image={image.reference}", "--image-pull-policy=Never")
        kubectl = Kubectl(cluster.state.kubeconfig)
        kubectl.run(*run, "--", "sleep", "3600")
        kubectl.run("wait", "pod/some", "--for=condition=Ready", "--timeout=60s")
        yield cluster
    finally:
        clusters.down("harmed", everything=True)


def test_a_cluster_that_was_killed_is_made_again(own_cluster: Cluster) -> None:
    """What is left of a cluster that died does not stand in the way of the next."""
    kill(own_cluster)
    assert not own_cluster.status().healthy
    assert clusters.up("harmed").status().healthy


def test_nothing_of_a_cluster_stays_behind(own_cluster: Cluster) -> None:
    """`down --all` removes processes, links, groups, mounts, containers and files."""
    assert traces(own_cluster), "a cluster that runs must be seen by what looks for its traces"
    clusters.down("harmed", everything=True)
    assert traces(own_cluster) == []
    assert not own_cluster.state.folder.exists()


def kill(cluster: Cluster) -> None:
    """End the cluster as a crash of the machine's would, behind the back of its record."""
    if cluster.state.provider == "kind":
        subprocess.run(["docker", "kill", f"cachewright-{cluster.state.name}-control-plane"], check=True)
        return
    (first,) = [
        pid
        for pid, line in command_lines()
        if line.startswith("unshare ") and line.rstrip().endswith(f" {cluster.state.folder}")
    ]
    os.kill(first, signal.SIGKILL)
    wait_for("the end of the node", lambda: not cluster.status().healthy, timeout_seconds=20)


def traces(cluster: Cluster) -> list[str]:
    """List everything on this machine that carries the cluster's folder or name."""
    marks = (str(cluster.state.folder), f"cachewright-{cluster.state.name}")
    links = subprocess.run(
        ["ip", "-details", "link", "show"], capture_output=True, text=True, check=True
    ).stdout
    groups = "\n".join(str(path) for path in Path("/sys/fs/cgroup").glob("**/cachewright-*"))
    mounts = Path("/proc/self/mounts").read_text()
    containers = ""
    if shutil.which("docker"):
        listing = ["docker", "ps", "--all", "--format={{.Names}}"]
        containers = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
    processes = (line for _, line in command_lines())
    lines = "\n".join([links, groups, mounts, containers, *processes]).splitlines()
    return [line for line in lines if any(mark in line for mark in marks)]


def command_lines() -> Iterator[tuple[int, str]]:
    """Yield the id and command line of every process."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield int(folder.name), words.replace("\0", " ")
