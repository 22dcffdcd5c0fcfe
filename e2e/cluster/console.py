"""Progress lines on standard error, with seconds; standard output is for results."""

import sys
import time
from types import TracebackType
from typing import Self

QUIET_SECONDS = 20.0
"""How often a long step says that it still runs when there is no terminal, so that CI logs stay short."""


def say(message: str) -> None:
    """Print one line of progress."""
    print(message, file=sys.stderr, flush=True)


class Step:
    """One timed step; prints its end with seconds, and in between that it still runs."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._start = time.monotonic()
        self._last = self._start
        self._terminal = sys.stderr.isatty()

    @property
    def seconds(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self._start

    def tick(self, detail: str = "") -> None:
        """Say that the step still runs: each second on a terminal, else each `QUIET_SECONDS`."""
        now = time.monotonic()
        if now - self._last < (1.0 if self._terminal else QUIET_SECONDS):
            return
        self._last = now
        line = f"  {self.title}: {self.seconds:.0f} s{', ' + detail if detail else ''}"
        if self._terminal:
            sys.stderr.write(f"\r\033[K{line}")
            sys.stderr.flush()
        else:
            say(line)

    def __enter__(self) -> Self:
        if self._terminal:
            sys.stderr.write(f"  {self.title} ...")
            sys.stderr.flush()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outcome = "failed after" if kind else "done in"
        start = "\r\033[K" if self._terminal else ""
        say(f"{start}  {self.title}: {outcome} {self.seconds:.1f} s")
