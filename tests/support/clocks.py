"""Time that passes only when a test says so, or when the code under test sleeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ManualClock:
    """A clock in seconds."""

    now: float = 1000.0
    slept: float = 0.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds >= 0
        self.now += seconds
        self.slept += seconds
