"""Turns one verb on one path into the JSON that came back: TLS, authentication, time limits, errors.

`kube.client` builds the paths; `controller` opens the one connection of the process and hands its
credentials to kopf. It uses ApiClient of `kubernetes.aio` with raw JSON: the package's typed models would
cost some 30 MB and validate replies that we read only in part.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import orjson
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import load_incluster_config
from kubernetes.aio.config.kube_config import load_kube_config

from cachewright.errors import KubeError, KubeUnavailable
from cachewright.kube.failures import TERMINATING, failure

CONNECT_TIMEOUT_SECONDS: Final = 5.0
REQUEST_TIMEOUT_SECONDS: Final = 15.0
"""Bounds one request with its answer, so that a silent network never holds a pass for longer."""
WATCH_SERVER_TIMEOUT_SECONDS: Final = 240
"""The server ends each watch after this time, so that it is renewed now and then."""
WATCH_SILENCE_SECONDS: Final = 70.0
"""A watch with bookmarks hears something each minute; longer silence means a dead connection."""

METHODS: Final[Mapping[str, str]] = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}
"""API verb, as RBAC and our metric name it, to HTTP method."""
WRITES: Final = frozenset({"create", "update", "patch", "delete"})

RequestObserver = Callable[[str, str, str], None]
"""Called once a request with verb, kind and HTTP status, or one of UNANSWERED."""
UNANSWERED: Final = frozenset({"timeout", "error", "cancelled"})
"""In place of a status: no answer in time, no connection, or the caller would not wait so long."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the API verb, the kind and object it is about, and what goes over the wire."""

    verb: str
    kind: str
    path: str
    target: str
    """namespace/name, for messages."""
    query: Mapping[str, str | int] | None = None
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def description(self) -> str:
        """What failed, for a message."""
        return f"{self.verb} {self.kind} {self.target}".rstrip()


WriteGate = Callable[[Request], bool]
"""Says whether this process may send a write now; without the Lease it may not."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to reach the API server, for another client of the same process."""

    server: str
    ca_path: str | None
    certificate_path: str | None
    key_path: str | None
    authorization: tuple[str, str] | None
    """Scheme and token of the Authorization header."""
    verify_tls: bool
    proxy: str | None

    def __repr__(self) -> str:
        return f"Credentials(server={self.server!r})"


