"""API keys: from the mounted file to a table of tenants, and from a bearer token to its entry.

The table is keyed by a keyed digest of each API key, so that a look-up compares nothing byte by byte and no
key stays in memory in clear.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from cachewright.errors import InvalidDocument


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Whom a key was handed out to."""

    tenant: str
    role: str


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """All keys of one file."""

    _secret: bytes
    _holders: Mapping[bytes, KeyHolder]

    def find(self, token: bytes) -> KeyHolder | None:
        """Return the holder of a key; None for an unknown one."""
        return self._holders.get(_digest(self._secret, token))

    @classmethod
    def parse(cls, text: str, secret: bytes, tenant_needed: bool) -> ApiKeys:
        """Read a YAML or JSON list of `{key, tenant, role}`; raises InvalidDocument, which quotes no key."""
        try:
            entries: Any = yaml.safe_load(text)
        except yaml.YAMLError:
            raise InvalidDocument("the API keys are neither YAML nor JSON") from None
        if not isinstance(entries, list):
            raise InvalidDocument("the API keys must be a list of {key, tenant, role}")
        holders: dict[bytes, KeyHolder] = {}
        for number, entry in enumerate(entries, start=1):
            token, holder = _read_entry(entry, number, tenant_needed)
            if holders.setdefault(_digest(secret, token), holder) is not holder:
                raise InvalidDocument(f"API key number {number} stands twice in the list")
        return cls(secret, holders)


def _read_entry(entry: object, number: int, tenant_needed: bool) -> tuple[bytes, KeyHolder]:
    if not isinstance(entry, Mapping) or not set(entry) <= {"key", "tenant", "role"}:
        raise InvalidDocument(
            f"API key number {number} must have the fields key, tenant and, if wanted, role"
        )
    key, tenant, role = entry.get("key"), entry.get("tenant") or "", entry.get("role") or ""
    if not isinstance(key, str) or not key.strip():
        raise InvalidDocument(f"API key number {number} needs a key as text; quote it")
    if not isinstance(tenant, str) or not isinstance(role, str):
        raise InvalidDocument(f"API key number {number} needs tenant and role as text; quote them")
    if tenant_needed and not tenant:
        raise InvalidDocument(f"API key number {number} needs a tenant")
    return key.encode(), KeyHolder(tenant, role)


def _digest(secret: bytes, token: bytes) -> bytes:
    return hmac.digest(secret, b"cachewright/api-key\0" + token, "sha256")
