"""Users: from a request to the end user whose answers it shares. Pure.

Called by `cacheable`, and by the gateway for the key of a request.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright.policy.body import Body
from cachewright.policy.document import TenancyPolicy


def sets_users_apart(tenancy: TenancyPolicy) -> bool:
    """Tell whether each user has answers of its own."""
    return tenancy.user_header is not None or tenancy.user_field is not None


def find_user(header_values: Sequence[bytes], body: Body, tenancy: TenancyPolicy) -> str | None:
    """Return the user that a request names; empty where users are not set apart, None where it is not clear.

    `header_values` are those of the policy's `user_header`.
    """
    if tenancy.user_header is not None:
        only = header_values[0].strip() if len(header_values) == 1 else b""
        return only.decode("latin-1") or None
    if tenancy.user_field is not None:
        named = body.get(tenancy.user_field)
        return named if isinstance(named, str) and named.strip() else None
    return ""