class KubeConnection:
    """One pooled connection to one API server."""

    def __init__(self, configuration: Configuration, reload: _Reload) -> None:
        self._configuration = configuration
        self._reload = reload
        self._api = ApiClient(configuration)
        self._api.user_agent = "cachewright"
        self.on_request: RequestObserver = lambda _verb, _kind, _code: None
        self.may_write: WriteGate = lambda _request: True

    @classmethod
    async def open(cls, kubeconfig: str | None = None, context: str | None = None) -> KubeConnection:
        """Connect by the named kubeconfig, else the pod's ServiceAccount, else the default kubeconfig.

        Raises KubeError where none of them can be used.
        """
        configuration = Configuration()
        reload = _Reload(configuration, kubeconfig, context)
        await reload()
        return cls(configuration, reload)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._api.close()  # type: ignore[no-untyped-call]

    async def credentials(self) -> Credentials:
        """Return fresh credentials of this connection."""
        await self._reload()
        value = await self._configuration.get_api_key_with_prefix("BearerToken")
        scheme, _, token = (value or "").partition(" ")
        return Credentials(
            server=self._configuration.host,
            ca_path=self._configuration.ssl_ca_cert,
            certificate_path=self._configuration.cert_file,
            key_path=self._configuration.key_file,
            authorization=(scheme, token) if token else None,
            verify_tls=bool(self._configuration.verify_ssl),
            proxy=self._configuration.proxy,
        )

    async def send(self, request: Request) -> dict[str, Any]:
        """Send one request and return the parsed answer.

        Raises KubeError's subclasses; credentials that have expired are read anew and tried once more.
        """
        if request.verb in WRITES and not self.may_write(request):
            raise KubeUnavailable(f"{request.description}: this replica does not hold the lease")
        try:
            status, raw = await self._exchange(request)
            if status == HTTPStatus.UNAUTHORIZED:
                await self._reload()
                status, raw = await self._exchange(request)
        except asyncio.CancelledError:
            self.on_request(request.verb, request.kind, "cancelled")
            raise
        except TimeoutError as error:
            self.on_request(request.verb, request.kind, "timeout")
            raise KubeUnavailable(f"{request.description}: no answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            self.on_request(request.verb, request.kind, "error")
            raise KubeUnavailable(f"{request.description}: {type(error).__name__}: {error}") from error
        return _parsed(request, status, raw)

    async def _exchange(self, request: Request) -> tuple[int, bytes]:
        limits = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SECONDS, sock_connect=CONNECT_TIMEOUT_SECONDS)
        response = await self._start(request, limits)
        async with response:
            raw = await response.read()
        # A namespace that is going refuses with the status of a lacking right, which alerts look for.
        terminating = response.status == HTTPStatus.FORBIDDEN and TERMINATING.encode() in raw
        self.on_request(request.verb, request.kind, "terminating" if terminating else str(response.status))
        return response.status, raw

    async def stream(self, request: Request) -> AsyncGenerator[dict[str, Any]]:
        """Yield the events of one watch until the server ends it or falls silent.

        Raises KubeError's subclasses; the caller starts the next watch.
        """
        limits = aiohttp.ClientTimeout(
            total=WATCH_SERVER_TIMEOUT_SECONDS + 30,
            sock_connect=CONNECT_TIMEOUT_SECONDS,
            sock_read=WATCH_SILENCE_SECONDS,
        )
        try:
            response = await self._start(request, limits)
            async with response:
                self.on_request(request.verb, request.kind, str(response.status))
                if response.status >= HTTPStatus.BAD_REQUEST:
                    _parsed(request, response.status, await response.read())
                async for line in response.content:
                    yield orjson.loads(line)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise KubeUnavailable(f"{request.description}: {type(error).__name__}: {error}") from error

    async def _start(self, request: Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        parameters = await self._api.param_serialize(
            METHODS[request.verb],
            request.path,
            query_params=list((request.query or {}).items()),
            header_params={"Accept": request.accept, "Content-Type": request.content_type},
            body=request.body,
            auth_settings=["BearerToken"],
        )
        answer = await self._api.call_api(*parameters, _request_timeout=limits)
        response: aiohttp.ClientResponse = answer.response
        return response


class _Reload:
    """Reads the credentials anew: kubeconfig plugins hand out tokens that expire."""

    def __init__(self, configuration: Configuration, kubeconfig: str | None, context: str | None) -> None:
        self._configuration = configuration
        self._kubeconfig = kubeconfig
        self._context = context

    async def __call__(self) -> None:
        in_cluster = self._kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ
        try:
            if in_cluster:
                load_incluster_config(self._configuration)  # type: ignore[no-untyped-call]
            else:
                await load_kube_config(  # type: ignore[no-untyped-call]
                    self._kubeconfig, self._context, self._configuration, persist_config=False
                )
        except (ConfigException, OSError, AttributeError) as error:
            # AttributeError: what the loader raises where the file does not exist.
            where = "in-cluster configuration" if in_cluster else self._kubeconfig or "default kubeconfig"
            raise KubeError(f"cannot read the {where}: {error}") from error


def _parsed(request: Request, status: int, raw: bytes) -> dict[str, Any]:
    body: dict[str, Any]
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if status < HTTPStatus.BAD_REQUEST:
            raise KubeUnavailable(f"{request.description}: the answer is not JSON") from error
        body = {}
    if status >= HTTPStatus.BAD_REQUEST:
        raise failure(status, body, request.description, request.kind)
    return body
