"""How a run ends, and what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import signal
import tempfile
import threading
import time
from http.client import HTTPException
from pathlib import Path

import psutil
import pytest

from tests.local.harness import eventually, fetch, running
from tests.support.waiting import PATIENCE_SECONDS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_soon_and_wholly(tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 0 before anybody loses patience, no server left, nothing mounted left."""
    with running(tmp_path) as local:
        local.ask()
        store = local.store_pid
        assert local.end(number) < PATIENCE_SECONDS
        assert local.process.returncode == 0
        assert not psutil.pid_exists(store)
        kept = {path.name for path in (tmp_path / "state/cachewright/local/quickstart").iterdir()}
        assert kept == {"lock", "digest-key", "record.json"}


def test_an_answer_under_way_does_not_hold_it_up(tmp_path: Path) -> None:
    """One Ctrl-C gives answers a moment; a second one gives them none."""
    with running(tmp_path, latency="60s") as local:
        store = local.store_pid

        answers: list[int] = []

        def ask() -> None:
            body = {"model": "demo-model", "messages": [{"role": "user", "content": "slow?"}]}
            with contextlib.suppress(OSError, HTTPException):
                answers.append(fetch(f"{local.base_url}/chat/completions", json.dumps(body))[0])

        asking = threading.Thread(target=ask)
        asking.start()
        connections = psutil.Process(local.process.pid).net_connections
        eventually(lambda: len([each for each in connections("tcp") if each.status == "ESTABLISHED"]) >= 2)
        started = time.monotonic()
        local.process.send_signal(signal.SIGINT)
        eventually(lambda: "draining" in _readiness(local.ready["ready_url"]))
        local.process.send_signal(signal.SIGINT)
        local.process.wait(30)
        assert time.monotonic() - started < 4
        asking.join(30)
        assert 200 not in answers
        assert not psutil.pid_exists(store)


def test_a_killed_run_leaves_no_server_behind(tmp_path: Path) -> None:
    """The kernel ends the store when we are killed without a word, and the next start cleans up after us."""
    with tempfile.TemporaryDirectory(prefix="cw-") as short:
        words = ("--state-dir", short)
        with running(tmp_path, *words) as local:
            store = psutil.Process(local.store_pid)
            local.end(signal.SIGKILL)
            eventually(lambda: not store.is_running())
        assert (Path(short) / "run/store").is_dir()
        with running(tmp_path, *words) as local:
            assert local.ask()[0].startswith("cachewright; fwd=miss")
        assert not (Path(short) / "run").exists()


def test_a_store_that_dies_is_started_anew(tmp_path: Path) -> None:
    """No request fails meanwhile, and hits come back."""
    with running(tmp_path) as local:
        local.ask()
        psutil.Process(local.store_pid).kill()
        eventually(lambda: "started anew" in local.said())
        eventually(lambda: "; hit;" in local.ask()[0])


def _readiness(url: str) -> str:
    try:
        return fetch(url)[1]
    except (OSError, HTTPException):
        return "draining: closed already"
