"""`python -m cachewright.crd write | check`: every file that is generated from the API models.

Called by the Makefile. `write` writes them below the current folder; `check` prints what differs and
exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from cachewright.crd.manifest import CHART_PATH, CRD_PATH, chart_template, crd_yaml
from cachewright.crd.reference import REFERENCE_PATH, api_reference


def generated_files() -> dict[str, str]:
    """Return each generated file's content by its path in the repository."""
    return {CRD_PATH: crd_yaml(), CHART_PATH: chart_template(), REFERENCE_PATH: api_reference()}


def write(root: Path) -> None:
    """Write every generated file that is not up to date, and say which."""
    for name, content in generated_files().items():
        target = root / name
        if target.exists() and target.read_text() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        print(f"wrote {name}")


def check(root: Path) -> bool:
    """Print how the files on disk differ from what the models say; tell whether none does."""
    same = True
    for name, content in generated_files().items():
        found = (root / name).read_text() if (root / name).exists() else ""
        if found != content:
            same = False
            difference = difflib.unified_diff(
                found.splitlines(keepends=True),
                content.splitlines(keepends=True),
                name,
                f"{name} (generated)",
            )
            sys.stdout.writelines(difference)
    if not same:
        print("generated files differ from the models; run `make generate`")
    return same


def main(arguments: list[str] | None = None) -> int:
    """Run one of the two commands; the exit code is 1 when `check` finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m cachewright.crd", description=__doc__)
    parser.add_argument("command", choices=["write", "check"])
    parser.add_argument("--root", type=Path, default=Path(), help="root of the repository (default: .)")
    options = parser.parse_args(arguments)
    if options.command == "check":
        return 0 if check(options.root) else 1
    write(options.root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
