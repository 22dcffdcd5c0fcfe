"""What every KubeClient promises, run on the in-memory one and on a real API server."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from cachewright.errors import KubeConflict, KubeNotFound
from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from cachewright.kube.memory import MemoryKube
from cachewright.kube.protocol import CONFIG_MAPS, DEPLOYMENTS, SECRETS, SERVICES, KubeClient, Manifest
from e2e.cluster.apiserver import ApiServer

pytestmark = pytest.mark.api


@pytest.fixture(params=["memory", "api-server"])
async def kube(request: pytest.FixtureRequest) -> AsyncIterator[KubeClient]:
    """Give each implementation in turn."""
    if request.param == "memory":
        yield MemoryKube()
        return
    server = cast("ApiServer", request.getfixturevalue("api_server"))
    connection = await KubeConnection.open(str(server.kubeconfig))
    yield KubeApi(connection)
    await connection.aclose()


def config_map(namespace: str, name: str = "settings", **data: str) -> Manifest:
    """Return a ConfigMap that holds `data`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "a"}},
        "data": data,
    }


def deployment(namespace: str, **container: Any) -> Manifest:
    """Return a Deployment of one container."""
    pod = {"containers": [{"name": "main", "image": "example.com/a:1", **container}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
        },
    }


async def found(kube: KubeClient, namespace: str, name: str = "settings") -> Manifest:
    """Read a ConfigMap that must exist."""
    read = await kube.get(CONFIG_MAPS, namespace, name)
    assert read is not None
    return read


async def test_what_does_not_exist_reads_as_none(kube: KubeClient, namespace: str) -> None:
    """Reading a missing object, or its metadata, is no error."""
    assert await kube.get(CONFIG_MAPS, namespace, "missing") is None
    assert await kube.get_metadata(SECRETS, namespace, "missing") is None
    assert await kube.list(SERVICES, namespace) == []


async def test_apply_creates_what_is_missing(kube: KubeClient, namespace: str) -> None:
    """Apply makes an object that does not exist, with a uid and a resource version."""
    made = await kube.apply(config_map(namespace, a="1"))
    assert made["metadata"]["uid"]
    read = await found(kube, namespace)
    assert read["data"] == {"a": "1"}
    assert read["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert (read["apiVersion"], read["kind"]) == ("v1", "ConfigMap")


async def test_apply_of_the_same_changes_nothing(kube: KubeClient, namespace: str) -> None:
    """Applying the same text twice leaves the resource version as it is."""
    first = await kube.apply(deployment(namespace))
    second = await kube.apply(deployment(namespace))
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert second["metadata"]["generation"] == 1


async def test_apply_removes_what_we_no_longer_ask_for(kube: KubeClient, namespace: str) -> None:
    """A key, a container's field and a label of ours go away when the next apply leaves them out."""
    await kube.apply(config_map(namespace, a="1", b="2"))
    shorter = config_map(namespace, a="1")
    del shorter["metadata"]["labels"]
    await kube.apply(shorter)
    read = await found(kube, namespace)
    assert read["data"] == {"a": "1"}
    assert "labels" not in read["metadata"]

    await kube.apply(deployment(namespace, env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]))
    changed = await kube.apply(deployment(namespace, env=[{"name": "B", "value": "2"}]))
    container = changed["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "B", "value": "2"}]
    assert changed["metadata"]["generation"] == 2


async def test_apply_takes_back_what_somebody_changed(kube: KubeClient, namespace: str) -> None:
    """A field of ours that was edited returns to our value; what others added stays."""
    made = await kube.apply(config_map(namespace, a="1"))
    await kube.replace(made | {"data": {"a": "edited", "theirs": "kept"}})
    await kube.apply(config_map(namespace, a="1"))
    assert (await found(kube, namespace))["data"] == {"a": "1", "theirs": "kept"}


async def test_status_is_apart_from_the_object(kube: KubeClient, namespace: str) -> None:
    """Apply leaves status alone, apply_status leaves the rest alone, and conditions merge by type."""
    made = await kube.apply(deployment(namespace))
    status = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
    }

    def conditions(*types: str) -> dict[str, Any]:
        return {
            "conditions": [{"type": each, "status": "True", "reason": "R", "message": "m"} for each in types]
        }

    await kube.apply_status(status | {"status": {"replicas": 1, **conditions("Available", "Progressing")}})
    written = await kube.apply_status(status | {"status": conditions("Progressing")})
    assert [each["type"] for each in written["status"]["conditions"]] == ["Progressing"]
    assert written["metadata"]["generation"] == made["metadata"]["generation"]
    again = await kube.apply(deployment(namespace, image="example.com/a:2"))
    assert again["status"]["conditions"] == written["status"]["conditions"]
    assert again["metadata"]["generation"] == 2


