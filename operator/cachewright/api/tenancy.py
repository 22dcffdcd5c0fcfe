"""`spec.tenancy`: who asks, and who therefore shares answers with whom."""

from __future__ import annotations

from typing import Literal

from cachewright.api.base import ApiModel, Rule
from cachewright.api.durations import Duration
from cachewright.api.references import HeaderName, SecretKeyRef


class TrustedHeader(ApiModel):
    """A header set by a proxy in front that authenticates; trusted by this explicit choice."""

    name: HeaderName
    """Name of the header, such as `X-Tenant-Id`."""


class ApiKeys(ApiModel):
    """API keys handed out to tenants and presented as bearer tokens."""

    secret_ref: SecretKeyRef
    """A Secret's key that holds a YAML or JSON list of `{key, tenant, role}`; `role` is optional."""


class ClientCredential(ApiModel):
    """The credential that clients present to the upstream in `Authorization`; it is passed through."""

    ttl: Duration = "5m"
    """How long a credential counts after the upstream last answered it with a 2xx. Only then is it served
    from the cache, so a credential that the upstream revokes is refused at the latest after this time."""


class TenancySource(ApiModel):
    """Where the tenant of a request comes from: exactly one of the fields."""

    rules = (
        Rule(
            cel=(
                "(has(self.trustedHeader) ? 1 : 0) + (has(self.apiKeys) ? 1 : 0)"
                " + (has(self.clientCredential) ? 1 : 0) == 1"
            ),
            message="tenancy.source needs exactly one of trustedHeader, apiKeys and clientCredential",
        ),
    )

    trusted_header: TrustedHeader | None = None
    """A header that an authenticating proxy sets."""
    api_keys: ApiKeys | None = None
    """API keys from a Secret."""
    client_credential: ClientCredential | None = None
    """The upstream's own credentials: each is a tenant. Not together with `upstream.apiKeySecretRef`."""


class RoleSource(ApiModel):
    """Where the role of a request comes from."""

    header: HeaderName
    """Name of the header, set by the same trusted party as the tenant."""


class UserSource(ApiModel):
    """Where the end user of a request comes from: exactly one of the fields."""

    rules = (
        Rule(
            cel="has(self.header) != has(self.bodyField)",
            message="tenancy.user needs exactly one of header and bodyField",
        ),
    )

    header: HeaderName | None = None
    """Name of the header, set by the same trusted party as the tenant."""
    body_field: Literal["User", "SafetyIdentifier"] | None = None
    """The field of the request that names the user: `user`, or OpenAI's later `safety_identifier`."""


class TenancySpec(ApiModel):
    """Which requests may share answers; no tenant, no cache."""

    rules = (
        Rule(
            cel="self.mode == 'Single' || has(self.source)",
            message="tenancy.source is needed when tenancy.mode is Required; add one",
            field=".source",
        ),
        Rule(
            cel=(
                "self.mode == 'Required' || !has(self.role) || !has(self.source)"
                " || !has(self.source.clientCredential)"
            ),
            message=(
                "tenancy.role with clientCredential needs tenancy.mode Required,"
                " else clients could claim each other's roles"
            ),
            field=".role",
        ),
        Rule(
            cel=(
                "self.mode == 'Required' || !has(self.user) || !has(self.source)"
                " || !has(self.source.clientCredential)"
            ),
            message=(
                "tenancy.user with clientCredential needs tenancy.mode Required,"
                " else clients could pass for each other's users"
            ),
            field=".user",
        ),
    )

    mode: Literal["Required", "Single"] = "Required"
    """Required: answers are shared within a tenant only. Single: all requests are one tenant's, and a
    source only authenticates."""
    source: TenancySource | None = None
    """Where the tenant comes from."""
    role: RoleSource | None = None
    """Further partition within a tenant, for answers that depend on the asker's rights."""
    user: UserSource | None = None
    """Answers are shared among the requests of one user only, and can be retracted by user. A request that
    names none is not cached. Without it users share answers, and what one of them asked cannot be told."""
    on_missing: Literal["Bypass", "Reject"] = "Bypass"
    """What happens without a single, non-empty tenant. Bypass: answered by the upstream, uncached.
    Reject: 400."""
