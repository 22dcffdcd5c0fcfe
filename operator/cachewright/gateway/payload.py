"""A request's body that was read whole: as it goes upstream, and as the cache reads it. Pure.

A compressed body is unpacked for the cache alone and goes upstream as it was sent; one that we write anew
goes plain. Made by the flow.
"""

from __future__ import annotations

from dataclasses import dataclass

from cachewright.policy.content_encoding import decode_content


@dataclass(frozen=True, slots=True)
class Payload:
    """One body."""

    sent: bytes
    """What goes upstream."""
    plain: bytes
    """What it says, unpacked."""
    is_rewritten: bool = False
    """True: it is ours, so the client's Content-Encoding does not hold for it."""

    @classmethod
    def unpack(cls, sent: bytes, encoding: str, limit_bytes: int) -> Payload | None:
        """Read a body as it arrived; None where it cannot be unpacked within the limit."""
        plain = decode_content(sent, encoding, limit_bytes)
        return None if plain is None else cls(sent, plain)

    def rewritten(self, plain: bytes) -> Payload:
        """Return what goes upstream instead; the same where nothing was changed."""
        return self if plain == self.plain else Payload(plain, plain, is_rewritten=True)
