"""`spec.promptTemplate`: the template that every prompt of a cache is made with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.references import DataKey, ObjectName


class ConfigMapKeyRef(ApiModel):
    """One key of a ConfigMap in the same namespace."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: DataKey
    """Key inside its data."""


class ObjectPromptTemplate(ApiModel):
    """The template that every prompt is made with, where requests do not show it."""

    rules = (
        Rule(
            cel="has(self.version) != has(self.fromConfigMap)",
            message="promptTemplate needs exactly one of version and fromConfigMap",
        ),
    )

    version: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+$")] | None = None
    """Version of the template; change it, and the layers whose answers depend on it start a new keyspace."""
    from_config_map: ConfigMapKeyRef | None = None
    """Where the template itself is kept: its content counts in place of a version."""
