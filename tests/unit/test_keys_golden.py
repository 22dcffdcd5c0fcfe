"""The key scheme is pinned: the same requests have the same keys in every process and release."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import GOLDEN, CompareGolden
from tests.unit.key_vectors import vectors

ROOT = Path(__file__).parents[2]


def test_the_scheme_is_what_it_was(golden: CompareGolden) -> None:
    """A change of any key is a new scheme version, never an accident."""
    golden("keys/cw1.json", vectors())


@pytest.mark.parametrize("seed", ["0", "1", "4294967295", "random"])
def test_keys_do_not_depend_on_the_process(seed: str) -> None:
    """Another process with another hash seed gives the pinned keys."""
    printed = subprocess.run(
        [sys.executable, "-m", "tests.unit.key_vectors"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout
    assert printed.decode() == (GOLDEN / "keys/cw1.json").read_text()


def test_equal_requests_share_a_key_and_others_do_not() -> None:
    """The one request that is spelled twice has one key, and all others have their own."""
    keys = {name: vector["key"] for name, vector in json.loads(vectors()).items()}
    assert keys.pop("spelled otherwise") == keys["plain"]
    assert len(set(keys.values())) == len(keys)
