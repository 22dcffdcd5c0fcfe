"""From an InferenceCache to the policy document of its gateways. Called by `render` and by local mode."""

from __future__ import annotations

from typing import Final, Literal

from cachewright.api.durations import parse_duration_seconds
from cachewright.api.embedder import EmbedderSpec
from cachewright.api.inference_cache import InferenceCache, InferenceCacheSpec
from cachewright.api.model import UpstreamSpec
from cachewright.api.names import qdrant_url
from cachewright.api.quantities import parse_bytes
from cachewright.api.routes import Route
from cachewright.api.stores import StoresSpec
from cachewright.api.sweep import SweepSpec
from cachewright.api.tenancy import TenancySpec, UserSource
from cachewright.engines.salts import salt_paths, why_no_salt
from cachewright.engines.settings import Engine
from cachewright.engines.versions import EngineVersion
from cachewright.keys.embedding import embedding_binding
from cachewright.keys.embedding_identity import identity_of
from cachewright.keys.fingerprints import exact_binding, semantic_binding
from cachewright.keys.prefix import prefix_binding
from cachewright.policy.document import (
    DEFAULT_VARY_HEADERS,
    EmbedderPolicy,
    EmbeddingPolicy,
    ExactPolicy,
    GatewayPolicy,
    PostgresPolicy,
    PrefixPolicy,
    QdrantPolicy,
    RoutePolicy,
    SemanticPolicy,
    SweepPolicy,
    TenancyPolicy,
    UpstreamPolicy,
)
from cachewright.policy.thresholds import threshold_of

DEFAULT_ROUTE = RoutePolicy(name="default", path="/v1/chat/completions", layers=("Exact",))
"""Used when the object names no routes."""

BUILTIN_EMBEDDER_PORT: Final = 8091
"""Where the built-in model listens inside a gateway's pod, on the loopback interface alone."""

EMBEDDER_TIMEOUT_SECONDS: Final = 10.0
"""Used where the object says nothing."""


def build_policy(cache: InferenceCache, cache_id: str, key_id: str) -> GatewayPolicy:
    """Resolve everything a gateway enacts; `cache_id` comes from the record, `key_id` from the digest key."""
    spec = cache.spec
    return GatewayPolicy(
        cache=f"{cache.metadata.namespace}/{cache.metadata.name}",
        cache_id=cache_id,
        key_id=key_id,
        binding=exact_binding(spec, key_id),
        model=spec.model.name,
        model_aliases=tuple(spec.model.aliases),
        upstream=_upstream(spec.upstream),
        tenancy=_tenancy(spec.tenancy),
        routes=_routes(spec),
        exact=_exact(spec),
        semantic=_semantic(spec, key_id),
        embedder=_embedder(spec.embedder) if spec.embedder else None,
        embedding=_embedding(spec, key_id),
        qdrant=_qdrant(cache),
        postgres=_postgres(spec.stores),
        prefix=_prefix(spec, key_id),
        total_budget_seconds=parse_duration_seconds(spec.limits.budget.total),
        coalesce_timeout_seconds=parse_duration_seconds(spec.limits.coalesce_timeout),
        sweep=_sweep(spec.sweep),
        max_cacheable_body_bytes=parse_bytes(spec.limits.max_cacheable_body),
        max_body_bytes=parse_bytes(spec.limits.max_body),
    )


def _upstream(upstream: UpstreamSpec) -> UpstreamPolicy:
    extra = [name.lower() for name in upstream.vary_headers]
    return UpstreamPolicy(
        url=upstream.url.rstrip("/"),
        timeout_seconds=parse_duration_seconds(upstream.timeout),
        sends_own_key=upstream.api_key_secret_ref is not None,
        has_own_ca=upstream.ca_secret_ref is not None,
        allowed_paths=tuple(upstream.allowed_paths),
        vary_headers=tuple(sorted({*DEFAULT_VARY_HEADERS, *extra})),
    )


def _tenancy(tenancy: TenancySpec) -> TenancyPolicy:
    source = tenancy.source
    credential = source.client_credential if source else None
    return TenancyPolicy(
        mode=tenancy.mode,
        trusted_header=source.trusted_header.name.lower() if source and source.trusted_header else None,
        api_keys=bool(source and source.api_keys),
        client_credential_ttl_seconds=parse_duration_seconds(credential.ttl) if credential else None,
        role_header=tenancy.role.header.lower() if tenancy.role else None,
        user_header=tenancy.user.header.lower() if tenancy.user and tenancy.user.header else None,
        user_field=_user_field(tenancy.user) if tenancy.user else None,
        on_missing=tenancy.on_missing,
    )


def _user_field(user: UserSource) -> Literal["user", "safety_identifier"] | None:
    if user.body_field is None:
        return None
    return "user" if user.body_field == "User" else "safety_identifier"


def _routes(spec: InferenceCacheSpec) -> tuple[RoutePolicy, ...]:
    if not spec.routes:
        layers = ("Exact", "Semantic") if spec.layers.semantic else ("Exact",)
        return (DEFAULT_ROUTE.model_copy(update={"layers": layers}),)
    return tuple(_route(route) for route in spec.routes)


