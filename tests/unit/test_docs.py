"""The pages under docs/ and the README: what they name exists, and what exists is named."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.metrics import MetricWrapperBase

from cachewright.api.conditions import ConditionType, Reason
from cachewright.controller.metrics import OperatorMetrics
from cachewright.controller.queue import WorkQueue
from cachewright.controller.roster import Roster
from cachewright.crd.validation import load
from cachewright.gateway.metrics import GatewayMetrics
from cachewright.keys.scheme import EXCLUDED_FIELDS
from cachewright.kube.permissions import CACHE_PERMISSIONS, STACK_PERMISSIONS
from cachewright.policy.compat import BODY_CONTROLS, HEADER_CONTROLS
from cachewright.policy.reasons import BypassReason, RefusalReason, SemanticReason, SemanticRefusal

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "charts" / "cachewright" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PAGE_IDS = [str(page.relative_to(ROOT)) for page in PAGES]

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def headings(text: str) -> list[str]:
    """List the headings of a page, without those in code."""
    return re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)


def anchor(heading: str) -> str:
    """Turn a heading into the anchor that forges give it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def section(text: str, title: str) -> str:
    """Cut out one second-level section."""
    _, _, rest = text.partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Read the cells of a table's body."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def metrics_of(registry: CollectorRegistry) -> Iterator[tuple[str, str]]:
    """Yield name, as Prometheus sees it, and labels of each metric of ours."""
    for collector in registry._collector_to_names:
        if isinstance(collector, MetricWrapperBase):
            suffix = "_total" if isinstance(collector, Counter) else ""
            yield f"{collector._name}{suffix}", ", ".join(collector._labelnames)


def test_the_conditions_page_explains_every_type_and_no_other() -> None:
    """Each condition type that status may carry has its paragraph."""
    page = (ROOT / "docs" / "conditions.md").read_text()
    assert headings(section(page, "Types")) == [str(kind) for kind in ConditionType]


def test_the_conditions_page_explains_every_reason_and_no_other() -> None:
    """Each reason that status may carry says what it means and what to do, in the order of the code."""
    page = (ROOT / "docs" / "conditions.md").read_text()
    assert headings(section(page, "Reasons")) == [str(reason) for reason in Reason]


@pytest.mark.parametrize(
    ("title", "reasons"),
    [("Why a request is not looked up", BypassReason), ("Why an answer is not stored", RefusalReason)],
)
def test_the_cache_status_page_explains_every_reason(title: str, reasons: type[StrEnum]) -> None:
    """Each reason that `Cache-Status` may carry has its row, in the order of the code."""
    page = (ROOT / "docs" / "cache-status.md").read_text()
    assert [row[0].strip("`") for row in rows(section(page, title))] == [str(reason) for reason in reasons]


def test_the_cache_status_page_explains_every_reason_of_the_semantic_layer() -> None:
    """Why it did not answer, and why it did not keep an answer, each in the order of the code."""
    page = section((ROOT / "docs" / "cache-status.md").read_text(), "Why no similar question was found")
    _, misses, refusals = re.split(r"^\| reason", page, flags=re.MULTILINE)
    for table, reasons in ((misses, SemanticReason), (refusals, SemanticRefusal)):
        listed = [row[0].strip("`") for row in rows(f"| reason{table}")]
        assert listed == [str(reason) for reason in reasons]


def test_the_migration_page_lists_every_control_that_is_understood() -> None:
    """In the order of the code, with the effect that the code gives it."""
    page = section((ROOT / "docs" / "migrate.md").read_text(), "Controls that clients may keep")
    listed = [row for row in rows(page) if len(row) == 3 and row[1].startswith("`")]
    assert listed == [
        [
            control.product,
            f"`{control.name}`",
            control.effect + (f", where it is `{control.only}`" if control.only else ""),
        ]
        for control in (*HEADER_CONTROLS, *BODY_CONTROLS)
    ]


def test_the_cache_status_page_lists_the_fields_outside_the_key() -> None:
    """The published list of fields that do not tell two requests apart is the one in force."""
    page = (ROOT / "docs" / "cache-status.md").read_text()
    (line,) = [text for text in page.splitlines() if text.startswith("These fields of the body")]
    assert re.findall(r"`(\w+)`", line) == sorted(EXCLUDED_FIELDS)


