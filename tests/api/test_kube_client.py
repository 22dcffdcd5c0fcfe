"""The real client on a real API server: what the contract shared with the in-memory one does not cover."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from cachewright.errors import KubeError, KubeForbidden, KubeInvalid, KubeNotFound, KubeUnavailable
from cachewright.kube.client import KubeApi
from cachewright.kube.connection import REQUEST_TIMEOUT_SECONDS, KubeConnection
from cachewright.kube.protocol import CONFIG_MAPS, DEPLOYMENTS, SECRETS, Manifest, ResourceKind
from e2e.cluster.apiserver import ApiServer

pytestmark = pytest.mark.api

SECRET_TEXT = "hunter2-hunter2"


class Client:
    """A client that keeps what it was told about its own requests."""

    def __init__(self, connection: KubeConnection, page_size: int) -> None:
        self.connection = connection
        self.api = KubeApi(connection, page_size)
        self.requests: Counter[tuple[str, str, str]] = Counter()
        connection.on_request = self._count

    def _count(self, verb: str, kind: str, code: str) -> None:
        self.requests[verb, kind, code] += 1


async def connect(kubeconfig: Path) -> Client:
    """Open a client with small pages."""
    return Client(await KubeConnection.open(str(kubeconfig)), page_size=3)


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    """Be the administrator."""
    made = await connect(api_server.kubeconfig)
    yield made
    await made.connection.aclose()


@pytest.fixture
async def stranger(api_server: ApiServer) -> AsyncIterator[Client]:
    """Be somebody without any rights."""
    made = await connect(api_server.user_kubeconfig("stranger"))
    yield made
    await made.connection.aclose()


def manifest(kind: str, namespace: str, name: str = "settings", **fields: Any) -> Manifest:
    """Return an object of a core kind."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, **fields}


async def test_long_lists_come_in_pages(client: Client, namespace: str) -> None:
    """Ten objects in pages of three are all there, once, for four requests."""
    for number in range(10):
        await client.api.create(manifest("ConfigMap", namespace, f"c-{number}", data={"a": "b"}))
    listed = await client.api.list(CONFIG_MAPS, namespace)
    assert [each["metadata"]["name"] for each in listed] == [f"c-{number}" for number in range(10)]
    assert client.requests["list", "ConfigMap", "200"] == 4
    metadata = await client.api.list_metadata(CONFIG_MAPS, namespace)
    assert [each["metadata"]["name"] for each in metadata] == [f"c-{number}" for number in range(10)]
    assert not any("data" in each for each in metadata)
    assert await client.api.list_metadata(SECRETS, namespace) == []


async def test_an_unknown_field_is_refused_by_name(client: Client, namespace: str) -> None:
    """A typing error in a manifest is an error that names the field and the object, not a silent drop."""
    wrong = manifest("ConfigMap", namespace, dataa={"a": "b"})
    for write in (client.api.apply, client.api.create):
        with pytest.raises(KubeInvalid, match=rf"ConfigMap {namespace}/settings.*dataa"):
            await write(wrong)


async def test_a_kind_that_we_do_not_write_is_refused(client: Client, namespace: str) -> None:
    """Only kinds in the permission table can be written at all."""
    with pytest.raises(KubeInvalid, match="v1 ServiceAccount"):
        await client.api.apply(manifest("ServiceAccount", namespace))


async def test_an_unknown_kind_cannot_be_listed(client: Client, namespace: str) -> None:
    """A definition that is not installed is told apart from an empty list."""
    with pytest.raises(KubeNotFound, match="list Widget"):
        await client.api.list(ResourceKind("example.com/v1", "Widget", "widgets"), namespace)


