"""The API server of this tier itself: identities, the record of requests, and its two ways of being away."""

import contextlib
import os
import stat
from pathlib import Path

import pytest

from e2e.cluster import clusters
from e2e.cluster.apiserver import ApiServer, api_tools
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import wait_until

pytestmark = pytest.mark.api


def test_a_user_may_do_only_what_a_role_grants(api_server: ApiServer, namespace: str) -> None:
    """RBAC is on, so a test under the operator's identity finds every right it lacks."""
    jane = api_server.user_kubeconfig("jane", ["developers"])
    with pytest.raises(ClusterError, match="Forbidden"):
        api_server.kubectl("get", "pods", "-n", namespace, kubeconfig=jane)
    api_server.kubectl("create", "role", "readers", "--verb=list", "--resource=pods", "-n", namespace)
    grant = ("create", "rolebinding", "readers", "--role=readers", "--group=developers", "-n", namespace)
    api_server.kubectl(*grant)

    def may_list() -> bool:
        with contextlib.suppress(ClusterError):  # the server sees a new grant a moment later
            return api_server.kubectl("get", "pods", "-n", namespace, "-o=name", kubeconfig=jane) == ""
        return False

    wait_until(may_list, "the granted right", timeout_seconds=10)


def test_a_service_account_is_known_by_its_token(api_server: ApiServer, namespace: str) -> None:
    """The operator's own identity can be taken on without a pod; its file is for its owner alone."""
    kubeconfig = api_server.service_account_kubeconfig(namespace, "some-operator", create=True)
    whoami = ("auth", "whoami", "-o=jsonpath={.status.userInfo.username}")
    user = f"system:serviceaccount:{namespace}:some-operator"
    assert api_server.kubectl(*whoami, kubeconfig=kubeconfig) == user
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600


def test_every_request_is_on_record(api_server: ApiServer, namespace: str) -> None:
    """Tests count the operator's writes and compare its verbs with its role, refusals included."""
    someone = api_server.user_kubeconfig(f"someone-in-{namespace}")
    with pytest.raises(ClusterError):
        api_server.kubectl("create", "configmap", "x", "-n", namespace, kubeconfig=someone)
    (event,) = api_server.audit_events(f"someone-in-{namespace}")
    assert (event["verb"], event["objectRef"]["resource"], event["responseStatus"]["code"]) == (
        "create",
        "configmaps",
        403,
    )


def test_a_paused_server_answers_nothing_until_it_is_resumed(api_server: ApiServer) -> None:
    """A black hole is not a refused connection: clients run into their own timeouts."""
    api_server.pause()
    try:
        with pytest.raises(ClusterError, match=r"(?i)timeout|timed out|deadline"):
            api_server.kubectl("get", "namespaces", "--request-timeout=1s")
    finally:
        api_server.resume()
    assert "default" in api_server.kubectl("get", "namespaces", "-o=name")


def test_a_restarted_server_has_its_objects(tmp_path: Path) -> None:
    """Address and data stay; only the connections are gone. A named folder outlives the server."""
    with ApiServer(tmp_path) as server:
        url = server.url
        server.kubectl("create", "namespace", "kept")
        server.restart()
        assert server.url == url
        assert "namespace/kept" in server.kubectl("get", "namespaces", "-o=name")
    assert tmp_path.exists()


def test_given_binaries_are_used(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBEBUILDER_ASSETS spares the build where its three binaries exist, and says so where one does not."""
    assert api_server.url
    for name, path in api_tools().items():
        os.link(path, tmp_path / name)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert set(api_tools().values()) == {tmp_path / name for name in ("etcd", "kube-apiserver", "kubectl")}
    (tmp_path / "etcd").unlink()
    with pytest.raises(ClusterError, match="lacks etcd"):
        api_tools()


def test_a_named_context_is_used_and_never_torn_down(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`up` with a context takes that one cluster as it is; `down --all` forgets it and leaves it serving."""
    kubectl = api_tools()["kubectl"]
    monkeypatch.setattr("e2e.cluster.binaries.client", lambda _name: kubectl)  # the other cache has none
    monkeypatch.setenv("CACHEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    cluster = clusters.up("theirs", "context", "cluster")
    assert cluster.status().healthy
    assert api_server.kubectl("get", "namespace", "default", kubeconfig=cluster.state.kubeconfig)
    with pytest.raises(ClusterError, match="push the images to a registry"):
        cluster.load([tmp_path / "some.tar"])
    assert clusters.down("theirs", everything=True)
    assert clusters.down("theirs", everything=True) is False
    assert api_server.kubectl("get", "--raw=/readyz") == "ok"
