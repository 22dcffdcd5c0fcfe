"""`cachewright size`: what it prints, what it takes, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cachewright.api.quantities import parse_bytes
from cachewright.cli.main import main
from cachewright.crd.validation import problems

EXAMPLES = Path(__file__).parents[2] / "examples"
ALL = str(EXAMPLES / "all-managed.yaml")


def test_a_store_that_is_too_small_exits_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    """A person reads what each store holds, and which field to write."""
    assert main(["size", "-f", ALL, "--entries", "500k", "--prices", "memory=3.5,disk=0.1"]) == 3
    told = capsys.readouterr().out
    assert told.startswith("default/all-managed: 500,000 answers of 2,000 bytes, vectors of 384 dimensions")
    assert "spec.stores.redis.managed.maxMemory is 512Mi: write 5Gi" in told
    assert "spec.stores.qdrant.managed.storage.size is 20Gi: enough" in told
    assert told.count(" a month\n") == 3
    assert told.endswith("a managed store is too small\n")


def test_stores_that_are_large_enough_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    """External stores are told what to give, and never too small."""
    files = ["-f", ALL, "-f", str(EXAMPLES / "external-redis.yaml")]
    assert main(["size", *files, "--entries", "20k"]) == 0
    told = capsys.readouterr().out
    assert "redis (external)" in told
    assert "give it 144Mi of memory" in told
    assert told.endswith("every managed store is large enough\n")


def test_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """The same in bytes, with parts that add up."""
    assert main(["size", "-f", ALL, "--entries", "1M", "--retained", "0", "-o", "json"]) == 3
    (cache,) = json.loads(capsys.readouterr().out)["caches"]
    assert (cache["entries"], cache["semanticEntries"], cache["costPerMonth"]) == (1_000_000, 525_000, None)
    for store in cache["stores"]:
        assert store["memoryBytes"] == sum(part["memoryBytes"] for part in store["parts"])
        assert store["diskBytes"] == sum(part["diskBytes"] for part in store["parts"])


def test_each_instance_of_a_replicated_store_holds_and_costs_all_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What to write is of each; the cost is of all."""
    where = ["-f", str(EXAMPLES / "cloudnative-pg.yaml"), "--entries", "100k", "--prices", "memory=3,disk=1"]
    main(["size", *where])
    assert "  postgres, each of 3 instances\n" in capsys.readouterr().out
    main(["size", *where, "-o", "json"])
    ((_, store),) = [each["stores"] for each in json.loads(capsys.readouterr().out)["caches"]]
    memory, disk = (parse_bytes(setting["wanted"]) / 2**30 for setting in store["settings"])
    assert store["instances"] == 3
    assert store["costPerMonth"] == pytest.approx(3 * (3 * memory + disk), abs=0.01)


def test_a_patch_makes_it_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Merged into the object, the same question has another answer; then nothing is left to patch."""
    question = ["--entries", "500k", "--answer-bytes", "4_000"]
    assert main(["size", "-f", ALL, *question, "-o", "patch"]) == 3
    patch = yaml.safe_load(capsys.readouterr().out)
    document = yaml.safe_load(Path(ALL).read_text())
    for store, change in patch["spec"]["stores"].items():
        document["spec"]["stores"][store]["managed"] |= change["managed"]
    assert problems(document) == []
    file = tmp_path / "patched.yaml"
    file.write_text(yaml.safe_dump(document))
    assert main(["size", "-f", str(file), *question, "-o", "patch"]) == 0
    assert capsys.readouterr().out == "{}\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["-f", ALL, "--entries", "many"], "'many' is not a number"),
        (["-f", ALL, "--entries", "-1"], "is not a number"),
        (["-f", ALL, "--entries", "1k", "--prices", "3.5"], "memory=3.50,disk=0.10"),
        (["-f", ALL, "--entries", "1k", "--prices", "memory=1,disk=nan"], "memory=3.50,disk=0.10"),
        (["-f", ALL, "--entries", "1k", "--retained", "9"], "maxRetained is 3"),
        (["-f", ALL, "--entries", "1k", "--dimensions", "9"], "embedder has 384"),
        (["-f", "no-such-file.yaml", "--entries", "1k"], "no-such-file.yaml"),
        (["-f", str(EXAMPLES / "engine.yaml"), "--entries", "1k"], "no InferenceCache"),
        (["-f", ALL, "-f", ALL, "--entries", "1k", "-o", "patch"], "one InferenceCache"),
    ],
)
def test_what_is_of_no_use_exits_with_2(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says why, on stderr alone."""
    try:
        code = main(["size", *words])
    except SystemExit as e:
        code = int(e.code or 0)
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert complaint in told.err
