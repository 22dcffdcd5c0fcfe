"""Waiting for a condition with a deadline, in place of sleeping for a time that is hopefully enough."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

PATIENCE_SECONDS: Final = 60.0
"""For what should happen at once: a machine that is busy with others is no failure."""


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_SECONDS) -> None:
    """Return once the condition holds; fails when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.01)
