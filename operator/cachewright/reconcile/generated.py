"""Values that are generated once and then kept: the digest key, the admin token, the store's passwords. Pure.

What stands in our Secrets wins; only where there is nothing usable does a pass's fresh value come in.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from cachewright.api.names import postgres_name, qdrant_name
from cachewright.reconcile.state import ChildId, Manifest, Observed
from cachewright.render.inputs import RedisCredentials
from cachewright.render.metadata import admin_name, keys_name, redis_name

_DIGEST_KEY: Final = re.compile(r"[0-9a-f]{64}")
_RANDOM_WORD: Final = re.compile(r"[A-Za-z0-9_-]{32,}")


def digest_key_of(observed: Observed) -> str:
    """Return the cache's digest key, 64 hex digits."""
    key = secret_text(observed.children, keys_name(observed.name), "digest-key")
    return key if _DIGEST_KEY.fullmatch(key) else observed.fresh.digest_key


def has_digest_key(observed: Observed) -> bool:
    """Tell whether the digest key in use is kept already."""
    return bool(_DIGEST_KEY.fullmatch(secret_text(observed.children, keys_name(observed.name), "digest-key")))


def admin_token_of(observed: Observed) -> str:
    """Return the token of the gateways' admin port."""
    token = secret_text(observed.children, admin_name(observed.name), "token")
    return token if _RANDOM_WORD.fullmatch(token) else observed.fresh.admin_token


def redis_credentials_of(observed: Observed) -> RedisCredentials:
    """Return the managed store's passwords."""
    name = redis_name(observed.name)
    gateway = secret_text(observed.children, name, "gateway-password")
    operator = secret_text(observed.children, name, "operator-password")
    return RedisCredentials(
        gateway_password=gateway if _RANDOM_WORD.fullmatch(gateway) else observed.fresh.gateway_password,
        operator_password=operator if _RANDOM_WORD.fullmatch(operator) else observed.fresh.operator_password,
    )


def qdrant_api_key_of(observed: Observed) -> str:
    """Return the managed Qdrant's API key."""
    key = secret_text(observed.children, qdrant_name(observed.name), "api-key")
    return key if _RANDOM_WORD.fullmatch(key) else observed.fresh.qdrant_api_key


def postgres_password_of(observed: Observed) -> str:
    """Return the managed PostgreSQL's password."""
    password = secret_text(observed.children, postgres_name(observed.name), "password")
    return password if _RANDOM_WORD.fullmatch(password) else observed.fresh.postgres_password


def secret_text(children: Mapping[ChildId, Manifest], secret: str, key: str) -> str:
    """Read a key of a Secret of ours; empty where there is none, or nothing readable in it."""
    data = (children.get(("Secret", secret)) or {}).get("data") or {}
    try:
        return base64.b64decode(data.get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