async def test_status_of_a_missing_object_is_refused(kube: KubeClient, namespace: str) -> None:
    """Status cannot bring an object into being."""
    status = deployment(namespace) | {"status": {"replicas": 1}}
    del status["spec"]
    with pytest.raises(KubeNotFound, match=f"{namespace}/web"):
        await kube.apply_status(status)
    assert await kube.get(DEPLOYMENTS, namespace, "web") is None


async def test_create_refuses_a_taken_name(kube: KubeClient, namespace: str) -> None:
    """The second create of a name is a conflict that names the object, and changes nothing."""
    await kube.create(config_map(namespace, a="1"))
    with pytest.raises(KubeConflict, match=f"create ConfigMap {namespace}/settings"):
        await kube.create(config_map(namespace, a="2"))
    assert (await found(kube, namespace))["data"] == {"a": "1"}


async def test_replace_compares_resource_versions(kube: KubeClient, namespace: str) -> None:
    """Of two writers that read the same version one wins, and the other is told."""
    read = await kube.create(config_map(namespace, count="0"))
    await kube.replace(read | {"data": {"count": "1"}})
    with pytest.raises(KubeConflict, match=f"{namespace}/settings"):
        await kube.replace(read | {"data": {"count": "2"}})
    assert (await found(kube, namespace))["data"] == {"count": "1"}


async def test_replace_of_a_missing_object_is_refused(kube: KubeClient, namespace: str) -> None:
    """Replace does not bring an object into being."""
    with pytest.raises(KubeNotFound):
        await kube.replace(config_map(namespace))


async def test_metadata_comes_without_content(kube: KubeClient, namespace: str) -> None:
    """The metadata of a Secret has its labels and uid, and nothing of what it holds."""
    secret = config_map(namespace) | {"kind": "Secret", "data": {"password": "aHVudGVyMg=="}}
    made = await kube.create(secret)
    metadata = await kube.get_metadata(SECRETS, namespace, "settings")
    assert metadata is not None
    assert metadata["metadata"]["uid"] == made["metadata"]["uid"]
    assert metadata["metadata"]["labels"] == {"app": "a"}
    assert "aHVudGVyMg==" not in str(metadata)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", ["a", "b", "c"]),
        ("app=one", ["a"]),
        ("app in (one, two)", ["a", "b"]),
        ("app", ["a", "b"]),
        ("!app", ["c"]),
        ("app!=one,app", ["b"]),
    ],
)
async def test_lists_select_by_label(
    kube: KubeClient, namespace: str, selector: str, names: list[str]
) -> None:
    """A list gives the objects of one namespace that match the selector, with their kind."""
    for name, labels in {"a": {"app": "one"}, "b": {"app": "two"}, "c": {}}.items():
        manifest = config_map(namespace, name)
        manifest["metadata"]["labels"] = labels
        await kube.create(manifest)
    listed = await kube.list(CONFIG_MAPS, namespace, selector)
    assert [each["metadata"]["name"] for each in listed] == names
    assert {(each["apiVersion"], each["kind"]) for each in listed} == {("v1", "ConfigMap")}


async def test_a_list_of_every_namespace_holds_this_one(kube: KubeClient, namespace: str) -> None:
    """Without a namespace a list is cluster-wide."""
    await kube.create(config_map(namespace))
    listed = await kube.list(CONFIG_MAPS, label_selector="app=a")
    places = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in listed]
    assert (namespace, "settings") in places


async def test_delete_removes_only_the_object_that_was_meant(kube: KubeClient, namespace: str) -> None:
    """Deleting with another uid leaves the object; with its own it goes; once more is no error."""
    made = await kube.create(config_map(namespace))
    uid = made["metadata"]["uid"]
    await kube.delete(CONFIG_MAPS, namespace, "settings", "00000000-0000-4000-8000-ffffffffffff")
    assert await kube.get(CONFIG_MAPS, namespace, "settings") is not None
    await kube.delete(CONFIG_MAPS, namespace, "settings", uid)
    assert await kube.get(CONFIG_MAPS, namespace, "settings") is None
    await kube.delete(CONFIG_MAPS, namespace, "settings", uid)
