"""What rendering needs beyond the object: identities, generated credentials and checksums.

`reconcile` gathers it from the record and from Secrets. Passwords go into our own Secrets alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RedisCredentials:
    """The managed store's passwords, generated once and kept in the Secret `<name>-redis`."""

    gateway_password: str = field(repr=False)
    operator_password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RenderInputs:
    """Everything that builders read beside the object and the settings."""

    cache_id: str
    digest_key: str = field(repr=False)
    """64 hex digits, generated once and kept in the Secret `<name>-keys`."""
    admin_token: str = field(repr=False)
    """Opens the gateways' admin port; generated once and kept in the Secret `<name>-admin`."""
    key_id: str
    """Names the digest key without telling it."""
    redis: RedisCredentials | None
    """None for an external store."""
    qdrant_api_key: str = field(repr=False, default="")
    """Key of the managed Qdrant, generated once and kept in the Secret `<name>-qdrant`; empty where there is
    none."""
    postgres_password: str = field(repr=False, default="")
    """Of the managed PostgreSQL, generated once and kept in the Secret `<name>-postgres`; empty where there
    is none."""
    users_acl: str = field(repr=False, default="")
    """ACL file of the managed store."""
    secret_checksums: dict[str, str] = field(default_factory=dict)
    """Keyed checksum per mounted Secret, by mount name; a change rolls what reads it only at start."""
