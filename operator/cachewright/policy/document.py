"""The policy document: everything a gateway must know, with defaults resolved and units made plain.

`render` writes it into the ConfigMap that gateways mount; local mode builds the same from a manifest. It
holds no secret, no keyspace (those come from the record alone) and no model version (a bump restarts no
gateway).
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer

from cachewright.api.guard import GuardCheck
from cachewright.errors import InvalidDocument
from cachewright.keys.embedding_identity import EmbeddingIdentity

POLICY_DATA_KEY: Final = "policy.json"
"""Key in the ConfigMap and file name where it is mounted."""

LATER_PARTS: Final = frozenset(
    {
        "embedder",
        "embedding",
        "postgres",
        "prefix",
        "qdrant",
        "question_between",
        "semantic",
        "sweep",
        "threshold",
        "user_field",
        "user_header",
    }
)
"""Parts that are left out where an object does not use them, so that a newer release rolls no gateway."""

DEFAULT_VARY_HEADERS: Final = ("openai-organization", "openai-project", "openai-beta", "api-version")
"""Request headers that are part of every key."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_serializer(mode="wrap")
    def _without_later_parts(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        said: dict[str, Any] = handler(self)
        return {name: value for name, value in said.items() if value is not None or name not in LATER_PARTS}


class UpstreamPolicy(_Document):
    """Where misses go."""

    url: str
    """Base URL with its path prefix and no trailing slash."""
    timeout_seconds: float
    """Longest wait for the first byte, and between two parts of a stream."""
    sends_own_key: bool = False
    """True: the key in the mounted file `upstream/key` replaces the client's Authorization."""
    has_own_ca: bool = False
    """True: certificates are checked against the mounted file `upstream-ca/ca.crt`."""
    allowed_paths: tuple[str, ...] = ()
    """Paths beyond inference that are passed on."""
    vary_headers: tuple[str, ...] = DEFAULT_VARY_HEADERS
    """Lower-case names of request headers that are part of every key."""


class TenancyPolicy(_Document):
    """Who asks."""

    mode: Literal["Required", "Single"]
    trusted_header: str | None = None
    """Lower-case name of the header that carries the tenant."""
    api_keys: bool = False
    """True: bearer tokens are looked up in the mounted file `api-keys/keys`."""
    client_credential_ttl_seconds: float | None = None
    """Set: the client's own credential in Authorization is the tenant, and counts this long after a 2xx."""
    role_header: str | None = None
    """Lower-case name of the header that carries the role."""
    user_header: str | None = None
    """Lower-case name of the header that carries the end user, where users are set apart by one."""
    user_field: Literal["user", "safety_identifier"] | None = None
    """Field of a request that carries the end user, where users are set apart by one."""
    on_missing: Literal["Bypass", "Reject"] = "Bypass"


class RoutePolicy(_Document):
    """Rules for the requests of one route."""

    name: str
    path: str
    layers: tuple[Literal["Exact", "Semantic"], ...]
    sampling: Literal["Strict", "ForceZero", "AssumeDeterministic"] = "Strict"
    side_effects: bool = False
    prompt_template: str = ""
    """Version of the template that the prompts of this route are made with."""
    arm_header: str | None = None
    """Lower-case name of the header that carries the experiment arm; without it a request is not cached."""
    documents_required: bool = False
    """True: a request that names no document is not cached."""
    documents_between: tuple[str, str] | None = None
    """Marks around the id of a document in a request's texts."""
    question_between: tuple[str, str] | None = None
    """Marks around the question in the user's last text, or in a prompt; None: all of that text."""
    threshold: float | None = None
    """Least cosine of a semantic match; None: the layer's."""


class ExactPolicy(_Document):
    """The exact layer."""

    ttl_seconds: float
    budget_seconds: float
    local_max_entries: int
    """Copies in the gateway's memory; 0: none."""
    local_ttl_seconds: float


class EmbedderPolicy(_Document):
    """What turns texts into vectors."""

    url: str | None
    """Base URL of the API with its path prefix and no trailing slash; None: the built-in model in the
    gateway's own process."""
    identity: EmbeddingIdentity
    timeout_seconds: float
    sends_key: bool = False
    """True: the key in the mounted file `embedder/key` is sent."""
    has_own_ca: bool = False
    """True: certificates are checked against the mounted file `embedder-ca/ca.crt`."""


class EmbeddingPolicy(_Document):
    """The embedding layer."""

    binding: str
    """A keyspace is used only when the record names this binding for it; see `keys.embedding`."""
    hot_ttl_seconds: float
    shared: bool
    """True: all tenants share vectors."""
    cold: bool
    """True: vectors stay in PostgreSQL."""


class QdrantPolicy(_Document):
    """The Qdrant server."""

    url: str
    """Without trailing slash."""
    sends_key: bool = False
    """True: the key in the mounted file `qdrant/api-key` is sent."""
    has_own_ca: bool = False
    """True: certificates are checked against the mounted file `qdrant-ca/ca.crt`."""


class PostgresPolicy(_Document):
    """The PostgreSQL database; its connection string is the mounted file `postgres/dsn`."""

    has_own_ca: bool = False
    """True: certificates are checked against the mounted file `postgres-ca/ca.crt`."""


class SweepPolicy(_Document):
    """How the gateways tidy the store."""

    interval_seconds: float = 3600.0
    """From the end of one sweep to the next."""
    keys_per_second: int = 10_000
    """Looked at by a sweep, or while a keyspace is emptied."""


class SemanticPolicy(_Document):
    """The semantic layer."""

    binding: str
    """Its keyspace is used only when the record names this binding for it; see `keys.fingerprints`."""
    mode: Literal["Serve", "Shadow"]
    store: Literal["Qdrant", "Postgres", "Memory"]
    """Where vectors are kept. Memory: in the gateway's own process."""
    threshold: float
    """Least cosine of a match."""
    ttl_seconds: float
    max_entries: int
    max_entries_per_tenant: int | None = None
    min_seen: int = 1
    max_turns: int = 1
    guard: tuple[GuardCheck, ...]
    other_languages: bool = False
    """True: questions in languages that the guard has no words of are matched too."""
    expose_similarity: bool = False
    """True: a header of each hit tells how similar the two questions are."""
    hnsw_m: int = 16
    hnsw_ef_construct: int = 100
    hnsw_payload_m: int = 16
    quantization: Literal["None", "Scalar"] = "None"


class PrefixPolicy(_Document):
    """The prefix layer: salts for the engine's own cache."""

    binding: str
    """Its keyspace is used only when the record names this binding for it; see `keys.prefix`."""
    paths: tuple[str, ...]
    """Paths whose requests the engine takes a salt in."""
    shared_routes: tuple[str, ...] = ()
    """Names of the routes on which a client may ask for the salt that all tenants share."""


class GatewayPolicy(_Document):
    """All that a gateway enacts."""

    cache: str
    """`namespace/name` of the InferenceCache, for logs and metrics."""
    cache_id: str
    """Must equal the record's; a record of another cache is refused."""
    key_id: str
    """Names the digest key that goes with this policy; another mounted key is not used with it."""
    binding: str
    """A keyspace is used only when the record names this binding for it; see `keys.fingerprints`."""
    model: str
    model_aliases: tuple[str, ...] = ()
    upstream: UpstreamPolicy
    tenancy: TenancyPolicy
    routes: tuple[RoutePolicy, ...]
    exact: ExactPolicy | None
    semantic: SemanticPolicy | None = None
    embedder: EmbedderPolicy | None = None
    embedding: EmbeddingPolicy | None = None
    qdrant: QdrantPolicy | None = None
    postgres: PostgresPolicy | None = None
    prefix: PrefixPolicy | None = None
    total_budget_seconds: float
    coalesce_timeout_seconds: float = 2.0
    """Longest wait for the same request in another gateway."""
    sweep: SweepPolicy | None = None
    """None: as its defaults say."""
    max_cacheable_body_bytes: int
    max_body_bytes: int

    def to_json(self) -> str:
        """Render as JSON; the same policy gives the same text, whatever later releases can say besides."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> GatewayPolicy:
        """Read what `to_json` wrote; raises InvalidDocument for anything else."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as e:
            raise InvalidDocument(f"not a gateway policy: {e}") from e
