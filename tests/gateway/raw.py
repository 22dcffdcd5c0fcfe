"""A client that sends bytes as they are, for what no HTTP library would send."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.gateway.harness import Gateway

DEADLINE_SECONDS = 10


@dataclass(frozen=True)
class RawAnswer:
    """What came back until the server closed the connection."""

    status: int
    version: str
    headers: dict[str, str]
    """By lower-case name; the last of several."""
    body: bytes
    """As it stands on the wire: chunks, where it came in chunks."""


async def raw_exchange(gateway: Gateway, *parts: bytes) -> bytes:
    """Send parts one by one and return all that comes back until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.process.port)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await reader.read()
    finally:
        writer.close()


async def raw_call(gateway: Gateway, *parts: bytes) -> RawAnswer:
    """Send parts, which must ask for the connection to end, and return the answer."""
    return parse_answer(await raw_exchange(gateway, *parts))


def parse_answer(received: bytes) -> RawAnswer:
    """Split an answer into head and body; informational ones before it are left out."""
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    version, status, *_ = lines[0].split(" ")
    if status.startswith("1"):
        return parse_answer(body)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return RawAnswer(int(status), version, headers, body)
