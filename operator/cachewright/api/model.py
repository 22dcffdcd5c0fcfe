"""`spec.model` and `spec.upstream`: which model is cached, and where its answers come from."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration
from cachewright.api.references import HeaderName, ObjectName, SecretKeyRef
from cachewright.api.workload import LabelKey, LabelValue

ModelName = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[!-~]+$")]
"""A model's name as requests and answers carry it."""

UpstreamPath = Annotated[str, Field(min_length=1, max_length=256, pattern=r'^/[!-"$->@-~]*$')]
"""An absolute URL path without query or fragment."""

URL_PATTERN: Final = r'^https?://([-._A-Za-z0-9]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[!-"$->@-~]*)?$'
"""An http(s) URL without user, query and fragment."""


class PodSelector(ApiModel):
    """Which pods belong to a workload."""

    rules = (
        Rule(
            cel="self.matchLabels.size() > 0",
            message="matchLabels needs at least one label, else it would select every pod",
            field=".matchLabels",
        ),
    )

    match_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=16)]
    """Labels that every pod of the workload carries, and no other pod."""


class WorkloadRef(ApiModel):
    """The object whose pods run the model, in the same namespace."""

    rules = (
        Rule(
            cel=(
                "has(self.podSelector)"
                " || self.apiVersion == 'apps/v1' && self.kind in ['Deployment', 'StatefulSet']"
            ),
            message="podSelector is needed for kinds other than Deployment and StatefulSet of apps/v1",
            field=".podSelector",
        ),
    )

    api_version: Annotated[str, Field(max_length=128, pattern=r"^([-a-z0-9.]+/)?v[0-9]+[a-z0-9]*$")] = (
        "apps/v1"
    )
    """Its API version."""
    kind: Annotated[str, Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")] = "Deployment"
    """Its kind: a Deployment or StatefulSet, whose own selector finds the pods, or, with `podSelector`,
    anything that owns pods, such as a LeaderWorkerSet, RayCluster or InferenceService."""
    name: ObjectName
    """Its name."""
    container: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] | None = None
    """The container that runs the model: it alone tells versions apart then. Without it every container
    counts, those that initialise the pod included."""
    pod_selector: PodSelector | None = None
    """Which pods are meant, where the object's own selector does not tell."""


class ModelSpec(ApiModel):
    """The model whose answers are cached."""

    name: ModelName
    """Name that requests ask for; requests for other models are passed on uncached."""
    aliases: Annotated[list[ModelName], Field(max_length=32)] = Field(
        default_factory=list, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Further names the upstream may answer with, such as a dated snapshot of the same model."""
    version: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
    """Version of the model's weights and settings; change it, and every layer that depends on the model
    starts a new keyspace. Auto: whatever the pods of `workloadRef` run is a version of its own."""
    workload_ref: WorkloadRef | None = None
    """The workload that runs the model. Its pods are watched: answers are stored only while all of them run
    what the keyspace in use was made by, and a new version is switched to once all of them run another."""


class UpstreamSpec(ApiModel):
    """The engine or provider that answers what the cache cannot."""

    rules = (
        Rule(
            cel="!has(self.caSecretRef) || self.url.startsWith('https://')",
            message="caSecretRef needs an https:// url",
            field=".caSecretRef",
        ),
    )

    url: Annotated[
        str,
        Field(min_length=8, max_length=2048, pattern=URL_PATTERN),
        Rule(cel="isURL(self)", message="must be a URL such as http://vllm.ml:8000/v1"),
    ]
    """Base URL of the OpenAI-compatible API, with its path prefix, such as `http://vllm.ml:8000/v1`."""
    timeout: Duration = "120s"
    """Longest wait for the upstream's first byte, and between two parts of a stream."""
    api_key_secret_ref: SecretKeyRef | None = None
    """Key sent to the upstream as bearer token in place of the client's; needs a tenancy source."""
    ca_secret_ref: SecretKeyRef | None = None
    """PEM bundle of the certificate authorities that the upstream's certificate is checked against."""
    allowed_paths: Annotated[list[UpstreamPath], Field(max_length=64)] = Field(
        default_factory=list, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Paths beyond inference (below the gateway's root, such as `/v1/files`) that are passed on."""
    vary_headers: Annotated[list[HeaderName], Field(max_length=16)] = Field(
        default_factory=list, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Request headers that change the answer; part of every key, beside OpenAI-Organization,
    OpenAI-Project, OpenAI-Beta and api-version."""
