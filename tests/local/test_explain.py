"""`cachewright explain --live local`: what an edit would cost a running cache, before it is saved."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.local.harness import QUICKSTART, edited, environment, eventually, fetch, running


def explained(folder: Path, manifest: Path) -> tuple[int, dict[str, Any]]:
    """Explain a manifest against what runs; returns exit code and document."""
    command = [sys.executable, "-m", "cachewright.cli", "explain", "--live", "local", "-f", str(manifest)]
    done = subprocess.run(
        [*command, "--output", "json"],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    (cache,) = json.loads(done.stdout)["caches"]
    return done.returncode, cache


def test_the_running_cache_is_told_with_its_numbers(tmp_path: Path) -> None:
    """Keyspace, look-ups and hit rate are those of the run, which is not touched."""
    other = tmp_path / "other"
    other.mkdir()
    with running(tmp_path) as local:
        for _ in range(4):
            local.ask()
        code, cache = explained(tmp_path, edited(other, model__version="2"))
        (layer,) = cache["layers"]
        assert code == 3
        assert cache["cache"] == "local/quickstart"
        assert (layer["fate"], layer["causes"]) == ("Rotates", ["spec.model.version"])
        assert layer["keyspace"]["before"] == local.ready["keyspace"]
        assert layer["keyspace"]["after"].endswith("-2")
        assert (layer["lookups"], layer["hitRate"]) == (4, 0.75)
        assert explained(tmp_path, QUICKSTART)[0] == 0
        assert local.ask()[0].startswith("cachewright; hit")


def test_an_edit_is_the_edition_in_use(tmp_path: Path) -> None:
    """After an edit took effect, going back is what rotates."""
    with running(tmp_path, manifest=edited(tmp_path)) as local:
        edited(tmp_path, model__version="2")
        eventually(lambda: "keyspace" in local.said())
        assert explained(tmp_path, tmp_path / "cache.yaml")[0] == 0
        assert explained(tmp_path, QUICKSTART)[0] == 3
        assert fetch(local.ready["ready_url"])[0] == 200
