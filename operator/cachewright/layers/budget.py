"""Budgets: how long a request waits for a store, told apart from how long this process keeps itself waiting.

Used by the layers for look-ups and by the breaker's probes.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

TURNS: Final = 6
"""Turns of the event loop that an answer needs from the socket through the client to whoever waits."""


async def ends_within(task: asyncio.Task[Any], budget_seconds: float) -> bool:
    """Wait for a task, but no longer than the budget; tells whether it has ended.

    When this process was busy, its timer and the store's answer are due in the same turn of the loop. Then
    the answer is here already, and a few turns, which cost an idle loop next to nothing, let it arrive: a
    busy gateway must not take itself for a slow store, and lose its hits when it needs them most.
    """
    if (await asyncio.wait({task}, timeout=budget_seconds))[0]:
        return True
    for _ in range(TURNS):
        await asyncio.sleep(0)
        if task.done():
            return True
    return False
