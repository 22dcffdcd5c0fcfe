"""The chart's values: one list of keys in values.yaml, its schema and its README."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, Helm, HelmError

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())

FREE_FORM = {"resources", "affinity"}
"""Objects that are Kubernetes' own, passed on as they are."""


def objects_of(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object with named keys in the schema, with its path."""
    if "properties" in schema:
        yield path, schema
        for key, child in schema["properties"].items():
            yield from objects_of(child, f"{path}.{key}")
    if "items" in schema:
        yield from objects_of(schema["items"], f"{path}[]")


def keys_of(tree: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each key in values.yaml, down to free-form objects."""
    for key, value in tree.items():
        yield f"{path}.{key}"
        if isinstance(value, dict) and key not in FREE_FORM:
            yield from keys_of(value, f"{path}.{key}")


def test_the_schema_names_every_key_and_no_other() -> None:
    """A value that can be set is in values.yaml with its comment, and the other way round."""
    named = {
        f"{path}.{key}"
        for path, schema in objects_of(SCHEMA)
        for key in schema["properties"]
        if "[]" not in path
    }
    inside_free_form = {name for name in named if name.split(".")[1] in FREE_FORM and name.count(".") > 1}
    # Helm adds `global` to the values of every chart that is part of another.
    assert named - inside_free_form - {".global"} == set(keys_of(VALUES))


def test_the_schema_is_strict_everywhere() -> None:
    """Every object with named keys refuses all others."""
    loose = [path for path, schema in objects_of(SCHEMA) if schema.get("additionalProperties") is not False]
    assert loose == []


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"replica": 2}, "replica"),
        ({"crds": {"enable": True}}, "enable"),
        ({"images": {"operator": {"name": "x"}}}, "name"),
        ({"metrics": {"podMonitor": {"intervall": "30s"}}}, "intervall"),
        ({"replicas": "two"}, "replicas"),
        ({"replicas": -1}, "replicas"),
        ({"watchNamespaces": ["Not_A_Namespace"]}, "watchNamespaces"),
        ({"watchNamespaces": ["ml", "ml"]}, "watchNamespaces"),
        ({"images": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"images": {"valkey": {"digest": "8.1"}}}, "digest"),
        ({"images": {"redis": {"repository": ""}}}, "repository"),
        ({"logging": {"level": "loud"}}, "level"),
        ({"resyncSeconds": 0}, "resyncSeconds"),
        ({"imagePullSecrets": ["registry"]}, "imagePullSecrets"),
    ],
)
def test_a_mistaken_value_is_refused_by_name(helm: Helm, values: dict[str, Any], word: str) -> None:
    """Helm stops before it sends anything, and its message names the value."""
    with pytest.raises(HelmError, match=word):
        helm.render(values)


def test_the_readme_is_generated_from_the_values() -> None:
    """The chart's README lists each value with the comment and default of values.yaml."""
    done = subprocess.run(
        [sys.executable, str(CHART.parent / "readme.py"), "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    readme = (CHART / "README.md").read_text()
    parents = {path for path in keys_of(VALUES) if isinstance(_value(path), dict) and _value(path)}
    free_form = {f".{key}" for key in FREE_FORM}
    for path in set(keys_of(VALUES)) - (parents - free_form):
        assert f"| `{path[1:]}` |" in readme, f"{path[1:]} has no comment in values.yaml"


def _value(path: str) -> Any:
    tree: Any = VALUES
    for key in path[1:].split("."):
        tree = tree[key]
    return tree
