"""Tasks that several may wait for, or nobody: what becomes of their failures. Called by the layers."""

from __future__ import annotations

import asyncio


def retrieved(task: asyncio.Task[object]) -> None:
    """Take note of how a task ended, as its done callback, so that asyncio does not report it as forgotten.

    Whoever waits for it sees the failure; if nobody does any more, nobody needs to.
    """
    if not task.cancelled():
        task.exception()
