"""Server processes of the tests: they end with the test run, and waiting for them says what went wrong."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.cluster import processes
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import Process, start_time, tail, wait_until

PROJECT = Path(processes.__file__).parents[2]
STARTER = """
import sys, time
from pathlib import Path
from e2e.cluster.processes import Process
print(Process("some", ["sleep", "600"], Path(sys.argv[1]), tied=True).pid, flush=True)
time.sleep(600)
"""


def test_a_tied_process_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    """A test run that is killed leaves no server behind."""
    command = [sys.executable, "-c", STARTER, str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        assert start_time(pid)
        starter.kill()
    wait_until(lambda: start_time(pid) is None, "the end of the process", timeout_seconds=10)


def test_stop_ends_a_process_that_ignores_the_signal(tmp_path: Path) -> None:
    """A frozen or stubborn server cannot hold up the end of the tests."""
    stubborn = Process(
        "some", ["sh", "-c", "trap '' TERM; echo ready; sleep 600"], tmp_path / "log", tied=True
    )
    wait_until(lambda: (tmp_path / "log").read_text() == "ready\n", "the trap", timeout_seconds=10)
    stubborn.stop(grace_seconds=0.1)
    assert stubborn.exit_code == -signal.SIGKILL


def test_stop_ends_a_paused_process(tmp_path: Path) -> None:
    """A process that a test froze and forgot still ends in order."""
    paused = Process("some", ["sleep", "600"], tmp_path / "log")
    paused.signal(signal.SIGSTOP)
    paused.stop()
    assert paused.exit_code == -signal.SIGTERM


def test_kill_spares_another_process_of_the_same_id() -> None:
    """A recorded id may belong to somebody else by now; the time of its start tells."""
    with subprocess.Popen(["sleep", "600"]) as other:
        processes.kill(other.pid, started="12345")
        assert other.poll() is None
        started = start_time(other.pid)
        assert started
        processes.kill(other.pid, started)
    assert other.returncode == -signal.SIGKILL


def test_start_time_of_nobody_is_none() -> None:
    """A process that is gone has none, and our own has one."""
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert start_time(gone.pid) is None
    assert start_time(os.getpid())


def test_wait_until_tells_what_it_waited_for_and_why_it_failed() -> None:
    """The message is all that the reader of a CI log has."""
    with pytest.raises(ClusterError, match=r"node Ready: not within 0 s\nkubelet: no such flag"):
        wait_until(lambda: False, "node Ready", 0.1, lambda: "kubelet: no such flag")


def test_tail_shows_the_end_of_a_log(tmp_path: Path) -> None:
    """The last lines come with the file's path; a log that was never made is said to be absent."""
    log = tmp_path / "some.log"
    assert "does not exist" in tail(log)
    log.write_text("".join(f"line {number}\n" for number in range(50)))
    assert tail(log, lines=2) == f"--- last lines of {log}\nline 48\nline 49"
