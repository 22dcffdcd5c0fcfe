"""A gateway with everything around it: mounts in a folder, a real store, an upstream, and a client.

Used by every test in this folder; the gateway's process runs in the test's own loop.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
from redis.asyncio import Redis
from yarl import URL

from cachewright.gateway.process import GatewayProcess, GatewaySettings
from cachewright.keys.digest import key_id_of
from cachewright.keys.record import Record
from cachewright.policy.document import (
    ExactPolicy,
    GatewayPolicy,
    RoutePolicy,
    TenancyPolicy,
    UpstreamPolicy,
)
from e2e.engine import Engine
from e2e.engine.http11 import Request, Response, serve_connection
from tests.support.redis_servers import RedisServer
from tests.support.waiting import PATIENCE_SECONDS

CHAT = "/v1/chat/completions"
MODEL = "llama"
QUESTION: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Why is the sky blue?"}],
    "temperature": 0,
}
TENANT = {"X-Tenant-Id": "acme"}
ADMIN_TOKEN = "let-me-in"
UNHURRIED_SECONDS = PATIENCE_SECONDS / 2
"""Budgets of tests that are not about budgets: on a busy machine a store that is slow is not in trouble."""


@dataclass
class Answered:
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def cache(self) -> str:
        """The Cache-Status header, but for the entry's id."""
        return self.headers.get("Cache-Status", "").partition('; key="')[0]

    @property
    def entry_id(self) -> str:
        """The entry's id in Cache-Status; empty where it has none."""
        return self.headers.get("Cache-Status", "").partition('; key="')[2].removesuffix('"')

    @property
    def is_hit(self) -> bool:
        """True for an answer from the cache."""
        return self.cache.startswith("cachewright; hit")

    @property
    def reason(self) -> str:
        """Why the request was not looked up."""
        return self.cache.partition("detail=")[2]

    def json(self) -> Any:
        """Parse the body."""
        return json.loads(self.body)

    @property
    def error_code(self) -> str:
        """The code of an error in the form of OpenAI's API."""
        error = self.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return str(error["code"])


