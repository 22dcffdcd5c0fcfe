"""`spec.embedder`: what turns texts into vectors."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration
from cachewright.api.model import URL_PATTERN, ModelName
from cachewright.api.references import SecretKeyRef
from cachewright.api.workload import ResourceRequirements

MAX_DIMENSIONS: Final = 16_000
"""Longest vector that PostgreSQL's extension stores; longer ones are unheard of."""


class BuiltinEmbedder(ApiModel):
    """The model that ships with cachewright, on the CPU, beside the gateway in each of its pods.

    It is all-MiniLM-L6-v2 with int8 weights: English, 384 dimensions, 256 tokens.
    """

    resources: ResourceRequirements | None = None
    """CPU and memory of its container; derived by the operator where not given."""


class EmbedderSpec(ApiModel):
    """The embedding model of this cache: `builtin`, or a server that speaks the OpenAI API at `url`."""

    rules = (
        Rule(
            cel="has(self.url) != has(self.builtin)",
            message="embedder needs exactly one of url and builtin",
        ),
        Rule(
            cel="!has(self.url) || (has(self.model) && has(self.dimensions) && has(self.maxTokens))",
            message="embedder.url needs model, dimensions and maxTokens of the model behind it",
            field=".url",
        ),
        Rule(
            cel=(
                "!has(self.builtin) || !(has(self.model) || has(self.revision) || has(self.dimensions)"
                " || has(self.maxTokens) || has(self.timeout) || has(self.apiKeySecretRef)"
                " || has(self.caSecretRef))"
            ),
            message="embedder.builtin excludes the fields that describe a server at url",
            field=".builtin",
        ),
        Rule(
            cel="!has(self.caSecretRef) || !has(self.url) || self.url.startsWith('https://')",
            message="caSecretRef needs an https:// url",
            field=".caSecretRef",
        ),
    )

    url: (
        Annotated[
            str,
            Field(min_length=8, max_length=2048, pattern=URL_PATTERN),
            Rule(cel="isURL(self)", message="must be a URL such as http://tei.ml:8080/v1"),
        ]
        | None
    ) = None
    """Base URL of the OpenAI-compatible API, with its path prefix; `/embeddings` is added to it."""
    model: ModelName | None = None
    """Name of the model in requests to it; with url."""
    revision: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+$")] | None = None
    """Version of the model's weights and settings. Change it, and every layer that keeps vectors starts a
    new keyspace."""
    dimensions: Annotated[int, Field(ge=1, le=MAX_DIMENSIONS)] | None = None
    """Length of the model's vectors; with url. A server that gives another length is asked for this one, and
    refused if it does not comply."""
    max_tokens: Annotated[int, Field(ge=8, le=1_000_000)] | None = None
    """The model's window in tokens, special ones included; with url. A longer text is not embedded for the
    cache, whatever the server would do with it."""
    timeout: Duration | None = None
    """Longest wait for one answer of the server; 10s where not given."""
    api_key_secret_ref: SecretKeyRef | None = None
    """Key sent to the server as bearer token."""
    ca_secret_ref: SecretKeyRef | None = None
    """PEM bundle of the certificate authorities that the server's certificate is checked against."""
    builtin: BuiltinEmbedder | None = None
    """The model that ships with cachewright."""
