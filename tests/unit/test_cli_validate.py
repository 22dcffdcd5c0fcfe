"""`cachewright validate`: findings with file, line and column, exit codes, and JSON for pipelines."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cachewright.cli.main import main
from tests.api.documents import EXTERNAL, FULL, changed

EXAMPLES = Path(__file__).parents[2] / "examples"

GOOD = yaml.safe_dump(FULL, sort_keys=False)
TOO_SHORT = "must be longer than zero; write for example 30m, 24h or 500ms"
BAD = """\
apiVersion: v1
kind: Secret
metadata: {name: s}
---
# A version that YAML would like to read as a date, written twice, and a day that CEL does not know.
apiVersion: cachewright.dev/v1alpha1
kind: InferenceCache
metadata:
  name: bot
  namespace: ml
spec:
  model:
    name: m
    version: 2026-11-28
    version: 2
  upstream: {url: http://engine:8000/v1}
  tenancy: {mode: Single}
  stores:
    redis:
      managed: {}
      external: {urlSecretRef: {name: a, key: b}}
  layers:
    exact:
      ttl: 7d
"""


def test_a_good_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing wrong: exit code 0 and one line."""
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    assert main(["validate", "-f", str(file)]) == 0
    assert capsys.readouterr().out == "1 InferenceCache checked, no problems\n"


def test_a_bad_file_in_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every problem has file:line:column and the field; exit code 1."""
    file = tmp_path / "bad.yaml"
    file.write_text(BAD)
    assert main(["validate", "-f", str(file)]) == 1
    *found, summary = capsys.readouterr().out.splitlines()
    assert found == [
        f"{file}:15:5: the key 'version' is written twice in the same object",
        f'{file}:15:5: spec.model.version: must be text; write it in quotes: "2"',
        f"{file}:19:5: spec.stores.redis: stores.redis needs exactly one of managed and external",
        f"{file}:24:7: spec.layers.exact.ttl: {TOO_SHORT}, not '7d'",
    ]
    assert summary == "1 InferenceCache checked, 4 problems, 1 other object skipped"


def test_a_bad_file_in_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline gets counts, and each finding with place, object, path, message and rule."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert main(["validate", "-f", "-", "--output", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["valid"], report["checked"], report["skipped"]) == (False, 1, 1)
    assert report["unreadable"] == []
    assert report["problems"][2] == {
        "file": "<stdin>",
        "line": 19,
        "column": 5,
        "object": "ml/bot",
        "path": "spec.stores.redis",
        "message": "stores.redis needs exactly one of managed and external",
        "rule": "has(self.managed) != has(self.external)",
    }


def test_an_unquoted_date_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A version such as 2026-11-28 needs no quotes, as with kubectl."""
    file = tmp_path / "dated.yaml"
    file.write_text(yaml.safe_dump(changed(FULL, spec__model__version="DATE")).replace("DATE", "2026-11-28"))
    assert main(["validate", "-f", str(file)]) == 0, capsys.readouterr().out


def test_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its YAML and JSON files are read, and nothing below it or beside them."""
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yml").write_text(f"{GOOD}---\n{yaml.safe_dump(EXTERNAL)}")
    (tmp_path / "c.json").write_text(json.dumps(FULL, indent="\t"))
    (tmp_path / "README.md").write_text("a: [")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.yaml").write_text("a: [")
    assert main(["validate", "-f", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "4 InferenceCaches checked, no problems\n"


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe\xff", None], ids=["yaml", "bytes", "missing"])
def test_what_cannot_be_read_exits_with_2(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unreadable file is named, and the others are checked all the same."""
    unreadable = tmp_path / "x.yaml"
    if content is not None:
        unreadable.write_bytes(content)
    good = tmp_path / "good.yaml"
    good.write_text(GOOD)
    assert main(["validate", "-f", str(unreadable), "-f", str(good)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{unreadable}: ")
    assert lines[-1] == "1 InferenceCache checked, no problems, 1 unreadable"


def test_only_other_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without an InferenceCache is no error, and the count says so."""
    file = tmp_path / "other.yaml"
    file.write_text("kind: ConfigMap\n---\n- a\n---\ntext\n")
    assert main(["validate", "-f", str(file)]) == 0
    assert capsys.readouterr().out == "0 InferenceCaches checked, no problems, 3 other objects skipped\n"


def test_our_group_with_a_misspelt_kind_is_not_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What means to be an InferenceCache is checked."""
    file = tmp_path / "kind.yaml"
    file.write_text(GOOD.replace("kind: InferenceCache", "kind: InferenceCash"))
    assert main(["validate", "-f", str(file)]) == 1
    assert "kind: must be InferenceCache, not 'InferenceCash'" in capsys.readouterr().out


def write(path: Path, document: dict[str, Any]) -> str:
    """Write a document and return the file's name."""
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return str(path)


def test_old_checks_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the present object, a forbidden change is found before it is applied."""
    before = write(tmp_path / "old.yaml", FULL)
    after = write(tmp_path / "new.yaml", changed(FULL, spec__stores__redis__managed__flavor="Valkey"))
    assert main(["validate", "-f", after]) == 0
    capsys.readouterr()
    assert main(["validate", "-f", after, "--old", before]) == 1
    assert (
        "spec.stores.redis.managed.flavor: stores.redis.managed.flavor is immutable"
        in capsys.readouterr().out
    )


def test_old_is_matched_by_namespace_and_name(tmp_path: Path) -> None:
    """Another object's present state says nothing about this one; no namespace means default."""
    other = changed(FULL, metadata__name="other", spec__stores__redis__managed__flavor="Valkey")
    before = write(tmp_path / "old.yaml", {"apiVersion": "v1", "kind": "List", "items": [other, FULL]})
    after = changed(other, metadata={"name": "other"})
    assert main(["validate", "-f", write(tmp_path / "new.yaml", after), "--old", before]) == 0
    elsewhere = changed(FULL, metadata__namespace="ml", spec__stores__redis__managed__flavor="Valkey")
    assert main(["validate", "-f", write(tmp_path / "ml.yaml", elsewhere), "--old", before]) == 0
    here = changed(FULL, spec__stores__redis__managed__flavor="Valkey")
    assert main(["validate", "-f", write(tmp_path / "here.yaml", here), "--old", before]) == 1


def test_old_that_cannot_be_read_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check against something unknown is no check."""
    file = write(tmp_path / "new.yaml", FULL)
    assert main(["validate", "-f", file, "--old", str(tmp_path / "absent.yaml")]) == 2
    assert main(["validate", "-f", "-", "--old", "-"]) == 2
    assert "standard input can be read once only" in capsys.readouterr().err


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_the_examples_are_valid(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything in examples/ passes."""
    assert main(["validate", "-f", str(file)]) == 0, capsys.readouterr().out


def test_the_examples_hold_the_promised_caches(capsys: pytest.CaptureFixture[str]) -> None:
    """The quickstart, the external store, the routes and the provider are each an InferenceCache."""
    names = ["quickstart", "external-redis", "routes", "provider"]
    files = [word for name in names for word in ("-f", str(EXAMPLES / f"{name}.yaml"))]
    assert main(["validate", *files]) == 0
    assert capsys.readouterr().out == "4 InferenceCaches checked, no problems\n"
