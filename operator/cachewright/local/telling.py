"""Telling people what happens: nothing, plain lines, or (in `view`) a picture.

The session asks for one of them by what its output is.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Protocol

from cachewright.local.lines import line
from cachewright.local.numbers import Tally

Tell = Callable[[str], None]
"""Tells a piece of news."""


class Teller(Protocol):
    """Tells people what happens while a run lasts."""

    def tell(self, text: str) -> None:
        """Tell a piece of news."""

    async def run(self) -> None:
        """Tell numbers until cancelled."""


class Quiet:
    """For scripts: news goes to standard error, numbers nowhere."""

    def tell(self, text: str) -> None:
        """Write to standard error."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    async def run(self) -> None:
        """Tell nothing."""


class PlainLines:
    """For logs and pipes: one line an interval in which anything happened."""

    def __init__(self, count: Callable[[], Tally], interval_seconds: float) -> None:
        self._count = count
        self._interval_seconds = interval_seconds

    def tell(self, text: str) -> None:
        """Write a line."""
        sys.stdout.write(f"{time.strftime('%H:%M:%S')}  {text}\n")
        sys.stdout.flush()

    async def run(self) -> None:
        """Write a line about each interval."""
        before = self._count()
        while True:
            await asyncio.sleep(self._interval_seconds)
            now = self._count()
            if now.requests > before.requests:
                self.tell(line(now.since(before), now.at - before.at))
            before = now
