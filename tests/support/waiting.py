"""Waiting for a condition with a deadline, in place of sleeping for a time that is hopefully enough."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 10.0) -> None:
    """Return once the condition holds; fails when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.01)
