"""The admin port: stats as JSON, and removal of entries, for whoever holds the token.

    GET  /stats    what this pod did since it started
    GET  /samples  pairs of questions that Shadow mode found similar in this pod
    POST /purge    {"id": "…", "dryRun": true}: what would go; with "dryRun": false it goes
    POST /retract  {"tenant": "…", "dryRun": true} and the like, as in `gateway.retract`

Opened by the process only where a token is mounted.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from prometheus_client import CollectorRegistry

from cachewright.errors import ClientGone, InvalidInput, StoreError
from cachewright.gateway.admin_stats import collect_stats
from cachewright.gateway.admin_store import tell_store
from cachewright.gateway.app import Scope, Send, send_reply
from cachewright.gateway.headers import Headers, values_of
from cachewright.gateway.janitor import JanitorNews
from cachewright.gateway.purge import purge
from cachewright.gateway.reply import Reply, error_reply
from cachewright.gateway.request_body import Receive, RequestBody
from cachewright.gateway.retract import carry_out, read_wanted
from cachewright.gateway.serving import Serving
from cachewright.keys.record import Record

LARGEST_BODY_BYTES: Final = 16 * 1024

_METHODS: Final = {"/stats": "GET", "/samples": "GET", "/purge": "POST", "/retract": "POST"}
_BEARER: Final = b"bearer "


@dataclass(frozen=True, slots=True)
class AdminState:
    """What the admin port tells about and acts on."""

    serving: Serving
    record: Record | None
    """The best record known."""
    ready: bool
    janitor: JanitorNews = field(default_factory=JanitorNews)


class AdminApp:
    """The ASGI application of the admin port."""

    def __init__(
        self,
        token: Callable[[], bytes | None],
        state: Callable[[], AdminState | None],
        registry: CollectorRegistry,
    ) -> None:
        """`token` and `state` give what holds at the time of a request; no state: nothing was read yet."""
        self._token = token
        self._state = state
        self._registry = registry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            reply = await self._reply(scope, RequestBody(receive))
        except ClientGone:
            return
        await send_reply(reply, send)

    async def _reply(self, scope: Scope, body: RequestBody) -> Reply:
        if not self._is_allowed(list(scope["headers"])):
            return error_reply(
                401,
                "invalid_admin_token",
                "the admin token is needed as bearer token in the Authorization header",
                [(b"www-authenticate", b"Bearer")],
            )
        path = scope["path"]
        if path not in _METHODS:
            return error_reply(404, "not_found", "this port serves /stats, /samples, /purge and /retract")
        if scope["method"] != _METHODS[path]:
            return error_reply(
                405,
                "method_not_allowed",
                f"this path takes {_METHODS[path]} only",
                [(b"allow", _METHODS[path].encode())],
            )
        state = self._state()
        if state is None:
            return error_reply(503, "not_ready", "the gateway has not read its configuration yet")
        if path == "/stats":
            stats = collect_stats(self._registry, state.serving.policy, state.record, state.ready)
            return _json(stats | {"store": tell_store(state.record, state.janitor)})
        if path == "/samples":
            semantics = state.serving.semantics
            return _json(semantics.samples.told() if semantics else [])
        return await _remove(state, path, body)

    def _is_allowed(self, headers: Headers) -> bool:
        token, given = self._token(), values_of(headers, b"authorization")
        if not token or len(given) != 1 or given[0][: len(_BEARER)].lower() != _BEARER:
            return False
        return hmac.compare_digest(given[0][len(_BEARER) :].strip(), token)


async def _remove(state: AdminState, path: str, body: RequestBody) -> Reply:
    try:
        document = _read(await body.read_up_to(LARGEST_BODY_BYTES))
        if path == "/retract":
            return _json(await carry_out(state.serving, state.record, read_wanted(document)))
        entry_id, dry_run = _read_purge(document)
        return _json(await purge(state.serving, entry_id, dry_run=dry_run))
    except InvalidInput as e:
        return error_reply(400, f"invalid_{path[1:]}", str(e))
    except StoreError as e:
        return error_reply(503, "store_unavailable", f"the store did not do it; try again: {e}")


def _read(raw: bytes | None) -> object:
    if raw is None:
        raise InvalidInput(f"the body is larger than {LARGEST_BODY_BYTES} bytes")
    try:
        document: object = orjson.loads(raw)
    except ValueError as e:
        raise InvalidInput("the body is not JSON") from e
    return document


def _read_purge(document: object) -> tuple[str, bool]:
    if not isinstance(document, Mapping) or not set(document) <= {"id", "dryRun"}:
        raise InvalidInput('the body must look like {"id": "…", "dryRun": true}')
    entry_id, dry_run = document.get("id"), document.get("dryRun", True)
    if not isinstance(entry_id, str) or not isinstance(dry_run, bool):
        raise InvalidInput('"id" must be the key of a Cache-Status header, and "dryRun" true or false')
    return entry_id, dry_run


def _json(document: Mapping[str, Any] | list[dict[str, Any]]) -> Reply:
    body = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return Reply(
        200,
        [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ],
        body,
    )
