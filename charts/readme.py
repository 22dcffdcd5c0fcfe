# ruff: noqa: INP001 - a script beside the chart, not a package
"""Turns the comments in the chart's values.yaml into the chart's README; run by `make generate` and `verify`.

`python charts/readme.py write` writes charts/cachewright/README.md, `… check` fails where it differs.
A comment that starts with `# --` describes the key below it; further comment lines go on with it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).parent / "cachewright"
README: Final = CHART / "README.md"

_KEY: Final = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):")
_MINOR_VERSION: Final = re.compile(r"\d+\.\d+")
INDENT: Final = 2

TEMPLATE: Final = """\
<!-- Written by charts/readme.py from values.yaml; edit that. -->
# Chart `cachewright`

The operator of [cachewright](../../README.md): response caches in front of LLM and model-serving engines.
It installs the InferenceCache CRD, one operator Deployment and the roles that the operator needs.
Stores and gateways are made later, by the operator, for each InferenceCache.

```sh
helm install cachewright charts/cachewright --namespace cachewright-system --create-namespace
```

It needs Kubernetes {kube_version} or newer.
[docs/operations.md](../../docs/operations.md) tells about upgrading, single namespaces, rights and removal.
Unknown keys are refused, so a misspelt value does not pass in silence.

## Values

| key | default | what it does |
|---|---|---|
{rows}
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One documented key."""

    path: str
    default: object
    text: str


def documented_values(text: str) -> Iterator[Value]:
    """Yield each key that has a comment, in the file's order.

    Raises ValueError for a comment that no key follows.
    """
    tree = yaml.safe_load(text)
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# -- "):
            comment = [stripped.removeprefix("# -- ")]
        elif comment and stripped.startswith("#"):
            comment.append(stripped.removeprefix("#").strip())
        elif match := _KEY.match(line):
            path = [*path[: len(match[1]) // INDENT], match[2]]
            if comment:
                yield Value(".".join(path), _look_up(tree, path), " ".join(comment))
            comment = []
        elif comment:
            raise ValueError(f"no key follows the comment {comment[0]!r}")


def render() -> str:
    """Render the README from the chart as it is now."""
    rows = [
        f"| `{value.path}` | `{json.dumps(value.default)}` | {value.text} |"
        for value in documented_values((CHART / "values.yaml").read_text())
    ]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    kube_version = _MINOR_VERSION.search(chart["kubeVersion"])
    if kube_version is None:
        raise ValueError("Chart.yaml names no kubeVersion")
    return TEMPLATE.format(kube_version=kube_version[0], rows="\n".join(rows))


def main() -> int:
    """Write or check the README; 1 where it differs."""
    parser = argparse.ArgumentParser(description="Keep the chart's README in step with values.yaml.")
    parser.add_argument("action", choices=["write", "check"])
    if parser.parse_args().action == "write":
        README.write_text(render())
        return 0
    if README.exists() and README.read_text() == render():
        return 0
    sys.stderr.write(f"{README} differs from values.yaml; run `make generate`\n")
    return 1


def _look_up(tree: dict[str, Any], path: list[str]) -> object:
    node: object = tree
    for key in path:
        node = node[key] if isinstance(node, dict) else None
    return node


if __name__ == "__main__":
    sys.exit(main())
