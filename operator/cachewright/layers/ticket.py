"""Tickets: what the semantic layer keeps in Redis for each of its entries elsewhere.

    nonce, length of what follows, the counters that the entry's name depends on, links

Without its ticket an entry is never served. The nonce tells it from one that it replaced; the counters tell a
sweep that nobody comes to it any more; links, which are appended one by one, lead to the exact entries that
were copied from it. Called by the semantic layer, by its writes and by the sweep.
"""

from __future__ import annotations

import struct
from typing import Final

from cachewright.keys.entry_link import LINK_BYTES
from cachewright.layers.entry import decode_dependence

NONCE_BYTES: Final = 16

MOST_LINKS: Final = 256
"""Exact entries made from one entry; each is noted, to be removed with it."""

_LENGTH: Final = struct.Struct(">H")
_HEAD_BYTES: Final = NONCE_BYTES + _LENGTH.size


def encode_ticket(nonce: bytes, dependence: bytes) -> bytes:
    """Render a ticket without links; `dependence` as `entry.encode_dependence` writes it."""
    return nonce + _LENGTH.pack(len(dependence)) + dependence


def nonce_of(ticket: bytes) -> bytes:
    """Return the nonce that a ticket begins with."""
    return ticket[:NONCE_BYTES]


def links_of(ticket: bytes) -> bytes:
    """Return the links of a ticket, one after another."""
    return ticket[ticket_head_bytes(ticket) :] if len(ticket) >= _HEAD_BYTES else b""


def most_bytes_of(ticket: bytes) -> int:
    """Return how long a ticket may grow."""
    return ticket_head_bytes(ticket) + MOST_LINKS * LINK_BYTES


def ticket_head_bytes(head: bytes) -> int:
    """Tell how many of a ticket's first bytes hold nonce and counters; 0 where it is none."""
    if len(head) < _HEAD_BYTES:
        return 0
    (length,) = _LENGTH.unpack_from(head, NONCE_BYTES)
    return _HEAD_BYTES + int(length)


def generations_in_ticket(head: bytes) -> dict[str, int] | None:
    """Read the counters that a ticket's entry depends on from its first bytes; None where it is no ticket."""
    if len(head) < ticket_head_bytes(head) or len(head) < _HEAD_BYTES:
        return None
    try:
        return decode_dependence(head[_HEAD_BYTES : ticket_head_bytes(head)])
    except ValueError:
        return None