def _route(route: Route) -> RoutePolicy:
    marks = route.extract_documents.between if route.extract_documents else None
    question = route.question.between if route.question else None
    return RoutePolicy(
        name=route.name,
        path=route.match.path,
        layers=tuple(route.layers),
        sampling=route.sampling,
        side_effects=route.side_effects,
        prompt_template=route.prompt_template.version if route.prompt_template else "",
        arm_header=route.experiment.arm_header.lower() if route.experiment else None,
        documents_required=route.documents == "Required",
        documents_between=(marks.start, marks.end) if marks else None,
        question_between=(question.start, question.end) if question else None,
        threshold=route.threshold,
    )


def _sweep(sweep: SweepSpec) -> SweepPolicy | None:
    policy = SweepPolicy(
        interval_seconds=parse_duration_seconds(sweep.interval), keys_per_second=sweep.reclaim_rate
    )
    return None if policy == SweepPolicy() else policy


def _exact(spec: InferenceCacheSpec) -> ExactPolicy | None:
    if spec.layers.exact is None:
        return None
    return ExactPolicy(
        ttl_seconds=parse_duration_seconds(spec.layers.exact.ttl),
        budget_seconds=parse_duration_seconds(spec.limits.budget.exact),
        local_max_entries=spec.layers.exact.local.max_entries,
        local_ttl_seconds=parse_duration_seconds(spec.layers.exact.local.ttl),
    )


def _semantic(spec: InferenceCacheSpec, key_id: str) -> SemanticPolicy | None:
    semantic = spec.layers.semantic
    if semantic is None or spec.embedder is None:
        return None
    return SemanticPolicy(
        binding=semantic_binding(spec, key_id),
        mode=semantic.mode,
        store=semantic.store,
        threshold=threshold_of(semantic, identity_of(spec.embedder)),
        ttl_seconds=parse_duration_seconds(semantic.ttl),
        max_entries=semantic.max_entries,
        max_entries_per_tenant=semantic.max_entries_per_tenant,
        min_seen=semantic.admission.min_seen,
        max_turns=semantic.max_turns,
        guard=tuple(semantic.guard),
        other_languages=semantic.other_languages == "Unguarded",
        expose_similarity=semantic.expose_similarity,
        hnsw_m=semantic.hnsw.m,
        hnsw_ef_construct=semantic.hnsw.ef_construct,
        hnsw_payload_m=semantic.hnsw.payload_m,
        quantization=semantic.quantization,
    )


def _prefix(spec: InferenceCacheSpec, key_id: str) -> PrefixPolicy | None:
    """Return where salts are sent; None also for an engine that would not heed, or even refuse them."""
    prefix = spec.layers.prefix
    if prefix is None or not prefix.tenant_salt:
        return None
    engine = Engine(prefix.engine)
    if why_no_salt(engine, EngineVersion.parse(prefix.engine_version)):
        return None
    return PrefixPolicy(
        binding=prefix_binding(spec, key_id),
        paths=salt_paths(engine),
        shared_routes=tuple(prefix.shared_salt_for),
    )


def _embedder(embedder: EmbedderSpec) -> EmbedderPolicy:
    timeout = embedder.timeout
    return EmbedderPolicy(
        url=(embedder.url or f"http://127.0.0.1:{BUILTIN_EMBEDDER_PORT}/v1").rstrip("/"),
        identity=identity_of(embedder),
        timeout_seconds=parse_duration_seconds(timeout) if timeout else EMBEDDER_TIMEOUT_SECONDS,
        sends_key=embedder.api_key_secret_ref is not None,
        has_own_ca=embedder.ca_secret_ref is not None,
    )


def _embedding(spec: InferenceCacheSpec, key_id: str) -> EmbeddingPolicy | None:
    layer = spec.layers.embedding
    if layer is None or spec.embedder is None:
        return None
    return EmbeddingPolicy(
        binding=embedding_binding(identity_of(spec.embedder), key_id, layer.share_across_tenants),
        hot_ttl_seconds=parse_duration_seconds(layer.hot_ttl),
        shared=layer.share_across_tenants,
        cold=layer.cold is not None,
    )


def _qdrant(cache: InferenceCache) -> QdrantPolicy | None:
    store = cache.spec.stores.qdrant
    if store is None:
        return None
    external = store.external
    if external is None:
        url = qdrant_url(cache.metadata.name, cache.metadata.namespace)
        return QdrantPolicy(url=url, sends_key=True)
    return QdrantPolicy(
        url=external.url.rstrip("/"),
        sends_key=external.api_key_secret_ref is not None,
        has_own_ca=external.ca_secret_ref is not None,
    )


def _postgres(stores: StoresSpec) -> PostgresPolicy | None:
    if stores.postgres is None:
        return None
    external = stores.postgres.external
    return PostgresPolicy(has_own_ca=external is not None and external.ca_secret_ref is not None)
