"""The client against a stand-in HTTP server that gives the answers a healthy API server rarely gives."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cachewright.errors import KubeForbidden, KubeInvalid, KubeUnavailable
from cachewright.kube.client import KubeApi
from cachewright.kube.connection import KubeConnection
from cachewright.kube.protocol import CONFIG_MAPS


class StandIn:
    """Gives scripted answers, one a request, the last one for ever; keeps the requests."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.answers: list[tuple[int, Any]] = []
        self.requests: list[web.Request] = []
        self.server = ""

    async def handle(self, request: web.Request) -> web.Response:
        """Give the next answer."""
        self.requests.append(request)
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, content_type="application/json")

    def write_kubeconfig(self, server: str, token: str) -> None:
        """Say where it is and how to log in."""
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": {"server": server}}],
                    "users": [{"name": "u", "user": {"token": token}}],
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "c",
                }
            )
        )


@pytest.fixture
async def stand_in(tmp_path: Path) -> AsyncIterator[StandIn]:
    """Serve on loopback."""
    made = StandIn(tmp_path / "kubeconfig")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    made.write_kubeconfig(made.server, "first-token")
    yield made
    await runner.cleanup()


@pytest.fixture
async def connection(stand_in: StandIn) -> AsyncIterator[KubeConnection]:
    """Connect to the stand-in."""
    made = await KubeConnection.open(str(stand_in.kubeconfig))
    yield made
    await made.aclose()


def page(*names: str, token: str = "") -> dict[str, Any]:
    """Return one page of a list."""
    items = [{"metadata": {"name": name, "namespace": "ns"}} for name in names]
    return {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": token}, "items": items}


def status(code: int, reason: str, message: str = "as told") -> tuple[int, dict[str, Any]]:
    """Return a refusal as the API server words it."""
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


async def test_a_list_whose_token_expired_starts_again(stand_in: StandIn, connection: KubeConnection) -> None:
    """410 between two pages throws the first page away and begins anew: no object twice, none missing."""
    stand_in.answers = [
        (200, page("a", "b", token="next")),
        status(410, "Expired"),
        (200, page("a", "c", token="next")),
        (200, page("d")),
    ]
    listed = await KubeApi(connection).list(CONFIG_MAPS, "ns")
    assert [each["metadata"]["name"] for each in listed] == ["a", "c", "d"]
    assert [request.query.get("continue") for request in stand_in.requests] == [None, "next", None, "next"]


async def test_a_list_that_keeps_expiring_is_given_up(stand_in: StandIn, connection: KubeConnection) -> None:
    """After a few restarts the list is an error like any other unavailability."""
    stand_in.answers = [status(410, "Expired")]
    with pytest.raises(KubeUnavailable, match=r"list ConfigMap ns: Expired"):
        await KubeApi(connection).list(CONFIG_MAPS, "ns")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(429, "TooManyRequests"), KubeUnavailable),
        (status(500, "InternalError"), KubeUnavailable),
        (status(503, "ServiceUnavailable"), KubeUnavailable),
        ((502, "<html>bad gateway</html>"), KubeUnavailable),
        ((599, ""), KubeUnavailable),
        ((200, "<html>hello</html>"), KubeUnavailable),
        (status(400, "BadRequest"), KubeInvalid),
        (status(500, "", "failed to create typed patch object (a): .x: field not declared"), KubeInvalid),
        (status(413, "RequestEntityTooLarge"), KubeInvalid),
    ],
)
async def test_every_answer_becomes_one_of_our_errors(
    stand_in: StandIn, connection: KubeConnection, answer: tuple[int, Any], error: type[Exception]
) -> None:
    """Overload, trouble and proxies that answer in HTML are worth a retry; a refusal is not."""
    stand_in.answers = [answer]
    with pytest.raises(error, match="get ConfigMap ns/a"):
        await KubeApi(connection).get(CONFIG_MAPS, "ns", "a")


async def test_a_closed_port_is_worth_a_retry(stand_in: StandIn) -> None:
    """A refused connection is counted as an error and is KubeUnavailable."""
    stand_in.write_kubeconfig("http://127.0.0.1:9", "token")
    connection = await KubeConnection.open(str(stand_in.kubeconfig))
    codes: list[str] = []
    connection.on_request = lambda _verb, _kind, code: codes.append(code)
    with pytest.raises(KubeUnavailable, match="get ConfigMap ns/a"):
        await KubeApi(connection).get(CONFIG_MAPS, "ns", "a")
    assert codes == ["error"]
    await connection.aclose()


async def test_a_renewed_token_is_taken_up(stand_in: StandIn, connection: KubeConnection) -> None:
    """After 401 the credentials are read anew and the request is sent once more."""
    stand_in.answers = [status(401, "Unauthorized"), (200, {"metadata": {"name": "a"}})]
    stand_in.write_kubeconfig(stand_in.server, "second-token")
    assert await KubeApi(connection).get(CONFIG_MAPS, "ns", "a") == {"metadata": {"name": "a"}}
    tokens = [request.headers["Authorization"] for request in stand_in.requests]
    assert tokens == ["Bearer first-token", "Bearer second-token"]


async def test_credentials_that_stay_refused_are_an_error(
    stand_in: StandIn, connection: KubeConnection
) -> None:
    """A second 401 is not retried for ever."""
    stand_in.answers = [status(401, "Unauthorized")]
    with pytest.raises(KubeForbidden, match="Unauthorized"):
        await KubeApi(connection).get(CONFIG_MAPS, "ns", "a")
    assert len(stand_in.requests) == 2


async def test_an_expired_watch_ends_quietly(stand_in: StandIn, connection: KubeConnection) -> None:
    """410 inside a watch ends it like a server's time limit; any other error in it is raised."""
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    stand_in.answers = [(200, expired)]
    assert [each async for each in KubeApi(connection).watch(CONFIG_MAPS, "ns")] == []
    broken = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd is gone"}}
    stand_in.answers = [(200, broken)]
    with pytest.raises(KubeUnavailable, match="etcd is gone"):
        [each async for each in KubeApi(connection).watch(CONFIG_MAPS, "ns")]
