"""`layers.prefix`: the prefix cache inside the engine, switched on and kept on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ABOVE_NOTHING, ApiModel, Rule
from cachewright.api.model import WorkloadRef
from cachewright.api.quantities import Quantity
from cachewright.api.routes import RouteName

EngineVersionText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^v?[0-9]{1,6}(\.[0-9]{1,6}){0,2}([-.+]?[A-Za-z][-.+0-9A-Za-z]{0,40})?$",
    ),
]
"""A version as engines name theirs, such as `0.32.0` or `1.3.0rc2`."""

Word = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[ -~]+$")]
"""One word of a command line."""

Flag = Annotated[str, Field(max_length=128, pattern=r"^--[a-z][-_a-z0-9]*$")]
"""A flag, such as `--block-size`."""


class DiskTier(ApiModel):
    """A third tier of blocks, on a disk of the engine's pods."""

    size: Quantity
    """How much of the disk is used."""
    path: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^/[-._/0-9A-Za-z]*$")]
    """Folder in the engine's container; mounting it is the workload's business."""


class BlockEvents(ApiModel):
    """Events of the blocks that the engine stores and drops, for routers that follow them."""

    endpoint: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^(tcp|ipc|inproc)://[!-~]+$")]
    """ZeroMQ endpoint, such as `tcp://*:5557`."""


class EngineMetrics(ApiModel):
    """How the engine's own metrics are read."""

    enabled: bool = True
    """False: the operator reads no metrics of the engine."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the pods where they are; where it is left out, the one that the engine's arguments name, else
    the engine's default."""


