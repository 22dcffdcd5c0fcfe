"""From the policy to the embedder it names, importing a runtime only where it is used.

Called by the gateway, which holds neither the model nor its libraries in memory unless local mode says so.
"""

from __future__ import annotations

import ssl

from cachewright.embedders.protocol import Embedder
from cachewright.errors import InvalidDocument
from cachewright.policy.document import EmbedderPolicy


def open_embedder(policy: EmbedderPolicy, api_key: str | None = None, ca: str | None = None) -> Embedder:
    """Open an embedder that connects, or loads, when it is first used; to be called inside a running loop.

    `ca` is PEM. Raises InvalidDocument where it is not.
    """
    if policy.url is None:
        from cachewright.embedders.builtin import BuiltinEmbedder

        return BuiltinEmbedder()
    from cachewright.embedders.endpoint import EndpointEmbedder, EndpointSettings

    settings = EndpointSettings(policy.url, policy.identity, policy.timeout_seconds, api_key)
    return EndpointEmbedder(settings, tls_context(ca) if ca else None)


def tls_context(ca: str) -> ssl.SSLContext:
    """Trust the authorities in a PEM text alone; raises InvalidDocument where it is none."""
    try:
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError) as e:
        raise InvalidDocument(f"the embedder's certificate authorities are not PEM: {e}") from e
