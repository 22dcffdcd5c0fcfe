"""`cachewright explain` on files: what it prints, and its exit codes for pipelines."""

from __future__ import annotations

import io
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from cachewright.cli.explain_live import LayerNumbers, numbers_of
from cachewright.cli.main import main
from tests.support.caches import cache_document
from tests.unit.test_cli_main import imported


def edition(version: str = "1", name: str = "demo", **spec: Any) -> dict[str, Any]:
    """Build an edition of an object, without what only the API server sets."""
    document = deepcopy(cache_document(name, spec=spec))
    document["metadata"] = {"name": name, "namespace": "ml"}
    document["spec"]["model"]["version"] = version
    return document


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write objects into a file, and return its path as text."""

    def written(name: str, *documents: dict[str, Any]) -> str:
        file = tmp_path / name
        file.write_text(yaml.safe_dump_all(documents, sort_keys=False))
        return str(file)

    return written


def test_a_bump_exits_with_3_and_says_why(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipeline can stop, and a person reads layer, consequence and cause."""
    assert main(["explain", "-f", write("old", edition()), "-f", write("new", edition("2"))]) == 3
    told = capsys.readouterr().out
    assert told.startswith("ml/demo: 1 field changed\n  Exact starts empty;")
    assert 'because of spec.model.version: "1" → "2"' in told
    assert told.endswith("1 layer would lose entries in use\n")


def test_a_harmless_change_exits_with_0(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """What no entry depends on is told as such."""
    new = write("new", edition(gateway={"replicas": 3}))
    assert main(["explain", "-f", write("old", edition()), "-f", new]) == 0
    told = capsys.readouterr().out
    assert "Exact keeps its entries" in told
    assert "no matter to any entry: spec.gateway.replicas" in told
    assert told.endswith("no layer loses its entries\n")


def test_json_for_programs(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The same as a document: changes with both values, layers with fate and causes."""
    command = ["explain", "-f", write("old", edition()), "-f", write("new", edition("2")), "--output", "json"]
    assert main(command) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["rotates"] is True
    (cache,) = told["caches"]
    assert cache["cache"] == "ml/demo"
    assert cache["changes"] == [{"path": "spec.model.version", "before": "1", "after": "2"}]
    (layer,) = cache["layers"]
    assert (layer["name"], layer["fate"], layer["losesEntries"]) == ("Exact", "Rotates", True)
    assert layer["causes"] == ["spec.model.version"]


def test_objects_are_matched_by_name(
    write: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of files with several objects, each is compared with its former self; standard input is a file too."""
    old = write("old", edition(name="a"), edition(name="b"), {"kind": "Secret", "apiVersion": "v1"})
    new = yaml.safe_dump_all([edition("2", name="b"), edition(name="a"), edition(name="c")])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(new.encode())))
    assert main(["explain", "-f", old, "-f", "-"]) == 3
    told = capsys.readouterr().out
    assert "ml/a: 0 fields changed\n  Exact keeps" in told
    assert "ml/b: 1 field changed\n  Exact starts empty" in told
    assert "ml/c" not in told


def with_template(text: str, **held: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build an object whose prompt template a ConfigMap holds, and the ConfigMap."""
    source = {"fromConfigMap": {"name": "prompts", "key": "chat"}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prompts"}}
    return edition(promptTemplate=source), {**config_map, **(held or {"data": {"chat": text}})}


def test_the_text_of_a_template_counts(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A ConfigMap in the same files is read; without one, another reference is taken for another text."""
    old = write("old", *with_template("Be brief."))
    assert main(["explain", "-f", old, "-f", write("same", *with_template("Be brief."))]) == 0
    assert main(["explain", "-f", old, "-f", write("new", *with_template("Be kind."))]) == 3
    assert "because of spec.promptTemplate.version" in capsys.readouterr().out
    alone = write("alone", with_template("")[0])
    assert main(["explain", "-f", alone, "-f", alone]) == 0
    other = edition(promptTemplate={"fromConfigMap": {"name": "prompts-2", "key": "chat"}})
    assert main(["explain", "-f", alone, "-f", write("other", other)]) == 3
    broken = write("broken", *with_template("", binaryData={"chat": "%"}))
    assert main(["explain", "-f", old, "-f", broken]) == 2
    assert "a ConfigMap does not parse" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (edition(), edition(layers={"exact": {"ttl": "7d"}}), "ttl"),
        (
            edition(),
            edition(stores={"redis": {"external": {"urlSecretRef": {"name": "a", "key": "b"}}}}),
            "cannot change",
        ),
        (edition(), edition(name="other"), "no InferenceCache is in both: "),
        (edition(), {"apiVersion": "v1", "kind": "Secret"}, "has none"),
    ],
)
def test_what_cannot_be_explained_exits_with_2(
    write: Any, capsys: pytest.CaptureFixture[str], old: dict[str, Any], new: dict[str, Any], words: str
) -> None:
    """A broken rule, a change that the API server refuses and objects that do not match are told."""
    assert main(["explain", "-f", write("old", old), "-f", write("new", new)]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-f", "a.yaml"], "two -f"),
        (["--live", "-f", "a.yaml", "-f", "b.yaml"], "one -f"),
        (["-f", "-", "-f", "-"], "once only"),
        (["-f", "missing.yaml", "-f", "missing.yaml"], "No such file"),
    ],
)
def test_a_wrong_command_line_exits_with_2(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    """Too few or too many files, and files that are not there."""
    assert main(["explain", *words]) == 2
    assert told in capsys.readouterr().err


def test_without_a_kubectl_the_message_says_so(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """`--live` needs kubectl and tells where another one may be named."""
    command = ["explain", "--live", "-f", write("new", edition()), "--kubectl", "/nowhere/kubectl"]
    assert main(command) == 2
    assert "see --kubectl" in capsys.readouterr().err


def test_without_a_running_local_mode_the_message_says_so(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--live local` with nothing running names the folder that it looked at."""
    command = ["explain", "--live", "local", "-f", write("new", edition()), "--state-dir", str(tmp_path)]
    assert main(command) == 2
    assert f"is running with {tmp_path}" in capsys.readouterr().err


def test_gateways_add_up() -> None:
    """Copies in memory count for the exact layer, and all pods together."""
    one = (
        "# TYPE cachewright_requests counter\n"
        'cachewright_requests_total{layer="local",outcome="hit",route="default"} 30\n'
        'cachewright_requests_total{layer="exact",outcome="hit",route="default"} 10\n'
        'cachewright_requests_total{layer="exact",outcome="miss",route="default"} 10\n'
        "# TYPE cachewright_entries gauge\n"
        'cachewright_entries{layer="Exact",state="active"} 17\n'
        'cachewright_entries{layer="Exact",state="retained"} 99\n'
    )
    assert numbers_of([one, one]) == {"Exact": LayerNumbers(17, 100, 0.8)}
    assert numbers_of([]) == {}


def test_explain_loads_no_server() -> None:
    """A pipeline needs neither the operator's nor the gateway's libraries to compare two files."""
    loaded = imported("explain", "--help")
    assert "cachewright.reconcile.explanation" in loaded
    assert not loaded & {"kopf", "kubernetes", "aiohttp", "redis", "uvicorn", "jinja2", "prometheus_client"}
