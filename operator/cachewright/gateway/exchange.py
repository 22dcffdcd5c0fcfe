"""One exchange: what a request turned out to be, and the request to the upstream that follows. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from cachewright.gateway.asker import Asker, private_headers
from cachewright.gateway.headers import (
    Headers,
    content_length,
    end_to_end,
    first_of,
    values_of,
)
from cachewright.gateway.paths import upstream_url
from cachewright.gateway.payload import Payload
from cachewright.gateway.request_body import RequestBody
from cachewright.gateway.serving import Serving
from cachewright.gateway.upstream import Outgoing
from cachewright.keys.context import Context, Document
from cachewright.keys.digest import ExactQuestion
from cachewright.keys.generations import Dependence
from cachewright.layers.exact import LAYER
from cachewright.policy.cacheable import Envelope
from cachewright.policy.compat import Narrowing, read_headers
from cachewright.policy.document import RoutePolicy
from cachewright.policy.documents import DOCUMENTS_HEADER, find_documents
from cachewright.policy.endpoints import ENDPOINTS
from cachewright.policy.reasons import BypassReason
from cachewright.policy.salted_request import salted, salted_parts
from cachewright.policy.users import find_user
from cachewright.policy.wishes import Wishes, read_cache_control


@dataclass(frozen=True, slots=True)
class Call:
    """A client's request as it arrived, without its body."""

    method: str
    raw_path: bytes
    query: bytes
    headers: Headers