def test_the_architecture_page_shows_the_layers_that_are_enforced() -> None:
    """The order of imports on the page is the one that import-linter checks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    blocks = [code.splitlines() for _, code in _FENCE.findall((ROOT / "docs/architecture.md").read_text())]
    assert layers in blocks


def test_the_operations_page_lists_every_right() -> None:
    """What the operator may do is documented as exactly as it is granted."""
    page = (ROOT / "docs" / "operations.md").read_text()
    documented = {
        (group.replace("core", ""), resource, verb)
        for group, resources, verbs, _ in rows(section(page, "What the operator may do"))
        for resource in resources.split(", ")
        for verb in verbs.split(", ")
    }
    assert documented == {
        (permission.group, resource, verb)
        for permission in (*CACHE_PERMISSIONS, *STACK_PERMISSIONS)
        for resource in permission.resources
        for verb in permission.verbs
    }


def test_the_operations_page_lists_every_metric() -> None:
    """Each metric of operator and gateway has its row with its labels, and no other has one."""
    operator = OperatorMetrics()
    with contextlib.closing(asyncio.new_event_loop()) as clock:
        operator.follow(WorkQueue(clock), Roster(time.monotonic))
    page = section((ROOT / "docs" / "operations.md").read_text(), "Metrics")
    _, operators, gateways = re.split(r"^\| metric", page, flags=re.MULTILINE)
    for table, registry in [(operators, operator.registry), (gateways, GatewayMetrics().registry)]:
        documented = {(name.strip("`"), labels) for name, labels, _ in rows(f"| metric{table}")}
        assert documented == set(metrics_of(registry))


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Links between files and to headings of files are kept alive."""
    for target in _LINK.findall(_INLINE_CODE.sub("", _FENCE.sub("", page.read_text()))):
        if target.startswith(("http://", "https://")):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if fragment:
            anchors = [anchor(heading) for heading in headings(file.read_text())]
            assert fragment in anchors, f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_every_manifest_is_valid(page: Path) -> None:
    """An InferenceCache that a page shows is accepted by the rules that the API server has."""
    for language, code in _FENCE.findall(page.read_text()):
        if language != "yaml":
            continue
        for document in yaml.safe_load_all(code):
            if isinstance(document, dict) and document.get("kind") == "InferenceCache":
                load(document)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "api.md"], ids=[i for i in PAGE_IDS if "api.md" not in i]
)
def test_one_sentence_a_line(page: Path) -> None:
    """Prose has one sentence a line, so that changes are easy to read."""
    prose = _FENCE.sub("", page.read_text())
    crowded = [
        line
        for line in prose.splitlines()
        if not line.startswith(("|", "#", "<!--")) and re.search(r"[a-z)`][.!?] [A-Z][a-z]", line)
    ]
    assert crowded == []


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_every_python_example_runs(page: Path) -> None:
    """What a page shows in Python runs with the libraries as they are pinned."""
    for language, code in _FENCE.findall(page.read_text()):
        if language == "python":
            exec(compile(code, str(page), "exec"), {})  # noqa: S102 - our own pages


def test_the_readme_shows_what_the_demo_tells() -> None:
    """Every line with a tick in the README is one that the demo can print."""
    told = re.findall(r"^  ✓ (.{58})", (ROOT / "README.md").read_text(), re.MULTILINE)
    demo = "".join(path.read_text() for path in sorted((ROOT / "e2e").glob("demo*.py")))
    assert told
    assert [line for line in told if f'"{line.strip()}"' not in demo] == []


def test_make_targets_that_pages_name_exist() -> None:
    """Every `make TARGET` of a page is in the Makefile."""
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for command in re.findall(r"`?make ((?:[a-z0-9-]+ ?)+)", "\n".join(_code(page.read_text()))):
            for target in command.split():
                assert target in targets, f"{page.name}: make {target}"


def _code(text: str) -> list[str]:
    """List the shell blocks and inline code of a page."""
    blocks = [code for language, code in _FENCE.findall(text) if language == "sh"]
    return [re.sub(r" *#.*", "", "\n".join(blocks)), *re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))]
