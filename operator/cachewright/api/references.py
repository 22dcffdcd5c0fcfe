"""References from an InferenceCache to Secrets and ConfigMaps of its own namespace."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cachewright.api.base import ApiModel

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""The name of a Kubernetes object."""

DataKey = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
"""A key inside a Secret's or ConfigMap's data."""

HeaderName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
"""The name of an HTTP header (RFC 9110, section 5.1)."""


class SecretKeyRef(ApiModel):
    """One key of a Secret in the same namespace, which must carry the label `cachewright.dev/use: "true"`."""

    name: ObjectName
    """Name of the Secret."""
    key: DataKey
    """Key inside the Secret's data."""
