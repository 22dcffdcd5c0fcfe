"""Who asks: from a request's headers to its tenant and role, or to a refusal.

A tenant comes from an authenticated source or from a header that is trusted by explicit choice; a missing,
empty or doubled one is never shared with anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachewright.gateway.api_keys import ApiKeys
from cachewright.gateway.headers import Headers, values_of
from cachewright.gateway.reply import Reply, error_reply
from cachewright.policy.document import TenancyPolicy

SINGLE_TENANT: Final = b""
"""The tenant of every request under `mode: Single`."""

_BEARER: Final = b"bearer "


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, as far as it matters to the cache."""

    tenant: bytes | None
    """None: nobody we know; the request is never looked up or stored."""
    role: str | None
    """Empty where roles are not set apart; None: they are, and the request has none or several."""
    authenticated: bool
    """True: the tenancy source knows the client, so it may use the upstream's own key."""
    credential: bytes = b""
    """What the upstream has to have accepted before anything is served from the cache; empty where the
    tenancy source vouches for the client."""


NOBODY: Final = Asker(None, None, authenticated=False)
"""Who asks what needs no answer to that."""


def identify(headers: Headers, policy: TenancyPolicy, api_keys: ApiKeys | None) -> Asker | Reply:
    """Return who asks, or the refusal to send."""
    if policy.api_keys:
        return _holder_of_key(headers, policy, api_keys)
    role = _role(headers, policy)
    is_credential = policy.client_credential_ttl_seconds is not None
    header = "authorization" if is_credential else policy.trusted_header
    if header is None:
        return Asker(SINGLE_TENANT if policy.mode == "Single" else None, role, authenticated=False)
    value = _only_value(headers, header)
    if value is not None:
        tenant = SINGLE_TENANT if policy.mode == "Single" else value
        return Asker(tenant, role, not is_credential, credential=value if is_credential else b"")
    if policy.on_missing == "Reject":
        return error_reply(400, "tenant_missing", f"exactly one non-empty header {header} is needed")
    return Asker(None, role, authenticated=False)


def private_headers(policy: TenancyPolicy) -> set[bytes]:
    """Name the headers that are between the client and us, and never reach the upstream.

    These are our API keys and, where clients authenticate by them, a role that a client claims by itself. A
    trusted tenant, role or user header is passed on like any other, for gateways and engines that read it
    too; so is the user that the holder of an API key names, which says nothing about anybody's rights.
    """
    if not policy.api_keys:
        return set()
    return {b"authorization"} | ({policy.role_header.encode()} if policy.role_header else set())


def _holder_of_key(headers: Headers, policy: TenancyPolicy, api_keys: ApiKeys | None) -> Asker | Reply:
    credentials = values_of(headers, b"authorization")
    token = credentials[0] if len(credentials) == 1 else b""
    bearer = token[: len(_BEARER)].lower() == _BEARER
    holder = api_keys.find(token[len(_BEARER) :].strip()) if api_keys and bearer else None
    if holder is None:
        # Whatever onMissing says: an API key authenticates, and what it guards is more than the cache.
        return error_reply(
            401,
            "invalid_api_key",
            "a valid API key is needed as bearer token in the Authorization header",
            [(b"www-authenticate", b"Bearer")],
        )
    tenant = SINGLE_TENANT if policy.mode == "Single" else holder.tenant.encode()
    return Asker(tenant, holder.role, authenticated=True)


def _role(headers: Headers, policy: TenancyPolicy) -> str | None:
    if policy.role_header is None:
        return ""
    value = _only_value(headers, policy.role_header)
    return None if value is None else value.decode("latin-1")


def _only_value(headers: Headers, name: str) -> bytes | None:
    values = values_of(headers, name.encode())
    return values[0].strip() or None if len(values) == 1 else None
