"""`cachewright calibrate`: with the real built-in model, what it writes, and what it complains of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cachewright.cli.main import main

HEAD = "text_a,text_b,same,class,language\n"
PAIRS = f"""{HEAD}How do I reset my password?,How can I reset my password?,yes,paraphrase,en
How do I reset my password?,How long is the river Elbe?,no,long_tail,en
Why is the light blinking?,Why is the light not blinking?,no,negation,en
"""


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A small file of pairs."""
    file = tmp_path / "pairs.csv"
    file.write_text(PAIRS)
    return file


def calibrate(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Run the command in this process; exit code, output, complaints."""
    code = main(["calibrate", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_built_in_embedder_on_a_small_file(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three pairs prove nothing, so nothing is recommended, and the classes are told all the same."""
    code, out, err = calibrate(capsys, pairs, "--threshold", "0.9", "--output", "json")
    assert (code, err) == (1, "")
    told = json.loads(out)
    assert told["embedder"] == "builtin all-MiniLM-L6-v2"
    assert told["recommended"] is None
    classes = {row["class"]: row for row in told["classes"]}
    assert classes["paraphrase"]["recall"]["count"] == 1
    assert classes["negation"]["falseHitsWithoutGuard"]["count"] == 1
    assert classes["negation"]["falseHits"]["count"] == 0
    assert classes["long_tail"]["falseHitsWithoutGuard"]["count"] == 0


def test_a_patch_names_threshold_and_guard(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the form that kubectl patch takes; without a recommendation there is none."""
    words = (pairs, "--guard", "numbers,Order", "--output", "patch")
    code, out, err = calibrate(capsys, *words, "--max-false-hits", "99%")
    assert (code, err) == (0, "")
    assert yaml.safe_load(out)["spec"]["layers"]["semantic"]["guard"] == ["Numbers", "Order"]
    code, out, err = calibrate(capsys, *words)
    assert (code, out) == (1, "")
    assert "No threshold keeps" in err


def test_plots_are_written_in_each_form(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page holds the picture and the tables, and needs nothing from elsewhere."""
    files = [tmp_path / f"plot.{ending}" for ending in ("png", "svg", "html")]
    calibrate(capsys, pairs, *(word for file in files for word in ("--plot", str(file))))
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in files[1].read_text()
    page = files[2].read_text()
    assert "By class of what differs, at" in page
    assert "long tail" in page
    assert "<script" not in page
    assert 'src="' not in page


def test_samples_of_shadow_mode_are_written_to_be_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Into a new file, which is never written over, or to standard output."""
    samples = tmp_path / "samples.json"
    samples.write_text('[{"asked": "a?", "stored": "b, c?", "similarity": 0.94, "refused": []}]')
    target = tmp_path / "to-label.csv"
    code, out, _ = calibrate(capsys, "--from-shadow", samples, "--label", target)
    assert code == 0
    assert out.startswith("1 pairs in ")
    assert target.read_text() == f'{HEAD}a?,"b, c?",,,\n'
    code, _, err = calibrate(capsys, "--from-shadow", samples, "--label", target)
    assert code == 2
    assert "File exists" in err
    assert calibrate(capsys, "--from-shadow", samples, "--label", "-")[1] == f'{HEAD}a?,"b, c?",,,\n'
    code, _, err = calibrate(capsys, target)
    assert code == 2
    assert "no labelled pair, and 1 rows whose `same` is empty" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.csv"], "No such file"),
        (["--from-shadow", "s.json"], "--from-shadow SAMPLES and --label FILE go together"),
        (["--label", "x.csv"], "--from-shadow SAMPLES and --label FILE go together"),
        (["--embedder", "bge"], "--embedder 'bge' is neither builtin nor the URL of a server"),
        (["--embedder", "http://127.0.0.1:9/v1"], "needs --model, --dimensions and --max-tokens"),
    ],
)
def test_what_is_of_no_use_is_said(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on standard error, exit code 2."""
    code, out, err = calibrate(capsys, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--guard", "Numbers,Colour"],
            "no check 'colour'; there are Numbers, Negation, Order, Antonyms, Names",
        ),
        (["--max-false-hits", "0"], "'0' is not above 0 and up to 1, or 100%"),
        (["--threshold", "high"], "'high' is not above 0 and up to 1, or 100%"),
        (["--plot", "plot.gif"], "'plot.gif' does not end with .png, .svg, .html"),
    ],
)
def test_a_wrong_option_names_what_is_right(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As argparse does: usage, and exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(["calibrate", *words])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_pairs_of_one_kind_calibrate_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without pairs that differ there is no false hit to bound, and the other way round."""
    file = tmp_path / "same.csv"
    file.write_text(f"{HEAD}a?,b?,yes,,\n")
    code, _, err = calibrate(capsys, file)
    assert code == 2
    assert "pairs of both kinds are needed" in err


def test_an_embedder_that_is_not_there_is_said(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With exit code 2, and no traceback."""
    words = ("--embedder", "http://127.0.0.1:9/v1", "--model", "m", "--dimensions", "3", "--max-tokens", "64")
    code, out, err = calibrate(capsys, pairs, *words)
    assert (code, out) == (2, "")
    assert err.startswith("cachewright calibrate: ")
