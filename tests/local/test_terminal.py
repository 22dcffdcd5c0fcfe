"""The live view on a real terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.local.harness import command, edited, environment, eventually

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal of 130 columns, and what was written to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.raw = ""

    def shows(self, pattern: str) -> bool:
        """Read what has come, and tell whether a line of that pattern was ever shown."""
        try:
            while chunk := os.read(self._descriptor, 65536):
                self.raw += chunk.decode(errors="replace")
        except (BlockingIOError, OSError):  # nothing more now, or for ever
            pass
        return re.search(pattern, _CONTROL.sub("", self.raw)) is not None

    def press(self, text: str) -> None:
        """Press keys."""
        os.write(self._descriptor, text.encode())


@contextmanager
def on_a_terminal(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    """Run `cachewright local` in a terminal of its own, as its foreground process."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    process = subprocess.Popen(
        command(*words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment(folder), "TERM": "xterm-256color", "COLUMNS": "130", "LINES": "50"},
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - a child of a test, which has no threads
    )
    os.close(theirs)
    try:
        yield process, Terminal(ours)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(ours)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_the_live_view_from_its_start_to_ctrl_c(tmp_path: Path) -> None:
    """Numbers appear and move, an edit is told above them, and Ctrl-C gives the terminal back."""
    manifest = edited(tmp_path)
    words = ["-f", str(manifest), "--port", "0", "--store", "memory", "--latency", "1ms"]
    with on_a_terminal(tmp_path, *words) as (process, terminal):
        eventually(lambda: terminal.shows("Ctrl-C ends"), seconds=30)
        plain = _CONTROL.sub("", terminal.raw)
        curl = next(line for line in plain.splitlines() if line.strip().startswith("curl -si"))

        def is_hit() -> bool:
            done = subprocess.run(curl, shell=True, capture_output=True, check=True)  # noqa: S602
            return b"cachewright; hit" in done.stdout

        eventually(is_hit)
        eventually(lambda: terminal.shows("hit rate [1-9]"))
        edited(tmp_path, model__version="2")
        eventually(lambda: terminal.shows("version 2 starts with the empty keyspace"))
        eventually(lambda: terminal.shows("model demo-model at version 2"))
        terminal.press("\x03")
        assert process.wait(10) == 0
        assert not terminal.shows("Traceback")
        assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l")