async def test_a_missing_right_is_said_and_counted(stranger: Client, namespace: str) -> None:
    """Each refused verb raises KubeForbidden with verb, kind and name, and counts under code 403."""
    for attempt in (
        stranger.api.get(SECRETS, namespace, "s"),
        stranger.api.list(SECRETS, namespace),
        stranger.api.apply(manifest("Secret", namespace, data={})),
        stranger.api.delete(SECRETS, namespace, "s", "some-uid"),
    ):
        with pytest.raises(KubeForbidden, match=rf"Secret {namespace}"):
            await attempt
    assert {verb for verb, kind, code in stranger.requests if (kind, code) == ("Secret", "403")} == {
        "get",
        "list",
        "patch",
        "delete",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"data": {"password": SECRET_TEXT}},
        {"data": {"user/name": "eA==", "password": "aHVudGVyMi1odW50ZXIy"}},
        {"stringData": [SECRET_TEXT]},
        {"type": "kubernetes.io/tls", "data": {"tls.crt": "eA=="}, SECRET_TEXT: SECRET_TEXT},
    ],
)
async def test_an_error_about_a_secret_does_not_quote_it(
    client: Client, namespace: str, fields: dict[str, Any]
) -> None:
    """Whatever is wrong with a Secret, the error names it and holds nothing of its content."""
    for write in (client.api.apply, client.api.create):
        with pytest.raises(KubeError, match=rf"Secret {namespace}/settings") as caught:
            await write(manifest("Secret", namespace, **fields))
        assert SECRET_TEXT not in str(caught.value)
        assert "aHVudGVyMi1odW50ZXIy" not in str(caught.value)


async def test_a_silent_server_is_given_up_in_time(api_server: ApiServer, namespace: str) -> None:
    """A frozen API server costs a request its time limit and not more."""
    client = await connect(api_server.kubeconfig)
    await client.api.get(CONFIG_MAPS, namespace, "warm-up")
    api_server.pause()
    try:
        started = time.monotonic()
        with pytest.raises(KubeUnavailable, match=f"get ConfigMap {namespace}/settings: no answer in time"):
            await client.api.get(CONFIG_MAPS, namespace, "settings")
        assert time.monotonic() - started < REQUEST_TIMEOUT_SECONDS + 2
    finally:
        api_server.resume()
    assert client.requests["get", "ConfigMap", "timeout"] == 1
    assert await client.api.get(CONFIG_MAPS, namespace, "settings") is None
    await client.connection.aclose()


async def test_a_watch_tells_what_is_there_and_what_changes(client: Client, namespace: str) -> None:
    """First the objects that match, as added, then changes and the removal, and nothing about others."""
    await client.api.create(manifest("ConfigMap", namespace, "other"))
    seen: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def follow() -> None:
        watching = client.api.watch(CONFIG_MAPS, namespace, field_selector="metadata.name=settings")
        async with aclosing(watching):
            async for kind, found in watching:
                seen.put_nowait((kind, found["metadata"]["name"]))

    made = await client.api.create(manifest("ConfigMap", namespace))
    following = asyncio.create_task(follow())
    try:
        async with asyncio.timeout(20):
            assert await seen.get() == ("ADDED", "settings")
            await client.api.apply(manifest("ConfigMap", namespace, data={"a": "b"}))
            await client.api.delete(CONFIG_MAPS, namespace, "settings", made["metadata"]["uid"])
            assert await seen.get() == ("MODIFIED", "settings")
            assert await seen.get() == ("DELETED", "settings")
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert seen.empty()


async def test_a_token_is_as_good_as_a_certificate(api_server: ApiServer, namespace: str) -> None:
    """A ServiceAccount's token authenticates, and is what kopf is given too."""
    client = await connect(api_server.service_account_kubeconfig(namespace, "robot", create=True))
    with pytest.raises(KubeForbidden, match=f"system:serviceaccount:{namespace}:robot"):
        await client.api.list(DEPLOYMENTS, namespace)
    credentials = await client.connection.credentials()
    assert credentials.server == api_server.url
    assert credentials.authorization is not None
    scheme, token = credentials.authorization
    assert scheme.lower() == "bearer"
    assert token not in repr(credentials)
    await client.connection.aclose()


@pytest.mark.parametrize("context", ["elsewhere", None])
async def test_a_cluster_that_is_not_configured_is_said_so(
    api_server: ApiServer, tmp_path: Path, context: str | None
) -> None:
    """A context or a file that does not exist is an error that names it."""
    kubeconfig = api_server.kubeconfig if context else tmp_path / "missing"
    with pytest.raises(KubeError, match=context or "missing"):
        await KubeConnection.open(str(kubeconfig), context)


async def test_a_replica_without_the_lease_sends_no_write(client: Client, namespace: str) -> None:
    """With the gate closed reads go on, and no write leaves the process."""
    client.connection.may_write = lambda _request: False
    assert await client.api.get(CONFIG_MAPS, namespace, "settings") is None
    with pytest.raises(KubeUnavailable, match="does not hold the lease"):
        await client.api.apply(manifest("ConfigMap", namespace))
    assert {verb for verb, _, _ in client.requests} == {"get"}
