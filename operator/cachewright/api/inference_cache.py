"""`InferenceCache`: the object as a whole, with the rules that span its parts."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from cachewright.api.base import ApiModel, Rule
from cachewright.api.embedder import EmbedderSpec
from cachewright.api.gateway import GatewaySpec
from cachewright.api.layers import LayersSpec
from cachewright.api.limits import Limits
from cachewright.api.model import ModelSpec, UpstreamSpec
from cachewright.api.names import MAX_NAME_LENGTH
from cachewright.api.prompt_template import ObjectPromptTemplate
from cachewright.api.rotation import Epoch, RotationSpec
from cachewright.api.routes import Route
from cachewright.api.status import InferenceCacheStatus
from cachewright.api.store_changes import KEPT_STORES_STAY
from cachewright.api.stores import StoresSpec
from cachewright.api.sweep import SweepSpec
from cachewright.api.tenancy import TenancySpec

UPSTREAM_KEY_NEEDS_SOURCE: Final = Rule(
    cel="!has(self.upstream.apiKeySecretRef) || has(self.tenancy.source)",
    message="upstream.apiKeySecretRef needs tenancy.source, else anybody could use the upstream's key",
    field=".tenancy",
)
UPSTREAM_KEY_XOR_CLIENTS: Final = Rule(
    cel=(
        "!has(self.upstream.apiKeySecretRef) || !has(self.tenancy.source)"
        " || !has(self.tenancy.source.clientCredential)"
    ),
    message=(
        "upstream.apiKeySecretRef and tenancy.source.clientCredential exclude each other:"
        " the upstream must see the client's own credential to judge it"
    ),
    field=".upstream.apiKeySecretRef",
)
EMBEDDING_NEEDS_EMBEDDER: Final = Rule(
    cel="!has(self.layers.embedding) || has(self.embedder)",
    message="layers.embedding needs spec.embedder",
    field=".layers.embedding",
)
COLD_EMBEDDINGS_NEED_POSTGRES: Final = Rule(
    cel=("!has(self.layers.embedding) || !has(self.layers.embedding.cold) || has(self.stores.postgres)"),
    message="layers.embedding.cold: Postgres needs stores.postgres",
    field=".layers.embedding.cold",
)
EMBEDDER_KEY_NEEDS_SOURCE: Final = Rule(
    cel=(
        "!has(self.layers.embedding) || !has(self.embedder) || !has(self.embedder.apiKeySecretRef)"
        " || has(self.tenancy.source)"
    ),
    message=(
        "embedder.apiKeySecretRef with layers.embedding needs tenancy.source,"
        " else anybody could use the embedder's key"
    ),
    field=".tenancy",
)
EMBEDDING_XOR_CREDENTIAL: Final = Rule(
    cel=(
        "!has(self.layers.embedding) || !has(self.tenancy.source)"
        " || !has(self.tenancy.source.clientCredential)"
    ),
    message=(
        "layers.embedding and tenancy.source.clientCredential exclude each other:"
        " only the upstream, which is not asked for vectors, knows whether a credential counts"
    ),
    field=".layers.embedding",
)
ROUTE_NAMES_ARE_UNIQUE: Final = Rule(
    cel="!has(self.routes) || self.routes.all(r, self.routes.exists_one(s, s.name == r.name))",
    message="routes must have unique names",
    field=".routes",
)
REDIS_OWNERSHIP_IS_IMMUTABLE: Final = Rule(
    cel="has(self.stores.redis.managed) == has(oldSelf.stores.redis.managed)",
    message="stores.redis cannot change between managed and external; create a new InferenceCache instead",
    field=".stores.redis",
)
REDIS_FLAVOR_IS_IMMUTABLE: Final = Rule(
    cel=(
        "!has(self.stores.redis.managed) || !has(oldSelf.stores.redis.managed)"
        " || self.stores.redis.managed.flavor == oldSelf.stores.redis.managed.flavor"
    ),
    message="stores.redis.managed.flavor is immutable; create a new InferenceCache instead",
    field=".stores.redis.managed.flavor",
)
CACHE_ID_IS_IMMUTABLE: Final = Rule(
    cel="!has(oldSelf.cacheID) || has(self.cacheID) && self.cacheID == oldSelf.cacheID",
    message="cacheID is immutable",
    field=".cacheID",
)
FENCE_NEEDS_WORKLOAD: Final = Rule(
    cel=("!has(self.rotation.fence) || self.rotation.fence != 'Workload' || has(self.model.workloadRef)"),
    message="rotation.fence Workload needs model.workloadRef",
    field=".model.workloadRef",
)
AUTO_NEEDS_FENCE: Final = Rule(
    cel=(
        "self.model.version != 'Auto' || has(self.model.workloadRef)"
        " && (!has(self.rotation.fence) || self.rotation.fence == 'Workload')"
    ),
    message="model.version Auto needs model.workloadRef, and rotation.fence Workload or none given",
    field=".model.version",
)
SEMANTIC_NEEDS_EMBEDDER: Final = Rule(
    cel="!has(self.layers.semantic) || has(self.embedder)",
    message="layers.semantic needs embedder; add embedder: {builtin: {}}",
    field=".embedder",
)
SEMANTIC_NEEDS_ITS_STORE: Final = Rule(
    cel=(
        "!has(self.layers.semantic)"
        " || (self.layers.semantic.store == 'Qdrant' ? has(self.stores.qdrant) : has(self.stores.postgres))"
    ),
    message="layers.semantic.store must be one of the stores that are declared",
    field=".layers.semantic.store",
)
SEMANTIC_ROUTES_NEED_THE_LAYER: Final = Rule(
    cel=(
        "!has(self.routes) || has(self.layers.semantic)"
        " || self.routes.all(r, !r.layers.exists(l, l == 'Semantic'))"
    ),
    message="routes with the layer Semantic need layers.semantic",
    field=".routes",
)
PREFIX_NEEDS_WORKLOAD: Final = Rule(
    cel="!has(self.layers.prefix) || has(self.layers.prefix.workloadRef) || has(self.model.workloadRef)",
    message="layers.prefix needs model.workloadRef, or a workloadRef of its own",
    field=".layers.prefix.workloadRef",
)
_OWN_REF: Final = "self.layers.prefix.workloadRef"
_MODELS_REF: Final = "self.model.workloadRef"
_PREFIX_KIND: Final = (
    f"(has({_OWN_REF}) ? {_OWN_REF}.apiVersion + ' ' + {_OWN_REF}.kind"
    f" : {_MODELS_REF}.apiVersion + ' ' + {_MODELS_REF}.kind)"
)
_PREFIX_IS_PATCHED: Final = (
    "has(self.layers.prefix) && self.layers.prefix.delivery == 'Patch'"
    " && (has(self.layers.prefix.workloadRef) || has(self.model.workloadRef))"
)
PREFIX_PATCHES_WORKLOADS: Final = Rule(
    cel=(
        f"!({_PREFIX_IS_PATCHED}) || {_PREFIX_KIND} in ["
        "'apps/v1 Deployment', 'apps/v1 StatefulSet', 'production-stack.vllm.ai/v1alpha1 VLLMRuntime',"
        " 'serving.kserve.io/v1alpha1 LLMInferenceService',"
        " 'serving.kserve.io/v1alpha2 LLMInferenceService']"
    ),
    message=(
        "delivery Patch is for Deployment, StatefulSet, VLLMRuntime and LLMInferenceService; choose another"
        " delivery"
    ),
    field=".layers.prefix.delivery",
)
PREFIX_STACKS_RUN_VLLM: Final = Rule(
    cel=(
        f"!({_PREFIX_IS_PATCHED}) || self.layers.prefix.engine == 'VLLM'"
        f" || {_PREFIX_KIND}.startsWith('apps/v1 ')"
    ),
    message="delivery Patch of VLLMRuntime and LLMInferenceService is for engine VLLM",
    field=".layers.prefix.engine",
)
SHARED_SALTS_NEED_THEIR_ROUTES: Final = Rule(
    cel=(
        "!has(self.layers.prefix) || self.layers.prefix.sharedSaltFor.all(n,"
        " has(self.routes) && size(self.routes) > 0 ? self.routes.exists(r, r.name == n) : n == 'default')"
    ),
    message="layers.prefix.sharedSaltFor must name routes of this object, or default where it has none",
    field=".layers.prefix.sharedSaltFor",
)
NAME_IS_SHORT: Final = Rule(
    cel=f"self.metadata.name.size() <= {MAX_NAME_LENGTH}",
    message=f"metadata.name must be at most {MAX_NAME_LENGTH} characters, to leave room for suffixes",
    field=".metadata.name",
)
NAME_IS_A_LABEL: Final = Rule(
    cel="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    message="metadata.name must be lower-case letters, digits and dashes, and start with a letter",
    field=".metadata.name",
)


class InferenceCacheSpec(ApiModel):
    """What is cached, for whom, where, and for how long."""

    rules = (
        UPSTREAM_KEY_NEEDS_SOURCE,
        UPSTREAM_KEY_XOR_CLIENTS,
        EMBEDDING_NEEDS_EMBEDDER,
        COLD_EMBEDDINGS_NEED_POSTGRES,
        EMBEDDER_KEY_NEEDS_SOURCE,
        EMBEDDING_XOR_CREDENTIAL,
        ROUTE_NAMES_ARE_UNIQUE,
        SEMANTIC_NEEDS_EMBEDDER,
        SEMANTIC_NEEDS_ITS_STORE,
        SEMANTIC_ROUTES_NEED_THE_LAYER,
        PREFIX_NEEDS_WORKLOAD,
        PREFIX_PATCHES_WORKLOADS,
        PREFIX_STACKS_RUN_VLLM,
        SHARED_SALTS_NEED_THEIR_ROUTES,
        REDIS_OWNERSHIP_IS_IMMUTABLE,
        REDIS_FLAVOR_IS_IMMUTABLE,
        *KEPT_STORES_STAY,
        CACHE_ID_IS_IMMUTABLE,
        FENCE_NEEDS_WORKLOAD,
        AUTO_NEEDS_FENCE,
    )

    model: ModelSpec
    """The model whose answers are cached."""
    prompt_template: ObjectPromptTemplate | None = None
    """The template that every prompt is made with, where the requests do not show it."""
    cache_id: Annotated[str, Field(max_length=16, pattern=r"^[0-9a-f]{16}$")] | None = Field(
        default=None, alias="cacheID"
    )
    """Id of the cache in the keys of its stores, 16 hex digits; where it is left out, it comes from the
    object's uid, and `status.cacheID` shows it. Given to an object made anew, it takes over what an earlier
    one left behind: numbers go on, and what it retained or was deleting is looked after. One object at a time
    may hold it."""
    epoch: Epoch = 0
    """Raise it to revoke every entry of every layer at once: nothing is retained, and there is no way back.
    For answers that must never be seen again, or weights that were replaced in place. Lowering it does
    nothing."""
    rotation: RotationSpec = Field(default_factory=RotationSpec)
    """How keyspaces are rotated, retained and brought back."""
    upstream: UpstreamSpec
    """Where answers come from."""
    tenancy: TenancySpec
    """Which requests may share answers."""
    routes: Annotated[list[Route], Field(max_length=32)] | None = Field(
        default=None, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Rules per kind of request, first match wins; without routes, one default route for
    `/v1/chat/completions`."""
    embedder: EmbedderSpec | None = None
    """What turns texts into vectors, for layers that keep vectors."""
    stores: StoresSpec
    """Where entries are kept."""
    layers: LayersSpec
    """What is cached, and for how long."""
    limits: Limits = Field(default_factory=Limits)
    """What the cache may cost a request."""
    sweep: SweepSpec = Field(default_factory=SweepSpec)
    """How what nobody can reach any more is removed."""
    gateway: GatewaySpec = Field(default_factory=GatewaySpec)
    """The caching gateway's pods."""
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """What happens to entries in external stores when the object is deleted. Retain: they expire by
    their TTL; no finalizer is set. Delete: the gateways stop, and a Job removes every entry; the object stays
    until it has ended, for five minutes at most."""
    suspend: bool = False
    """True: change nothing, and say so in status. Only whether answers may be stored still follows the pods
    of `model.workloadRef`."""


class ObjectMeta(ApiModel):
    """The part of `metadata` that we read; the rest is the API server's business."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the object."""
    namespace: Annotated[str, Field(max_length=63)] = "default"
    """Namespace of the object and of everything made for it."""
    uid: str = ""
    """Unique id, set by the API server; empty without a cluster."""
    generation: int = 0
    """Rises with each change of the spec."""
    deletion_timestamp: str | None = None
    """Set while the object is being deleted."""


class InferenceCache(ApiModel):
    """Cache layers in front of one model.

    It declares TTLs, tenant scope and model version; the operator runs the stores and the gateway.
    """

    rules = (NAME_IS_SHORT, NAME_IS_A_LABEL)

    api_version: Literal["cachewright.dev/v1alpha1"] = "cachewright.dev/v1alpha1"
    """Version of this schema."""
    kind: Literal["InferenceCache"] = "InferenceCache"
    """Kind of this object."""
    metadata: ObjectMeta
    """Name, namespace and the like."""
    spec: InferenceCacheSpec
    """What is wanted."""
    status: InferenceCacheStatus | None = None
    """What has been seen."""
