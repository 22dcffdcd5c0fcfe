"""The stand-in's HTTP side: keys, routes, Qdrant's envelope around answers and errors.

Called by `__main__` and by tests. The engine is synchronous and runs in threads, so that a long call holds up
nobody else.
"""

import asyncio
import hmac
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self

from e2e.engine.http11 import MAX_HEAD_BYTES, Request, Response, serve_connection
from e2e.qdrant.collections import Collection, Collections, ConflictError, NotFoundError
from e2e.qdrant.wire import Json, WireError

VERSION: Final = "1.20.0"
"""Of the API that is spoken; clients ask for it."""

THREADS: Final = 4

POINT_ROUTES: Final[dict[tuple[str, str], Callable[[Collection, Json], object]]] = {
    ("PUT", "/index"): Collection.index_field,
    ("PUT", "/points"): Collection.upsert,
    ("POST", "/points"): Collection.retrieve,
    ("POST", "/points/query"): Collection.query,
    ("POST", "/points/scroll"): Collection.scroll,
    ("POST", "/points/count"): Collection.count,
    ("POST", "/points/delete"): Collection.delete,
    ("POST", "/optimize"): lambda collection, _: collection.optimize(),  # the stand-in's own
}

OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz")


class QdrantStandIn:
    """A Qdrant on one port; use it as an async context manager."""

    def __init__(
        self, folder: Path, *, host: str = "127.0.0.1", port: int = 0, api_key: str | None = None
    ) -> None:
        self._collections = Collections(folder)
        self._host, self._port, self._api_key = host, port, api_key
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="qdrant")
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://{self._host}:{self._port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._host, self._port, limit=MAX_HEAD_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._threads.shutdown()
        self._collections.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.ensure_future(serve_connection(self._answer, reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _answer(self, request: Request) -> Response:
        if request.path in OPEN_PATHS:
            return Response(200, b"all shards are ready", "text/plain")
        if (refused := self._refusal(request)) is not None:
            return refused
        began = time.monotonic()
        loop = asyncio.get_running_loop()
        status, answer = await loop.run_in_executor(self._threads, self._carry_out, request)
        answer["time"] = time.monotonic() - began
        return Response(status, json.dumps(answer).encode())

    def _refusal(self, request: Request) -> Response | None:
        if self._api_key is None:
            return None
        given = request.header("api-key") or request.header("authorization").removeprefix("Bearer ")
        if not given:
            text = b"Must provide an API key or an Authorization bearer token"
        elif not hmac.compare_digest(given.encode(), self._api_key.encode()):
            text = b"Invalid API key or JWT"
        else:
            return None
        return Response(401, text, "text/plain")

    def _carry_out(self, request: Request) -> tuple[int, Json]:
        try:
            body = json.loads(request.body) if request.body else {}
            if (request.method, request.path) == ("GET", "/"):
                return 200, {"title": "qdrant - vector search engine", "version": VERSION}
            return 200, {"result": self._result(request.method, request.path, body), "status": "ok"}
        except NotFoundError as e:
            return 404, _error(str(e))
        except ConflictError as e:
            return 409, _error(str(e))
        except (WireError, ValueError, KeyError, TypeError, AttributeError) as e:
            return 400, _error(f"Wrong input: {e}")
        except Exception as e:  # noqa: BLE001 - the engine raises nothing narrower
            text = str(e)
            wrong_input = "dimension" in text or "No range index" in text
            return (400, _error(f"Wrong input: {text}")) if wrong_input else (500, _error(text))

    def _result(self, method: str, path: str, body: Json) -> object:
        collections = self._collections
        match method, path:
            case "GET", "/collections":
                return {"collections": [{"name": name} for name in collections.names()]}
            case "GET", "/aliases":
                return collections.aliases()
            case "POST", "/collections/aliases":
                collections.change_aliases(body)
                return True
        found = re.fullmatch(r"/collections/([^/]+)(/.*)?", path)
        if found is None:
            raise NotFoundError(f"Not found: {path}")
        return self._of_collection(method, found[1], found[2] or "", body)

    def _of_collection(self, method: str, name: str, rest: str, body: Json) -> object:
        collections = self._collections
        match method, rest:
            case "PUT", "":
                collections.create(name, body)
                return True
            case "DELETE", "":
                return collections.delete(name)
            case "GET", "":
                return collections.get(name).info()
            case "GET", "/exists":
                return {"exists": name in collections.names()}
            case "GET", "/aliases":
                return collections.aliases(name)
        route = POINT_ROUTES.get((method, rest))
        if route is None:
            raise NotFoundError(f"Not found: the stand-in has no {method} {rest}")
        return route(collections.get(name), body)


def _error(text: str) -> dict[str, Any]:
    return {"status": {"error": text}}
