"""`cachewright validate`: from manifest files to a list of every problem, for people or for pipelines.

Called by `cli.main`, and in part by `cli.local`. The rules are those of the API server; see `crd.validation`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cachewright.api.names import GROUP, KIND
from cachewright.cli.manifests import Manifest, Position, read_manifests
from cachewright.cli.options import add_files_argument, add_output_argument
from cachewright.crd.validation import STRUCTURE, problems
from cachewright.errors import InvalidDocument

EXAMPLES: Final = """\
examples:
  cachewright validate -f cache.yaml
  cachewright validate -f manifests/ -f more.yaml --output json
  kustomize build . | cachewright validate -f -
  kubectl get icache support-bot -o yaml | cachewright validate -f changed.yaml --old -

A directory means its *.yaml, *.yml and *.json files. Objects of other kinds are skipped and counted.

exit code:
  0  no problem was found
  1  an InferenceCache breaks a rule
  2  a file cannot be read
"""

STDIN: Final = "-"
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, where an editor or a pipeline can find it."""

    file: str
    line: int
    column: int
    object: str
    path: str
    message: str
    rule: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file whose objects could not be told."""

    file: str
    message: str


@dataclass(slots=True)
class Report:
    """What was seen in all files together."""

    checked: int = 0
    skipped: int = 0
    problems: list[Finding] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 valid, 1 problems, 2 unreadable."""
        return 2 if self.unreadable else 1 if self.problems else 0

    @property
    def summary(self) -> str:
        """Return the last line for people."""
        caches = "1 InferenceCache" if self.checked == 1 else f"{self.checked} InferenceCaches"
        found = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        parts = [f"{caches} checked", found if self.problems else "no problems"]
        if self.skipped:
            parts.append(f"{self.skipped} other object{'' if self.skipped == 1 else 's'} skipped")
        if self.unreadable:
            parts.append(f"{len(self.unreadable)} unreadable")
        return ", ".join(parts)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cachewright validate`."""
    add_files_argument(parser, "file or directory to check, - for standard input; may be repeated")
    parser.add_argument(
        "--old",
        metavar="FILE",
        help="the objects as they are now, to check rules about changes too (matched by namespace and name)",
    )
    add_output_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Check all files, print the result, and return the exit code."""
    if options.old == STDIN and STDIN in options.files:
        print("standard input can be read once only: give -f or --old a file", file=sys.stderr)
        return 2
    report = Report()
    former: dict[str, Any] = {}
    if options.old:
        former = {_identity(each): each.value for _, each in _caches([options.old], report)}
        report = Report(unreadable=report.unreadable)
    for file, manifest in _caches(options.files, report):
        report.checked += 1
        report.problems += findings(file, manifest, former.get(_identity(manifest)))
    _print_json(report) if options.output == "json" else _print_text(report)
    return report.exit_code


def _caches(names: list[str], report: Report) -> Iterator[tuple[str, Manifest]]:
    """Yield every InferenceCache with its file; count the others and note what cannot be read."""
    for file, manifest in manifests_in(names, report):
        if is_ours(manifest.value):
            yield file, manifest
        else:
            report.skipped += 1


def manifests_in(names: list[str], report: Report) -> Iterator[tuple[str, Manifest]]:
    """Yield every object with its file, and note what cannot be read; local mode uses it too."""
    for name in names:
        for file in files_in(name):
            try:
                manifests = list(read_manifests(_text(file)))
            except (OSError, UnicodeDecodeError, InvalidDocument) as error:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                report.unreadable.append(Unreadable(shown(file), reason))
                continue
            yield from ((shown(file), manifest) for manifest in manifests)


def files_in(name: str) -> list[str]:
    """Return the manifest files of a directory, or the file itself; local mode uses it too."""
    if name == STDIN or not Path(name).is_dir():
        return [name]
    return sorted(str(path) for path in Path(name).iterdir() if path.suffix in _SUFFIXES and path.is_file())


def _text(file: str) -> str:
    return (sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()).decode("utf-8-sig")


def shown(file: str) -> str:
    """Name a file for people."""
    return "<stdin>" if file == STDIN else file


def is_ours(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether an object is, or tries to be, an InferenceCache."""
    if not isinstance(value, dict):
        return False
    return value.get("kind") == KIND or str(value.get("apiVersion", "")).startswith(f"{GROUP}/")


def _identity(manifest: Manifest) -> str:
    metadata = manifest.value.get("metadata")
    if not isinstance(metadata, dict):
        return "default/?"
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name') or '?'}"


def findings(file: str, manifest: Manifest, former: Any) -> Iterator[Finding]:  # noqa: ANN401
    """Yield every problem of an object, in the order of its lines; local mode uses it too."""
    identity = _identity(manifest)

    def finding(position: Position, path: str, message: str, rule: str) -> Finding:
        return Finding(file, position.line, position.column, identity, path, message, rule)

    found = [finding(defect.position, "", defect.message, STRUCTURE) for defect in manifest.defects]
    for problem in problems(manifest.value, former):
        position = manifest.position(problem.location)
        found.append(finding(position, problem.path, problem.message, problem.rule))
    yield from sorted(found, key=lambda each: (each.line, each.column))


def _print_text(report: Report) -> None:
    for unreadable in report.unreadable:
        print(f"{unreadable.file}: {unreadable.message}")
    for finding in report.problems:
        print(finding)
    print(report.summary)


def _print_json(report: Report) -> None:
    print(json.dumps({"valid": report.exit_code == 0, **asdict(report)}, indent=2))
