"""Cacheable, yes or no: from what a request says to the reason why it is not looked up.

One pure function over small checks, first failure wins. The gateway asks it twice: before the body is read,
so that what cannot be cached is never buffered or parsed, and again with the parsed body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cachewright.policy.body import Body
from cachewright.policy.content_encoding import READABLE_ENCODINGS
from cachewright.policy.document import GatewayPolicy, RoutePolicy
from cachewright.policy.documents import find_documents
from cachewright.policy.endpoints import ENDPOINTS
from cachewright.policy.reasons import BypassReason
from cachewright.policy.sampling import is_interchangeable
from cachewright.policy.users import find_user


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a request says before its body is read."""

    route: RoutePolicy | None
    """First route that matches, if any."""
    has_tenant: bool
    has_role: bool
    """True also where roles are not set apart."""
    no_store: bool
    """The client sent `Cache-Control: no-store`."""
    content_type: str
    """Lower case, with parameters; empty where absent."""
    content_encoding: str
    """Lower case; empty where absent."""
    content_length: int | None
    """None where the body comes in chunks."""
    has_arm: bool = True
    """True also where the route is no experiment."""
    documents: tuple[bytes, ...] = ()
    """Values of the header that names documents."""
    user: tuple[bytes, ...] = ()
    """Values of the header that names the end user, where the policy has one."""
    method: str = "POST"
    is_cross_origin: bool = False
    """A page of another origin sent it, in a browser."""


EnvelopeCheck = Callable[[Envelope, GatewayPolicy], BypassReason | None]
PolicyBodyCheck = Callable[[Body, RoutePolicy, Envelope, GatewayPolicy], BypassReason | None]


def find_route(path: str, policy: GatewayPolicy) -> RoutePolicy | None:
    """Return the first route of exactly this path."""
    return next((route for route in policy.routes if route.path == path), None)


def why_not_cached(envelope: Envelope, body: Body | None, policy: GatewayPolicy) -> BypassReason | None:
    """Say why a request is not looked up, or None if it is; `body` is None until it has been read."""
    for check in ENVELOPE_CHECKS:
        if reason := check(envelope, policy):
            return reason
    if body is None or envelope.route is None:
        return None
    for endpoint_check in ENDPOINTS[envelope.route.path].checks:
        if reason := endpoint_check(body):
            return reason
    for body_check in BODY_CHECKS:
        if reason := body_check(body, envelope.route, envelope, policy):
            return reason
    return None


def _path_is_not_cached(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    if envelope.route is None:
        return BypassReason.NO_ROUTE
    return None if envelope.route.path in ENDPOINTS else BypassReason.UNSUPPORTED


def _method_is_another(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    return None if envelope.method == "POST" else BypassReason.METHOD


def _layer_is_off(envelope: Envelope, policy: GatewayPolicy) -> BypassReason | None:
    on = envelope.route is not None and "Exact" in envelope.route.layers and policy.exact is not None
    return None if on else BypassReason.DISABLED


def _route_has_side_effects(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    effects = envelope.route is not None and envelope.route.side_effects
    return BypassReason.SIDE_EFFECTS if effects else None


def _client_forbids(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    return BypassReason.CLIENT if envelope.no_store else None


def _page_needs_permission(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    # Which origins may read an answer is the upstream's to say with each one, and is not kept.
    return BypassReason.CROSS_ORIGIN if envelope.is_cross_origin else None


def _nobody_asks(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    if not envelope.has_tenant:
        return BypassReason.NO_TENANT
    return None if envelope.has_role else BypassReason.NO_ROLE


def _arm_is_unknown(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    return None if envelope.has_arm else BypassReason.EXPERIMENT


def _body_is_not_plain_json(envelope: Envelope, _policy: GatewayPolicy) -> BypassReason | None:
    if envelope.content_encoding not in READABLE_ENCODINGS:
        return BypassReason.ENCODED
    return None if is_json_type(envelope.content_type) else BypassReason.CONTENT_TYPE


def _body_is_too_large(envelope: Envelope, policy: GatewayPolicy) -> BypassReason | None:
    length = envelope.content_length
    too_large = length is not None and length > policy.max_cacheable_body_bytes
    return BypassReason.TOO_LARGE if too_large else None


def is_json_type(content_type: str) -> bool:
    """Tell whether a Content-Type means JSON in UTF-8."""
    media_type, _, parameters = content_type.lower().partition(";")
    if media_type.strip() != "application/json":
        return False
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip(' "') not in ("utf-8", "utf8", "us-ascii"):
            return False
    return True


def _model_is_another(
    body: Body, _route: RoutePolicy, _envelope: Envelope, policy: GatewayPolicy
) -> BypassReason | None:
    return None if body.get("model") == policy.model else BypassReason.MODEL


def _user_is_unclear(
    body: Body, _route: RoutePolicy, envelope: Envelope, policy: GatewayPolicy
) -> BypassReason | None:
    return BypassReason.NO_USER if find_user(envelope.user, body, policy.tenancy) is None else None


def _answer_is_sampled(
    body: Body, route: RoutePolicy, _envelope: Envelope, _policy: GatewayPolicy
) -> BypassReason | None:
    return None if is_interchangeable(body, route.sampling) else BypassReason.SAMPLING


def _documents_are_unclear(
    body: Body, route: RoutePolicy, envelope: Envelope, _policy: GatewayPolicy
) -> BypassReason | None:
    found = find_documents(envelope.documents, body, route)
    return found if isinstance(found, BypassReason) else None


ENVELOPE_CHECKS: Final[tuple[EnvelopeCheck, ...]] = (
    _path_is_not_cached,
    _method_is_another,
    _layer_is_off,
    _route_has_side_effects,
    _client_forbids,
    _page_needs_permission,
    _nobody_asks,
    _arm_is_unknown,
    _body_is_not_plain_json,
    _body_is_too_large,
)

BODY_CHECKS: Final[tuple[PolicyBodyCheck, ...]] = (
    _user_is_unclear,
    _model_is_another,
    _answer_is_sampled,
    _documents_are_unclear,
)