class ScriptedUpstream:
    """An upstream that answers each request by a function of the test's."""

    def __init__(self, handler: Callable[[Request], Awaitable[Response]]) -> None:
        self._handler = handler
        self.requests: list[Request] = []
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def url(self) -> str:
        """Its address without a path."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def open_connections(self) -> int:
        """Connections that nobody has closed yet."""
        return len(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve_connection(self._handle, reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle(self, request: Request) -> Response:
        self.requests.append(request)
        return await self._handler(request)


@dataclass
class Gateway:
    """One gateway, its folder of mounts, and a client of it."""

    folder: Path
    redis: RedisServer
    upstream_url: str
    policy: GatewayPolicy = field(init=False)
    record: Record = field(init=False)
    process: GatewayProcess = field(init=False)
    client: aiohttp.ClientSession = field(init=False)

    def __post_init__(self) -> None:
        """Write the mounts of an ordinary cache."""
        self.policy = GatewayPolicy(
            cache="ml/support-bot",
            cache_id=self.redis.cache_id,
            key_id=key_id_of("ab" * 32),
            binding="binding",
            model=MODEL,
            upstream=UpstreamPolicy(url=f"{self.upstream_url}/v1", timeout_seconds=2 * UNHURRIED_SECONDS),
            tenancy=TenancyPolicy(mode="Required", trusted_header="x-tenant-id"),
            routes=(RoutePolicy(name="default", path=CHAT, layers=("Exact",)),),
            exact=ExactPolicy(
                ttl_seconds=1800,
                budget_seconds=UNHURRIED_SECONDS,
                local_max_entries=1000,
                local_ttl_seconds=30,
            ),
            total_budget_seconds=UNHURRIED_SECONDS,
            max_cacheable_body_bytes=64 * 1024,
            max_body_bytes=1024 * 1024,
        )
        empty = Record(self.redis.cache_id, 0, 0)
        self.record = empty.with_layer("Exact", "1" * 16, "binding", "2026-11-30T00:00:00Z")
        self.mount("policy/policy.json", self.policy.to_json())
        self.mount("record/record.json", self.record.to_json())
        self.mount("keys/digest-key", "ab" * 32)
        self.mount("redis/url", self.redis.url("gateway"))
        self.mount("admin/token", ADMIN_TOKEN)

    def mount(self, name: str, text: str) -> None:
        """Write a file as kubelet does: the new content beside the old, then one rename."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(text)
        beside.replace(path)

    def enact(self, **changes: Any) -> None:
        """Mount the policy with some fields changed; a mapping changes fields of a part."""
        merged = {
            name: getattr(self.policy, name).model_copy(update=value) if isinstance(value, dict) else value
            for name, value in changes.items()
        }
        self.policy = self.policy.model_copy(update=merged)
        self.mount("policy/policy.json", self.policy.to_json())

    def rotate(self, keyspace_id: str = "2" * 16, binding: str = "binding") -> Record:
        """Return the next record, with another keyspace; it is mounted nowhere yet."""
        self.record = self.record.with_layer("Exact", keyspace_id, binding, "2026-11-30T01:00:00Z")
        return self.record

    async def start(self) -> None:
        """Start the process and a client."""
        settings = GatewaySettings(self.folder, "127.0.0.1", 0, 0, 0, lame_duck_seconds=0)
        self.process = GatewayProcess(settings)
        await self.process.start()
        self.client = aiohttp.ClientSession(auto_decompress=False)

    async def stop(self) -> None:
        """Stop both."""
        await self.client.close()
        await self.process.stop()

    @property
    def url(self) -> str:
        """Address of the traffic port."""
        return f"http://127.0.0.1:{self.process.port}"

    async def call(
        self,
        path: str = CHAT,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | list[tuple[str, str]] = TENANT,
        data: bytes | None = None,
        **fields: Any,
    ) -> Answered:
        """Send the usual question, with some fields changed, or `data` as it is."""
        body = json.dumps({**QUESTION, **fields}).encode() if data is None else data
        pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
        names = {name.lower() for name, _ in pairs}
        if "content-type" not in names:
            pairs = [*pairs, ("Content-Type", "application/json")]
        async with self.client.request(
            method,
            URL(self.url + path, encoded=True),
            data=None if method == "GET" else body,
            headers=pairs,
            allow_redirects=False,
        ) as response:
            return Answered(response.status, response.headers, await response.read())

    async def management(self, path: str) -> Answered:
        """Ask the management port."""
        url = f"http://127.0.0.1:{self.process.management_port}{path}"
        async with self.client.get(url) as response:
            return Answered(response.status, response.headers, await response.read())

    async def admin(
        self, path: str, document: object = None, *, method: str = "", token: str | None = ADMIN_TOKEN
    ) -> Answered:
        """Ask the admin port; POST where there is a document to send, else GET."""
        url = f"http://127.0.0.1:{self.process.admin_port}{path}"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with self.client.request(
            method or ("GET" if document is None else "POST"),
            url,
            headers=headers,
            data=None if document is None else json.dumps(document),
        ) as response:
            return Answered(response.status, response.headers, await response.read())

    async def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples with these labels, by scraping them."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        total = 0.0
        for line in (await self.management("/metrics")).body.decode().splitlines():
            sample, _, value = line.rpartition(" ")
            found, _, rest = sample.partition("{")
            if found == name and wanted <= set(rest.rstrip("}").split(",")):
                total += float(value)
        return total


@asynccontextmanager
async def running(gateway: Gateway) -> AsyncIterator[Gateway]:
    """Run a gateway until the block ends."""
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


@asynccontextmanager
async def root_client(redis: RedisServer) -> AsyncIterator[Redis]:
    """Give a client of the store that may do everything."""
    client = Redis.from_url(redis.url("root"))
    try:
        yield client
    finally:
        await client.aclose()


def chat_answer(text: str = "Because.", **changes: Any) -> bytes:
    """Return the body of a whole chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    document = {"id": os.urandom(4).hex(), "object": "chat.completion", "model": MODEL, "choices": [choice]}
    return json.dumps({**document, **changes}).encode()


__all__ = [
    "Answered",
    "Engine",
    "Gateway",
    "Response",
    "ScriptedUpstream",
    "chat_answer",
    "root_client",
    "running",
]
