"""Salting: which salt a request carries to the engine, so that tenants share nothing in its prefix cache.

Nobody's request goes without one where the object asks for salts: a client that names no tenant gets a salt
of its own each time, and while no keyspace is known, one of this process stands in. Used by the exchange for
what goes upstream.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from cachewright.gateway.headers import Headers, values_of
from cachewright.keys.digest import tenant_tag
from cachewright.keys.prefix import PREFIX, shared_salt, tenant_salt
from cachewright.layers.known_record import KnownRecord
from cachewright.policy.document import PrefixPolicy

SHARING_HEADER: Final = b"cachewright-prefix"
SHARED: Final = b"shared"
"""What a client says to share the beginning of its prompt with other tenants, where the object allows it."""

Scope = Literal["tenant", "shared", "alone"]


@dataclass(frozen=True, slots=True)
class Salting:
    """Gives salts under one configuration."""

    policy: PrefixPolicy
    key: bytes
    known: KnownRecord
    stand_in: str
    """Takes the keyspace's place while none is known; this process' own."""
    count: Callable[[Scope], None]
    """Counts a request with a salt."""

    def takes(self, method: str, path: str) -> bool:
        """Tell whether the engine takes a salt in such a request."""
        return method == "POST" and path in self.policy.paths

    def salt(self, tenant: bytes | None, route: str | None, headers: Headers) -> str:
        """Return the salt of one request, and count it."""
        keyspace = self._keyspace()
        asks = [value.strip().lower() for value in values_of(headers, SHARING_HEADER)] == [SHARED]
        if asks and route is not None and route in self.policy.shared_routes:
            self.count("shared")
            return shared_salt(self.key, keyspace)
        if tenant is None:
            self.count("alone")
            return secrets.token_urlsafe(32)
        self.count("tenant")
        return tenant_salt(self.key, tenant_tag(self.key, tenant), keyspace)

    def _keyspace(self) -> str:
        record = self.known.best
        layer = record.layers.get(PREFIX) if record is not None else None
        is_ours = layer is not None and layer.binding == self.policy.binding
        return str(layer.keyspace) if layer is not None and is_ours else self.stand_in
