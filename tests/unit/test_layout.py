"""The tree itself: what must and must not stand where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_operator_folder_holds_one_package_and_no_module() -> None:
    """A Python file directly in operator/ would shadow the standard library's `operator`."""
    folder = ROOT / "operator"
    assert sorted(entry.name for entry in folder.iterdir() if entry.name != "__pycache__") == ["cachewright"]
    assert list(folder.glob("*.py")) == []


def test_the_standard_librarys_operator_is_importable_from_the_root() -> None:
    """`import operator` from the checkout's root means the standard library's."""
    code = "import operator; assert operator.add(2, 3) == 5; print(operator.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert str(ROOT) not in done.stdout


def test_every_package_of_the_architecture_is_there() -> None:
    """A stranger finds the rooms that docs/architecture.md names."""
    packages = {path.parent.name for path in (ROOT / "operator/cachewright").glob("*/__init__.py")}
    assert packages >= {
        "api",
        "cli",
        "controller",
        "crd",
        "gateway",
        "keys",
        "kube",
        "layers",
        "local",
        "policy",
        "reconcile",
        "render",
        "stores",
    }


def test_constraints_name_no_address() -> None:
    """Pins are names and versions; where packages come from is the machine's business."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    assert all("==" in line and "/" not in line and "@" not in line for line in lines)