class PrefixLayer(ApiModel):
    """The engine's own prefix cache: what it computed for one prompt serves the next that begins alike.

    It changes no answer. A setting that is left out stays as the engine has it; what the engine or its
    version cannot do is named in the condition PrefixCachingReady, and nothing is changed then.
    """

    rules = (
        Rule(
            cel="size(self.sharedSaltFor) == 0 || self.tenantSalt",
            message="sharedSaltFor needs tenantSalt; without it all tenants share",
            field=".sharedSaltFor",
        ),
        Rule(
            cel="!self.tenantSalt || !has(self.connector) || self.connector != 'LMCache'",
            message="connector LMCache does not heed salts; set tenantSalt: false to let tenants share",
            field=".tenantSalt",
        ),
        Rule(
            cel="(self.engine == 'Triton') == has(self.responseCache)",
            message="responseCache is for engine Triton, which needs it; set it there alone",
            field=".responseCache",
        ),
        Rule(
            cel="self.flush == 'Never' || self.engine == 'VLLM' || self.engine == 'SGLang'",
            message="flush is for engines VLLM and SGLang; others have no endpoint for it",
            field=".flush",
        ),
        Rule(
            cel="self.engine != 'Triton' || self.delivery != 'ConfigMap'",
            message="engine Triton reads no file of settings; choose another delivery",
            field=".delivery",
        ),
        Rule(
            cel="self.engine != 'TensorRTLLM' || self.delivery != 'Patch'",
            message="engine TensorRTLLM takes its settings from a file; choose delivery Inject or ConfigMap",
            field=".delivery",
        ),
        Rule(
            cel="self.delivery != 'Patch' || self.rollout == 'Immediate'",
            message="delivery Patch changes the pod template, which rolls its pods; say rollout: Immediate",
            field=".rollout",
        ),
    )

    engine: Literal["VLLM", "SGLang", "TensorRTLLM", "Triton"]
    """The engine. Triton: its response cache, which keeps whole answers of stateless models and knows no
    tenants."""
    engine_version: EngineVersionText
    """Its version, which decides what it understands. One that is newer than those known here is taken to
    understand what the newest of them does, and status says so."""
    delivery: Literal["Inject", "ConfigMap", "Patch"] = "Inject"
    """How the settings reach the engine. Inject: an admission policy of the chart's, which needs Kubernetes
    1.36, adds them to the engine's arguments whenever a pod is made from a template that names them.
    ConfigMap: a file in the ConfigMap `NAME-prefix`, which the engine's pods have to mount and name by
    `--config`; status says what to add. Patch, for older clusters: the operator changes the arguments in the
    pod template of a Deployment or StatefulSet, or in the fields of a VLLMRuntime or LLMInferenceService, and
    puts them back when the layer or the InferenceCache goes; it needs `rollout: Immediate`."""
    rollout: Literal["OnNextRollout", "Immediate"] = "OnNextRollout"
    """When a pod template comes to name the settings. OnNextRollout: with the next change that its user makes
    to it. Immediate: at once, which rolls the engine's pods. The operator rolls pods under Immediate only,
    and back only with `delivery: Patch`; with `delivery: ConfigMap` it rolls none."""
    workload_ref: WorkloadRef | None = None
    """The workload that runs the engine; `model.workloadRef` where it is left out."""
    block_size: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Tokens in a block; smaller ones share more and cost more to look after."""
    hash_algorithm: Literal["SHA256", "SHA256CBOR", "XXHash", "XXHashCBOR"] | None = None
    """How vLLM names blocks. The CBOR forms give the same names in every process, for routers and tiers."""
    eviction: Literal["LRU", "LFU", "SLRU", "Priority", "TLRU"] | None = None
    """Which blocks go first when memory is short."""
    gpu_memory_share: Annotated[float, Field(ge=0, le=1), ABOVE_NOTHING] | None = None
    """Share of the GPU's memory that the engine may take."""
    host_memory: Quantity | None = None
    """Size of a second tier, in the host's memory."""
    connector: Literal["Native", "LMCache"] | None = None
    """Who serves the second tier."""
    disk: DiskTier | None = None
    """A third tier; TensorRT-LLM alone."""
    events: BlockEvents | None = None
    """Events of blocks."""
    tenant_salt: bool = True
    """True: gateways write a salt, as `cache_salt`, into each request. It is the tenant's and the keyspace's,
    so tenants share nothing in the engine's cache, and a new version of the model finds nothing of an old
    one's. False: whatever salt clients send is passed on."""
    shared_salt_for: Annotated[list[RouteName], Field(max_length=32)] = Field(
        default_factory=list, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Routes on which a request with the header `Cachewright-Prefix: shared` gets one salt for all tenants:
    for long system prompts that are no secret. Who shares can tell, by the time to the first token, how
    others' prompts begin on these routes. Without `spec.routes`, the one route is called `default`."""
    report_cached_tokens: bool = True
    """True: answers say in their usage how many tokens came from the cache."""
    flush: Literal["Never", "AfterSwitch"] = "Never"
    """AfterSwitch: when another version or epoch of the model has come into use, pods of the engine that are
    older than that are told to empty their prefix caches, until each of them has. For weights that are
    replaced within running pods, where no salt keeps their prefixes apart. SGLang does it by `/flush_cache`,
    vLLM by `/reset_prefix_cache`, which it has only with VLLM_SERVER_DEV_MODE=1 in its environment; that
    opens further endpoints to whoever reaches the pods, and the operator never sets it."""
    metrics: EngineMetrics | None = None
    """How often prefixes are found: the operator reads the metrics of the engine's pods, once a minute and of
    eight pods at most, and tells the rate in `status.prefix` and in metrics of its own."""
    response_cache: Quantity | None = None
    """Size of Triton's response cache; a model takes part by `response_cache { enable: true }` in its
    config.pbtxt."""
    extra_args: Annotated[list[Word], Field(max_length=64)] = Field(
        default_factory=list, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Words that are appended to the engine's arguments as they are, each flag with its value as
    `--flag=value`."""
    suppress_args: Annotated[list[Flag], Field(max_length=64)] = Field(
        default_factory=list, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Flags of ours that are left out, for engines that differ from what is known here."""
