"""`cachewright prefix analyze`: what is printed, drawn and returned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachewright.cli.main import main
from cachewright.engines.prefix.breakers import BreakerKind
from tests.support.chat_logs import RULES, as_lines, chat, log_of


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of twenty requests, two tenants in turn, with the time at the start of the system text."""
    path = tmp_path / "requests.jsonl"
    path.write_bytes(
        as_lines(chat(f"Now: 2026-11-28 10:{n:02}\n{RULES}", f"q{n}", tenant="ab"[n % 2]) for n in range(20))
    )
    return path


def test_text_names_rates_and_the_fix(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People see how much is shared, how much could be, by whom, and what to change."""
    assert main(["prefix", "analyze", str(log)]) == 0
    out = capsys.readouterr().out
    assert "20 requests" in out
    assert "with what breaks it mended" in out
    assert "if tenants shared" in out
    assert "Timestamp" in out
    assert "Move the time into the last user message" in out


def test_json_is_the_whole_report(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pipelines get rates from 0 to 1, and what was passed over."""
    log.write_bytes(log.read_bytes() + b"not json\n")
    assert main(["prefix", "analyze", str(log), "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["total"]["requests"] == 20
    assert told["total"]["hitRate"] < 0.15
    assert told["ifMended"]["hitRate"] > 0.6
    assert told["breakers"][0]["kind"] == "Timestamp"
    assert told["passedOver"] == {"notChat": 0, "badLines": [21]}


def test_good_prompts_are_said_to_be_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing breaks a prefix, there is no advice to read."""
    path = tmp_path / "log"
    path.write_bytes(log_of(5, lambda _: RULES))
    assert main(["prefix", "analyze", str(path)]) == 0
    assert "Nothing breaks" in capsys.readouterr().out


@pytest.mark.parametrize(("bound", "code"), [("0.9", 1), ("0", 0)])
def test_a_pipeline_can_ask_for_a_rate(log: Path, bound: str, code: int) -> None:
    """Below the rate that was asked for, the exit code is 1."""
    assert main(["prefix", "analyze", str(log), "--fail-under", bound]) == code


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b'{"input": "x"}\n'])
def test_a_useless_log_exits_with_2(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """The complaint says what a line must look like."""
    path = tmp_path / "log"
    path.write_bytes(content)
    assert main(["prefix", "analyze", str(path)]) == 2
    assert "messages" in capsys.readouterr().err


def test_a_missing_log_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The complaint names the file."""
    assert main(["prefix", "analyze", str(tmp_path / "gone.jsonl")]) == 2
    assert "gone.jsonl" in capsys.readouterr().err


def test_chart_and_page_are_written(log: Path, tmp_path: Path) -> None:
    """The PNG is one, the page carries its chart with it, and neither loads anything."""
    png, page = tmp_path / "p.png", tmp_path / "p.html"
    assert main(["prefix", "analyze", str(log), "--png", str(png), "--html", str(page)]) == 0
    assert png.read_bytes().startswith(b"\x89PNG")
    text = page.read_text()
    assert "<svg" in text
    assert "src=" not in text
    assert "Move the time into the last user message" in text


@pytest.mark.parametrize(
    "arguments", [["--block-size", "0"], ["--fail-under", "2"], ["--cache-tokens", "-1"]]
)
def test_bad_numbers_are_refused(log: Path, arguments: list[str]) -> None:
    """A size of nothing or a rate above 1 is a wrong command line."""
    with pytest.raises(SystemExit) as caught:
        main(["prefix", "analyze", str(log), *arguments])
    assert caught.value.code == 2


def test_every_breaker_is_documented() -> None:
    """The page for people lists each kind that the command can name."""
    page = (Path(__file__).parents[2] / "docs" / "prefix-caching.md").read_text()
    for kind in BreakerKind:
        assert f"| `{kind}` |" in page
