"""The generated files: CRD, chart template, API reference, and the check for drift."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cachewright.api.base import VALIDATIONS_KEY
from cachewright.crd.__main__ import generated_files, main
from cachewright.crd.manifest import CHART_PATH, CRD_PATH, build_crd, chart_template, crd_yaml
from cachewright.crd.reference import REFERENCE_PATH, api_reference
from tests.support.schemas import spec_and_status

ROOT = Path(__file__).parents[2]


def test_the_files_in_the_repository_are_up_to_date() -> None:
    """What is checked in is what the models say."""
    for name, content in generated_files().items():
        assert (ROOT / name).read_text() == content, f"{name}: run `make generate`"


def test_write_then_check_then_drift(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` fails on missing files, passes after `write`, and shows a hand edit as a difference."""
    root = ["--root", str(tmp_path)]
    assert main(["check", *root]) == 1
    assert main(["write", *root]) == 0
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*") if path.is_file()} == {
        CRD_PATH,
        CHART_PATH,
        REFERENCE_PATH,
    }
    capsys.readouterr()
    assert main(["check", *root]) == 0
    assert main(["write", *root]) == 0
    assert capsys.readouterr().out == ""
    target = tmp_path / CRD_PATH
    target.write_text(target.read_text().replace("maxLength: 2048", "maxLength: 4096"))
    assert main(["check", *root]) == 1
    shown = capsys.readouterr().out
    assert "-                    maxLength: 4096\n" in shown
    assert "+                    maxLength: 2048\n" in shown


def test_the_crd_names_what_users_type() -> None:
    """Short name, category, status subresource and columns are as documented."""
    spec = yaml.safe_load(crd_yaml())["spec"]
    assert spec["names"]["shortNames"] == ["icache"]
    assert spec["names"]["categories"] == ["cachewright"]
    version = spec["versions"][0]
    assert version["subresources"] == {"status": {}}
    columns = [(column["name"], column.get("priority", 0)) for column in version["additionalPrinterColumns"]]
    assert columns == [
        ("Ready", 0),
        ("Reason", 0),
        ("Version", 0),
        ("Endpoint", 0),
        ("Age", 0),
        ("Message", 1),
    ]


def test_the_yaml_reads_back_as_the_manifest() -> None:
    """Writing loses nothing, and no anchors stand in the file."""
    assert yaml.safe_load(crd_yaml()) == build_crd()
    assert "&id" not in crd_yaml()


def test_the_chart_template_differs_by_its_switches_only() -> None:
    """Without its template lines the chart's CRD is the CRD."""
    plain = [line for line in chart_template().splitlines() if "{{" not in line]
    added = {"  labels:", "  annotations:", "    helm.sh/resource-policy: keep"}
    kept = [line for line in plain if line not in added and not line.lstrip().startswith("#")]
    assert yaml.safe_load("\n".join(kept)) == build_crd()
    assert "{{- if .Values.crds.enabled }}" in chart_template()
    assert "{{- if .Values.crds.keep }}" in chart_template()


def test_the_reference_has_every_field_and_every_rule() -> None:
    """A reader of docs/api.md finds each field by its path and each rule by its sentence."""
    text = api_reference()
    for path, schema in spec_and_status():
        if not path.endswith(("[]", "{}")) and "." in path:
            parent, name = path.rsplit(".", 1)
            section = text.split(f"\n## {parent}\n", 1)[1].split("\n## ", 1)[0]
            assert f"| `{name}` |" in section, path
        for rule in schema.get(VALIDATIONS_KEY, ()):
            assert rule["message"] in text.replace("\\|", "|"), path
