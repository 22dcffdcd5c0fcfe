"""`cachewright prefix flags`: what is printed for an engine, and what is complained of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachewright.cli.main import main

VLLM = ["prefix", "flags", "--engine", "VLLM", "--engine-version", "0.32.0"]


def test_without_a_line_only_ours_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """What has to be added, ready to be pasted."""
    assert main([*VLLM, "--block-size", "32"]) == 0
    expected = "--enable-prefix-caching --block-size=32 --enable-prompt-tokens-details"
    assert capsys.readouterr().out.strip() == expected


def test_what_is_in_the_way_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The line comes back without it, and the exit code tells a pipeline."""
    assert main([*VLLM, "--", "serve", "m", "--no-enable-prefix-caching"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("serve m --enable-prefix-caching")
    assert "in the way: --no-enable-prefix-caching: it turns prefix caching off" in err


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments, the whole line, contradictions and the engine's own file."""
    words = ["prefix", "flags", "--engine", "TensorRTLLM", "--engine-version", "1.3", "--host-memory", "1Gi"]
    assert main([*words, "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["file"] == {"kv_cache_config": {"enable_block_reuse": True, "host_cache_size": 1024**3}}
    assert told["arguments"] == told["commandLine"]
    assert told["contradictions"] == []


def test_triton_says_what_models_need(capsys: pytest.CaptureFixture[str]) -> None:
    """The server's flag alone caches nothing."""
    words = ["prefix", "flags", "--engine", "Triton", "--engine-version", "2.55", "--response-cache", "1Gi"]
    assert main(words) == 0
    assert "response_cache { enable: true }" in capsys.readouterr().out


def test_a_version_of_tomorrow_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    """The arguments are those of the newest known one, with a word of warning."""
    assert main(["prefix", "flags", "--engine", "VLLM", "--engine-version", "0.99"]) == 0
    assert "newer than what is known" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--engine", "VLLM", "--engine-version", "latest"],
        ["--engine", "VLLM", "--engine-version", "0.1"],
        ["--engine", "VLLM", "--engine-version", "0.32", "--host-memory", "lots"],
        ["--engine", "VLLM", "--engine-version", "0.32", "--gpu-memory-share", "1.5"],
        ["--engine", "VLLM", "--engine-version", "0.32", "--block-size", "0"],
    ],
)
def test_what_cannot_be_done_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence on standard error, nothing on standard output."""
    assert main(["prefix", "flags", *words]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("cachewright prefix flags: ")


def test_the_documented_line_is_what_comes_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The page for people shows the command and its output as they are."""
    page = (Path(__file__).parents[2] / "docs" / "prefix-caching.md").read_text()
    example = page.split("$ cachewright prefix flags")[1].split("```")[0]
    words, *shown = example.strip().splitlines()
    main(["prefix", "flags", *words.split()])
    out, err = capsys.readouterr()
    assert [*err.splitlines(), *out.splitlines()] == shown
