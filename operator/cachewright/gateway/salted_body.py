"""Bodies that are to carry a salt: read as far as that needs, or refused where it cannot be written.

Called by the flow for what is passed on uncached; what may be cached was read and parsed before.
"""

from __future__ import annotations

from cachewright.errors import BodyTooLarge
from cachewright.gateway.exchange import Exchange
from cachewright.gateway.payload import Payload
from cachewright.gateway.reply import Reply, error_reply
from cachewright.policy.salted_request import opens_object

_PLAIN = ("", "identity")


async def read_to_salt(exchange: Exchange, payload: Payload | None) -> Payload | Reply | None:
    """Return a body that can be salted, None where it is long and salted as it passes by, or the refusal.

    What is refused is nothing an engine reads: no JSON object in UTF-8, or one that cannot be unpacked. Sent
    on without a salt, it might be read after all, and share with others. Raises BodyTooLarge and ClientGone.
    """
    policy, encoding = exchange.serving.policy, exchange.envelope().content_encoding
    raw = payload.sent if payload is not None else None
    if raw is None:
        raw = await exchange.body.read_up_to(policy.max_cacheable_body_bytes)
    if raw is None and encoding in _PLAIN:
        return None if opens_object(exchange.body.beginning) else _refusal()
    if raw is None:
        raw = await exchange.body.read_up_to(policy.max_body_bytes)
        if raw is None:
            raise BodyTooLarge("the request body is too large")
    if payload is None or (payload.plain is payload.sent and encoding not in _PLAIN):
        payload = Payload.unpack(raw, encoding, policy.max_body_bytes)
    return payload if payload is not None and opens_object(payload.plain) else _refusal()


def _refusal() -> Reply:
    return error_reply(
        400, "not_an_object", "the request body must be a JSON object in UTF-8, plain or compressed with gzip"
    )
