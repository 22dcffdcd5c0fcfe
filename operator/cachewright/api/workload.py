"""How the pods we run are placed and sized: the same fields on every component."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, WithJsonSchema

from cachewright.api.base import ApiModel, Rule
from cachewright.api.quantities import IntOrQuantity
from cachewright.api.references import ObjectName

ImageReference = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[!-~]+$")]
"""A container image, such as `valkey/valkey:8.1`."""

LabelKey = Annotated[str, Field(min_length=1, max_length=316)]
LabelValue = Annotated[str, Field(max_length=63)]

ResourceName = Annotated[str, Field(min_length=1, max_length=253)]

Affinity = Annotated[
    dict[str, JsonValue],
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""A pod's `affinity`, passed on as it is; the API server checks it when the pods are made."""


class ResourceRequirements(ApiModel):
    """CPU and memory that a container asks for and may use."""

    requests: dict[ResourceName, IntOrQuantity] | None = Field(default=None, max_length=16)
    """What the scheduler reserves, such as `cpu: 250m`."""
    limits: dict[ResourceName, IntOrQuantity] | None = Field(default=None, max_length=16)
    """What the container may not exceed, such as `memory: 512Mi`."""


class LocalObjectReference(ApiModel):
    """An object of the same namespace, by name."""

    name: ObjectName
    """Name of the object."""


class Toleration(ApiModel):
    """A taint that the pods tolerate, as in a pod's `tolerations`."""

    key: Annotated[str, Field(max_length=316)] | None = None
    """Taint key; empty with operator Exists tolerates every taint."""
    operator: Literal["Exists", "Equal"] | None = None
    """How the key relates to the value; Equal where not given."""
    value: LabelValue | None = None
    """Taint value, with operator Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Taint effect; every effect where not given."""
    toleration_seconds: Annotated[int, Field(ge=0, le=2147483647)] | None = None
    """How long a NoExecute taint is tolerated, in seconds; for ever where not given."""


class TopologySpreadConstraint(ApiModel):
    """How replicas spread over a topology; the pods' own labels are selected."""

    max_skew: Annotated[int, Field(ge=1, le=100)] = 1
    """Largest difference in replicas between two domains."""
    topology_key: LabelKey
    """Node label that names the domain, such as `topology.kubernetes.io/zone`."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "ScheduleAnyway"
    """What the scheduler does when the spread cannot be kept."""


class PodPlacement(ApiModel):
    """Image, size and place of the pods of one component."""

    image: ImageReference | None = None
    """Container image; the operator's tested default where not given."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled; Kubernetes' default for the tag where not given."""
    image_pull_secrets: Annotated[list[LocalObjectReference], Field(max_length=8)] | None = Field(
        default=None,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    """Secrets for pulling the image."""
    resources: ResourceRequirements | None = None
    """CPU and memory; derived by the operator where not given."""
    node_selector: Annotated[dict[LabelKey, LabelValue], Field(max_length=32)] | None = None
    """Labels a node must carry."""
    tolerations: Annotated[list[Toleration], Field(max_length=32)] | None = Field(
        default=None, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Taints the pods tolerate."""
    affinity: Affinity | None = None
    """Affinity rules, as in a pod's `affinity`."""
    topology_spread_constraints: Annotated[list[TopologySpreadConstraint], Field(max_length=8)] | None = (
        Field(
            default=None,
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["topologyKey", "whenUnsatisfiable"],
            },
        )
    )
    """How replicas spread; over nodes, as far as possible, where not given."""
    priority_class_name: ObjectName | None = None
    """PriorityClass of the pods."""


MEMORY_LIMIT_EXCEEDS_DATA = Rule(
    cel=(
        "!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits)"
        " || quantity(string(self.resources.limits['memory'])).compareTo(quantity(self.maxMemory)) > 0"
    ),
    message="resources.limits.memory must be greater than maxMemory; leave it out to have it derived",
    field=".resources",
)
"""A store whose container limit is no larger than its data is killed instead of evicting."""
