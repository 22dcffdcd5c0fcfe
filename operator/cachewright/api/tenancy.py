"""`spec.tenancy`: who asks, and who therefore shares answers with whom."""

from __future__ import annotations

from typing import Literal

from cachewright.api.base import ApiModel, Rule
from cachewright.api.references import HeaderName, SecretKeyRef


class TrustedHeader(ApiModel):
    """A header set by a proxy in front that authenticates; trusted by this explicit choice."""

    name: HeaderName
    """Name of the header, such as `X-Tenant-Id`."""


class ApiKeys(ApiModel):
    """API keys handed out to tenants and presented as bearer tokens."""

    secret_ref: SecretKeyRef
    """A Secret's key that holds a YAML or JSON list of `{key, tenant, role}`; `role` is optional."""


class TenancySource(ApiModel):
    """Where the tenant of a request comes from: exactly one of the fields."""

    rules = (
        Rule(
            cel="has(self.trustedHeader) != has(self.apiKeys)",
            message="tenancy.source needs exactly one of trustedHeader and apiKeys",
        ),
    )

    trusted_header: TrustedHeader | None = None
    """A header that an authenticating proxy sets."""
    api_keys: ApiKeys | None = None
    """API keys from a Secret."""


class RoleSource(ApiModel):
    """Where the role of a request comes from."""

    header: HeaderName
    """Name of the header, set by the same trusted party as the tenant."""


class TenancySpec(ApiModel):
    """Which requests may share answers; no tenant, no cache."""

    rules = (
        Rule(
            cel="self.mode == 'Single' || has(self.source)",
            message="tenancy.source is needed when tenancy.mode is Required; add trustedHeader or apiKeys",
            field=".source",
        ),
    )

    mode: Literal["Required", "Single"] = "Required"
    """Required: answers are shared within a tenant only. Single: all requests are one tenant's, and a
    source only authenticates."""
    source: TenancySource | None = None
    """Where the tenant comes from."""
    role: RoleSource | None = None
    """Further partition within a tenant, for answers that depend on the asker's rights."""
    on_missing: Literal["Bypass", "Reject"] = "Bypass"
    """What happens without a single, non-empty tenant. Bypass: answered by the upstream, uncached.
    Reject: 400."""