def narrowing_of(headers: Headers) -> Narrowing:
    """Read the controls that stand in a request's headers, ours and other gateways'."""
    wishes = read_cache_control(values_of(headers, b"cache-control"), values_of(headers, b"pragma"))
    return Narrowing(wishes).and_(read_headers(headers))


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that may be answered, with all that was found out about it."""

    call: Call
    body: RequestBody
    serving: Serving
    path: str
    asker: Asker
    route: RoutePolicy | None
    narrowing: Narrowing
    """What all of the client's controls come to, as far as they were read."""

    @property
    def wishes(self) -> Wishes:
        """How the client narrows what the cache may do."""
        return self.narrowing.wishes

    @property
    def declared_threshold(self) -> float:
        """Least similarity of another question whose answer may be given."""
        semantic = self.serving.policy.semantic
        own = self.route.threshold if self.route else None
        return own if own is not None else semantic.threshold if semantic else 0.0

    @property
    def wants_more_similar(self) -> bool:
        """True: the client wants questions to be more similar than declared, or its own words only."""
        return self.narrowing.threshold > self.declared_threshold

    @property
    def is_forced(self) -> bool:
        """True: the route asks for an answer without sampling, whatever the client asked for."""
        return self.route is not None and self.route.sampling == "ForceZero"

    @property
    def is_alone_with_its_key(self) -> bool:
        """True: whoever asks the same has the same tenant, so the upstream judges them alike."""
        return self.serving.policy.tenancy.mode == "Required"

    def heard(self, status: int) -> None:
        """Take note of what the upstream thinks of the client's credential.

        Only model endpoints count: of others, some upstreams answer to anybody.
        """
        credentials = self.serving.credentials
        if credentials is not None and self.call.method == "POST" and self.path in ENDPOINTS:
            credentials.heard(self.asker.credential, status)

    def envelope(self) -> Envelope:
        """Return what `why_not_cached` judges before the body is read."""
        headers = self.call.headers
        return Envelope(
            method=self.call.method,
            route=self.route,
            has_tenant=self.asker.tenant is not None,
            has_role=self.asker.role is not None,
            no_store=self.wishes.no_store,
            content_type=first_of(headers, b"content-type").decode("latin-1"),
            content_encoding=first_of(headers, b"content-encoding").decode("latin-1").lower(),
            content_length=content_length(headers),
            has_arm=self._arm() is not None,
            documents=self._documents_header(),
            user=self._user_header(),
            is_cross_origin=self._is_cross_origin(),
        )

    def question(self, body: dict[str, Any]) -> ExactQuestion:
        """Return everything the answer may depend on."""
        return ExactQuestion(
            path=self.path,
            query=self.call.query.decode("latin-1"),
            headers=tuple(
                (
                    name,
                    tuple(value.decode("latin-1") for value in values_of(self.call.headers, name.encode())),
                )
                for name in self.serving.policy.upstream.vary_headers
            )
            + tuple((f"control:{name}", values) for name, values in self.narrowing.partition),
            body=body,
            context=self._context(body),
        )

    def _context(self, body: dict[str, Any]) -> Context:
        if self.route is None:
            return Context(role=self.asker.role or "", user=self._user(body))
        documents = find_documents(self._documents_header(), body, self.route)
        return Context(
            template=self.route.prompt_template,
            documents=() if isinstance(documents, BypassReason) else tuple(map(Document, documents)),
            arm=self._arm() or "",
            role=self.asker.role or "",
            user=self._user(body),
        )

    def _user(self, body: dict[str, Any]) -> str:
        return find_user(self._user_header(), body, self.serving.policy.tenancy) or ""

    def _user_header(self) -> tuple[bytes, ...]:
        name = self.serving.policy.tenancy.user_header
        return tuple(values_of(self.call.headers, name.encode())) if name is not None else ()

    def _arm(self) -> str | None:
        """Return the experiment arm: empty where the route is no experiment, None where it is not clear."""
        if self.route is None or self.route.arm_header is None:
            return ""
        values = values_of(self.call.headers, self.route.arm_header.encode())
        return values[0].strip().decode("latin-1") or None if len(values) == 1 else None

    def _is_cross_origin(self) -> bool:
        """Tell whether a browser will look for the upstream's permission in the answer's headers."""
        headers = self.call.headers
        host = first_of(headers, b"host")
        return any(origin.partition(b"://")[2] != host for origin in values_of(headers, b"origin"))

    def _documents_header(self) -> tuple[bytes, ...]:
        return tuple(values_of(self.call.headers, DOCUMENTS_HEADER.encode()))

    def dependence(self, tag: str, body: dict[str, Any]) -> Dependence:
        """Return the question of the tenant with this tag, and the generations that its answer hangs on."""
        layers = self.route.layers if self.route is not None else (LAYER,)
        return Dependence.of(self.serving.digest_key, tag, self.question(body), layers)

    def outgoing(self, payload: Payload | None, plain_answer: bool = False) -> Outgoing:
        """Return the request to the upstream; without a payload the body is passed on as it arrives.

        `plain_answer` asks for an answer without compression, so that it can be judged and replayed.
        """
        policy = self.serving.policy
        headers = self.call.headers
        salt = self._salt()
        if payload is not None and salt is not None:
            payload = payload.rewritten(salted(payload.plain, salt))
        dropped = {b"host", b"expect", b"content-length", *private_headers(policy.tenancy)}
        added: Headers = []
        if plain_answer or salt is not None:  # in a compressed error nobody finds what is to be hidden
            dropped.add(b"accept-encoding")
            added.append((b"accept-encoding", b"identity"))
        if payload is not None and payload.is_rewritten:
            dropped.add(b"content-encoding")
        # Only whom the tenancy source knows may spend the upstream's own key; others keep what they sent.
        if self.serving.upstream_key is not None and self.asker.authenticated:
            dropped.add(b"authorization")
            added.append((b"authorization", f"Bearer {self.serving.upstream_key}".encode()))
        body: bytes | AsyncIterator[bytes] | None = payload.sent if payload else None
        if payload is None and self._has_body():
            body = self.body.chunks(policy.max_body_bytes)
            if salt is not None:
                body = salted_parts(body, salt)  # and so of another length
            elif b"content-length" in dict(headers):
                added.append((b"content-length", first_of(headers, b"content-length")))
        return Outgoing(
            self.call.method,
            upstream_url(policy.upstream.url, self.path, self.call.query),
            end_to_end(headers, dropped) + added,
            body,
            hidden=salt,
        )

    @property
    def takes_salt(self) -> bool:
        """True: the engine is sent a salt with this request."""
        salting = self.serving.salting
        return salting is not None and salting.takes(self.call.method, self.path)

    def _salt(self) -> str | None:
        salting = self.serving.salting
        if salting is None or not self.takes_salt:
            return None
        return salting.salt(self.asker.tenant, self.route.name if self.route else None, self.call.headers)

    def _has_body(self) -> bool:
        headers = self.call.headers
        return bool(content_length(headers)) or bool(values_of(headers, b"transfer-encoding"))
