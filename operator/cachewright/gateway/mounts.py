"""The mounted files: from a folder of ConfigMap and Secret mounts to parsed documents, all or nothing.

kubelet swaps a mount by a symbolic link, so a file is watched by what it leads to: its inode, time and size.
Polled by the process; nothing else of the gateway reads files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cachewright.errors import InvalidDocument
from cachewright.gateway.api_keys import ApiKeys
from cachewright.keys.digest import key_id_of, parse_digest_key
from cachewright.keys.record import RECORD_DATA_KEY, Record
from cachewright.policy.document import POLICY_DATA_KEY, GatewayPolicy
from cachewright.stores.redis_url import with_authorities

DEFAULT_FOLDER: Final = Path("/etc/cachewright")

POLICY: Final = f"policy/{POLICY_DATA_KEY}"
RECORD: Final = f"record/{RECORD_DATA_KEY}"
DIGEST_KEY: Final = "keys/digest-key"
STORE_URL: Final = "redis/url"
STORE_CA: Final = "redis-ca/ca.crt"
UPSTREAM_KEY: Final = "upstream/key"
UPSTREAM_CA: Final = "upstream-ca/ca.crt"
API_KEYS: Final = "api-keys/keys"
QDRANT_KEY: Final = "qdrant/api-key"
QDRANT_CA: Final = "qdrant-ca/ca.crt"
POSTGRES_DSN: Final = "postgres/dsn"
POSTGRES_CA: Final = "postgres-ca/ca.crt"
EMBEDDER_KEY: Final = "embedder/key"
EMBEDDER_CA: Final = "embedder-ca/ca.crt"
ADMIN: Final = "admin/token"

CONFIGURATION: Final = (
    POLICY,
    DIGEST_KEY,
    STORE_URL,
    STORE_CA,
    UPSTREAM_KEY,
    UPSTREAM_CA,
    API_KEYS,
    QDRANT_KEY,
    QDRANT_CA,
    POSTGRES_DSN,
    POSTGRES_CA,
    EMBEDDER_KEY,
    EMBEDDER_CA,
)
"""Everything but the record, which changes on its own."""

Signature = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class VectorConfiguration:
    """What the layers that keep vectors need beside the policy; each set where the policy says so."""

    qdrant_key: str | None = field(default=None, repr=False)
    qdrant_ca_file: Path | None = None
    postgres_dsn: str | None = field(default=None, repr=False)
    postgres_ca_file: Path | None = None
    embedder_key: str | None = field(default=None, repr=False)
    embedder_ca: str | None = None
    """PEM."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """All mounted documents but the record."""

    policy: GatewayPolicy
    digest_key: bytes
    store_url: str
    upstream_key: str | None
    upstream_ca: str | None
    """PEM."""
    api_keys: ApiKeys | None
    vectors: VectorConfiguration = field(default_factory=VectorConfiguration)


class Mounts:
    """The folder of mounts: `policy/policy.json`, `record/record.json` and so on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def signature(self, *names: str) -> Signature:
        """Return what changes when one of the files does."""
        return tuple(self._stat(name) for name in names)

    def read_record(self) -> Record:
        """Read the record; raises InvalidDocument."""
        return Record.from_json(self._text(RECORD))

    def read_admin_token(self) -> bytes | None:
        """Read the admin port's token; None where there is no such file; raises InvalidDocument."""
        token = self.read_given(ADMIN)
        return None if token is None else token.encode()

    def read_policy(self) -> GatewayPolicy:
        """Read the policy alone; raises InvalidDocument."""
        return GatewayPolicy.from_json(self._text(POLICY))

    def read_store_url(self) -> str | None:
        """Read the URL of Redis, with what certificates count for it; None where there is none."""
        url = self.read_given(STORE_URL)
        return self._store_url(url) if url is not None else None

    def read_given(self, name: str) -> str | None:
        """Read a file of one line; None where there is none; raises InvalidDocument for an empty one."""
        return self._secret(name) if self._stat(name) else None

    def given_file(self, name: str) -> str | None:
        """Return the path of a file; None where there is none."""
        return str(self._folder / name) if self._stat(name) else None

    def read_configuration(self) -> Configuration:
        """Read everything the policy names; raises InvalidDocument if any of it is missing or wrong."""
        policy = self.read_policy()
        digest_key_text = self._text(DIGEST_KEY)
        digest_key = parse_digest_key(digest_key_text)
        if key_id_of(digest_key_text) != policy.key_id:
            # kubelet swaps each mount by itself: one of the two is still the old one.
            raise InvalidDocument(f"{DIGEST_KEY} is not the key {policy.key_id} that {POLICY} goes with")
        tenancy = policy.tenancy
        return Configuration(
            policy=policy,
            digest_key=digest_key,
            store_url=self._store_url(self._secret(STORE_URL)),
            upstream_key=self._secret(UPSTREAM_KEY) if policy.upstream.sends_own_key else None,
            upstream_ca=self._text(UPSTREAM_CA) if policy.upstream.has_own_ca else None,
            api_keys=(
                ApiKeys.parse(self._text(API_KEYS), digest_key, tenant_needed=tenancy.mode == "Required")
                if tenancy.api_keys
                else None
            ),
            vectors=self._read_vectors(policy),
        )

    def _store_url(self, url: str) -> str:
        return with_authorities(url, self._text(STORE_CA)) if self._stat(STORE_CA) else url

    def _read_vectors(self, policy: GatewayPolicy) -> VectorConfiguration:
        qdrant, postgres, embedder = policy.qdrant, policy.postgres, policy.embedder
        return VectorConfiguration(
            qdrant_key=self._secret(QDRANT_KEY) if qdrant and qdrant.sends_key else None,
            qdrant_ca_file=self._file(QDRANT_CA) if qdrant and qdrant.has_own_ca else None,
            postgres_dsn=self._secret(POSTGRES_DSN) if postgres else None,
            postgres_ca_file=self._file(POSTGRES_CA) if postgres and postgres.has_own_ca else None,
            embedder_key=self._secret(EMBEDDER_KEY) if embedder and embedder.sends_key else None,
            embedder_ca=self._text(EMBEDDER_CA) if embedder and embedder.has_own_ca else None,
        )

    def _stat(self, name: str) -> tuple[int, int, int] | None:
        try:
            found = (self._folder / name).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _text(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise InvalidDocument(f"{name} cannot be read: {e}") from e

    def _file(self, name: str) -> Path:
        self._text(name)
        return self._folder / name

    def _secret(self, name: str) -> str:
        text = self._text(name).strip()
        if not text:
            raise InvalidDocument(f"{name} is empty")
        return text
