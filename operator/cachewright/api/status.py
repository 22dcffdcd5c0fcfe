"""`status`: what the operator has seen, written by the operator alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ApiModel

Timestamp = Annotated[
    str,
    Field(max_length=32, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$"),
]
"""A moment in UTC, RFC 3339."""


class Condition(ApiModel):
    """One aspect of the object's state, as in the Kubernetes API conventions."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Which aspect, such as Ready."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    observed_generation: Annotated[int, Field(ge=0)]
    """Generation of the spec that this was seen for."""
    last_transition_time: Timestamp
    """When `status` last changed."""
    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    """One word for programs; docs/conditions.md explains each."""
    message: Annotated[str, Field(max_length=4096)]
    """One sentence for people."""


class LayerStatus(ApiModel):
    """One layer as it is served now."""

    name: Annotated[str, Field(min_length=1, max_length=32)]
    """Name of the layer, such as Exact."""
    keyspace: Annotated[str, Field(min_length=1, max_length=64)]
    """Keyspace whose entries are served, `<id>-<incarnation>`."""
    since: Timestamp
    """When that keyspace became active."""


class RetainedKeyspace(ApiModel):
    """A keyspace that is no longer in use."""

    layer: Annotated[str, Field(min_length=1, max_length=32)]
    """Name of the layer that used it."""
    keyspace: Annotated[str, Field(min_length=1, max_length=64)]
    """Its name, `<id>-<incarnation>`."""
    state: Literal["Retained", "Deleting"]
    """Retained: a rollback brings it back. Deleting: its space is being reclaimed, and nothing brings it
    back."""
    model_version: Annotated[str, Field(max_length=128)] | None = None
    """Version of the model whose answers it holds, where the layer depends on that."""
    until: Timestamp
    """When its retention ends, or, where it is being deleted, when that was decided."""


class PrefixStatus(ApiModel):
    """The prefix cache of the engine, as its pods count."""

    workload: Annotated[str, Field(min_length=1, max_length=320)]
    """Kind and name of the engine's workload."""
    hit_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the prompts' tokens that was found within the last 15 minutes, in steps of 0.05; of the
    requests for Triton. It is written at most every 15 minutes; metrics of the operator tell more."""
    since: Timestamp | None = None
    """When this rate was first seen."""
    flushed: Annotated[str, Field(max_length=64)] | None = None
    """Keyspace since whose coming into use no pod holds older prefixes, with `flush: AfterSwitch`."""


class SweptLayer(ApiModel):
    """What a layer held when the sweep came by, in two digits."""

    name: Annotated[str, Field(min_length=1, max_length=32)]
    """Name of the layer, such as Exact."""
    entries: Annotated[int, Field(ge=0)]
    """Entries of the keyspace in use."""
    retained_entries: Annotated[int, Field(ge=0)]
    """Entries of keyspaces that are no longer in use and not yet gone."""


class SweepStatus(ApiModel):
    """What the last sweep over the cache's keys found; told at most every 15 minutes."""

    ended_at: Timestamp
    """When it ended."""
    removed: Annotated[int, Field(ge=0)]
    """Entries that it removed, since nobody could reach them any more, in two digits."""
    layers: Annotated[list[SweptLayer], Field(max_length=16)] = Field(
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    """What it left."""


class PlannedChange(ApiModel):
    """Something that runs and is about to be changed."""

    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """Its kind, such as StatefulSet."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Its name."""
    effect: Literal["Create", "Live", "Roll", "Remove"]
    """Live: nothing is started anew. Roll: its pods are, a few at a time; a store has only one."""
    fields: Annotated[list[Annotated[str, Field(max_length=256)]], Field(max_length=16)] | None = Field(
        default=None, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Paths of the fields that differ; left out where a field is only taken away."""


class InferenceCacheStatus(ApiModel):
    """What the operator has seen."""

    # No defaults here: the API server would add them, and what is read would differ from what was written.

    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the spec that this status describes."""
    conditions: Annotated[list[Condition], Field(max_length=32)] | None = Field(
        default=None,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    """Ready, Reconciling and Stalled (kstatus), and one per component."""
    sweep: SweepStatus | None = None
    """The last sweep; see `spec.sweep`."""
    planned: Annotated[list[PlannedChange], Field(max_length=16)] | None = Field(
        default=None,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["kind", "name"]},
    )
    """What the operator is about to change of StatefulSets, Deployments and volume claims: written before it
    begins, and gone when it is done. Under `suspend: true`, what it would change otherwise."""
    cache_id: Annotated[str, Field(max_length=16)] | None = Field(default=None, alias="cacheID")
    """Id of the cache in the keys of its stores; see `spec.cacheID`."""
    endpoint: Annotated[str, Field(max_length=512)] | None = None
    """URL that clients use as OpenAI base URL."""
    layers: Annotated[list[LayerStatus], Field(max_length=16)] | None = Field(
        default=None,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    """The layers as they are served now."""
    prefix: PrefixStatus | None = None
    """The engine's prefix cache, with `layers.prefix` and where the metrics of its pods can be read."""
    retained: Annotated[list[RetainedKeyspace], Field(max_length=64)] | None = Field(
        default=None,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["keyspace"]},
    )
    """Keyspaces that are no longer in use and not yet gone, the latest first."""
