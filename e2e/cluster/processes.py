"""Processes with a log file each, and waiting for a condition with a deadline."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from e2e.cluster.errors import ClusterError

POLL_SECONDS: Final = 0.05
TAIL_LINES: Final = 15


class Process:
    """A server process that writes to a log file of its own.

    A `tied` one ends with this process, even when this one is killed and cannot stop it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str] | None = None,
        *,
        tied: bool = False,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=None if env is None else dict(env),
                # A Ctrl-C in the terminal is for the test runner, which then stops its servers in order.
                start_new_session=True,
            )

        self._guard = _guard(self.pid) if tied else None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._popen.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._popen.send_signal(number)

    def stop(self, grace_seconds: float = 5.0) -> None:
        """Ask the process to end, then end it."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self._popen.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def _guard(pid: int) -> subprocess.Popen[bytes]:
    """Start a shell that kills a process once the pipe to us breaks, which it does when we end in any way.

    The kernel's own signal at a parent's death would come when the starting *thread* ends.
    """
    script = 'cat > /dev/null; kill -KILL "$1"'
    command = ["sh", "-c", script, "guard", str(pid)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log, to show with an error."""
    if not log.exists():
        return f"({log} does not exist)"
    return "\n".join([f"--- last lines of {log}", *log.read_text(errors="replace").splitlines()[-lines:]])


def wait_until(
    condition: Callable[[], bool],
    what: str,
    timeout_seconds: float,
    on_failure: Callable[[], str] = lambda: "",
) -> None:
    """Poll a condition until it holds.

    Raises ClusterError after the deadline, with what `on_failure` has to tell. A condition that can
    know that it will never hold raises ClusterError itself.
    """
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {timeout_seconds:.0f} s\n{on_failure()}".rstrip())
        time.sleep(POLL_SECONDS)


def start_time(pid: int) -> str | None:
    """Return when a process began, in kernel ticks (pid and this name one process); None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, in parentheses, may hold spaces; state is the first field after it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def kill(pid: int, started: str, timeout_seconds: float = 20.0) -> None:
    """End a process only if it is still the one that was recorded, and wait until it is gone."""
    if start_time(pid) != started:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: start_time(pid) != started, f"process {pid} ends", timeout_seconds)
