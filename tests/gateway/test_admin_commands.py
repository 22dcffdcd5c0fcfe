"""`cachewright stats` and `cachewright purge`, against a running gateway."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from cachewright.cli.main import main
from tests.gateway.harness import ADMIN_TOKEN, Answered, Gateway
from tests.support.waiting import until


@pytest.fixture
def connection(gateway: Gateway, tmp_path: Path) -> list[str]:
    """Options that lead to the gateway's admin port."""
    token = tmp_path / "token"
    token.write_text(f"{ADMIN_TOKEN}\n")
    return ["--url", f"http://127.0.0.1:{gateway.process.admin_port}", "--token-file", str(token)]


async def run(*words: str) -> int:
    """Run a command beside the loop that serves it."""
    return await asyncio.to_thread(main, list(words))


async def stored(gateway: Gateway) -> str:
    """Ask until the answer comes from the cache, and return the entry's id."""
    answers: list[Answered] = []

    async def is_hit() -> bool:
        answers.append(await gateway.call())
        return answers[-1].is_hit

    await until(is_hit)
    return answers[-1].entry_id


async def test_stats(gateway: Gateway, connection: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As the admin port gives them."""
    await stored(gateway)
    capsys.readouterr()
    assert await run("stats", *connection) == 0
    assert json.loads(capsys.readouterr().out)["cache"] == "ml/support-bot"


async def test_purge(gateway: Gateway, connection: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """First what would go, then it goes, then there is nothing left."""
    name = await stored(gateway)
    capsys.readouterr()
    assert await run("purge", name, *connection) == 0
    told = capsys.readouterr()
    assert (json.loads(told.out)["found"], "--yes" in told.err) == (True, True)
    assert (await gateway.call()).is_hit
    capsys.readouterr()
    assert await run("purge", name, "--yes", *connection) == 0
    assert json.loads(capsys.readouterr().out)["removed"] is True
    assert await run("purge", name, *connection) == 1


async def test_what_goes_wrong_is_told(
    connection: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line on stderr, with exit code 1, and never with the token."""
    wrong = tmp_path / "wrong"
    wrong.write_text("sk-wrong-token")
    url = connection[:2]
    closed = ["--url", "http://127.0.0.1:1", "--token-file", str(wrong)]
    for words in (
        ["stats", *url, "--token-file", str(wrong)],
        ["stats", *url, "--token-file", str(tmp_path / "missing")],
        ["stats", *closed],
        ["stats", "--url", "file:///etc/passwd", "--token-file", str(wrong)],
        ["purge", "no-id", *connection],
    ):
        capsys.readouterr()
        assert await run(*words) == 1
        told = capsys.readouterr()
        assert len(told.err.splitlines()) == 1, told.err
        assert "sk-wrong-token" not in told.err + told.out
