"""`python -m e2e.parsers [ENGINE…]`: install, ask each parser, compare, record."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cachewright.engines.configuring import configure
from cachewright.engines.settings import Connector, Engine, Eviction, HashAlgorithm, PrefixSettings
from cachewright.engines.versions import EngineVersion
from e2e.cluster import cache
from e2e.cluster.console import Step

FOLDER: Final = Path(__file__).parent
RECORD: Final = FOLDER / "checked.json"
"""Which words each engine's parser has taken, and its version; a unit test holds the tables against it."""

NO_FLAG: Final = "--no-such-flag-of-any-engine=1"
"""Every parser must refuse it, else it refuses nothing and the check is worth nothing."""


@dataclass(frozen=True)
class Package:
    """An engine's package, and what asks its parser."""

    name: str
    version: str
    script: str


PACKAGES: Final = {
    Engine.VLLM: Package("vllm", "0.32.0", "in_vllm.py"),
    Engine.SGLANG: Package("sglang", "0.5.23", "in_sglang.py"),
}
"""TensorRT-LLM and Triton publish no package that installs from the public index."""

GIGABYTE: Final = 1000**3
SETTINGS: Final = {
    Engine.VLLM: [
        PrefixSettings(block_size=48, gpu_memory_share=0.9, events_endpoint="tcp://*:5557"),
        *(PrefixSettings(hash_algorithm=name) for name in HashAlgorithm),
        *(PrefixSettings(host_memory_bytes=1024**3, connector=name) for name in Connector),
    ],
    Engine.SGLANG: [
        PrefixSettings(block_size=64, gpu_memory_share=0.85, events_endpoint="tcp://*:5557"),
        *(PrefixSettings(eviction=name) for name in Eviction),
        PrefixSettings(host_memory_bytes=64 * GIGABYTE, connector=Connector.NATIVE),
        PrefixSettings(connector=Connector.LMCACHE),
    ],
}
"""Together they render every argument, and every value that has a name."""


def main(words: list[str] | None = None) -> int:
    """Check the engines that are named, or all; 1 where a parser refuses what we render."""
    parser = argparse.ArgumentParser(prog="python -m e2e.parsers", description=__doc__)
    parser.add_argument("engines", nargs="*", choices=[[], *map(str, PACKAGES)], metavar="ENGINE")
    named = [Engine(name) for name in parser.parse_args(words).engines] or list(PACKAGES)
    checked = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    failed = False
    for engine in named:
        refused, taken = check(engine)
        for word, complaint in refused.items():
            failed = True
            print(f"{engine} {PACKAGES[engine].version} refuses {word}: {complaint}", file=sys.stderr)
        checked[str(engine)] = {"version": PACKAGES[engine].version, "taken": taken}
        print(f"{engine} {PACKAGES[engine].version}: {len(taken)} arguments taken, {len(refused)} refused")
    if not failed:
        RECORD.write_text(json.dumps(checked, indent=2, sort_keys=True) + "\n")
    return int(failed)


def check(engine: Engine) -> tuple[dict[str, str], list[str]]:
    """Let an engine's parser read each word that we can render; returns complaints, and what was taken."""
    package = PACKAGES[engine]
    words = rendered(engine, EngineVersion.parse(package.version))
    python = environment(package)
    with Step(f"asking the parser of {package.name} {package.version}"):
        told = ask(python, package, [*([word] for word in words), words, [NO_FLAG]])
    *alone, together, nonsense = told
    if nonsense is None:
        raise SystemExit(f"the parser of {package.name} takes {NO_FLAG}, so it checks nothing")
    refused = {word: complaint for word, complaint in zip(words, alone, strict=True) if complaint}
    if together is not None:
        refused[" ".join(words)] = together
    return refused, [word for word in words if word not in refused]


def rendered(engine: Engine, version: EngineVersion) -> list[str]:
    """Return every word that an engine is given by any of its settings, each once."""
    found: dict[str, None] = {}
    for settings in SETTINGS[engine]:
        for one in (settings, replace(settings, report_cached_tokens=True)):
            found.update(dict.fromkeys(configure(engine, version, one).words))
    return list(found)


def environment(package: Package) -> Path:
    """Return the Python of an environment with the package, made if need be."""
    folder = cache.root() / "engines" / f"{package.name}-{package.version}"
    python, done = folder / "bin" / "python", folder / ".installed"
    if not done.exists():
        with Step(f"installing {package.name} {package.version}, about 8 GB"):
            venv.create(folder, with_pip=True, clear=True)
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*install, f"{package.name}=={package.version}"], check=True)
            done.touch()
    return python


def ask(python: Path, package: Package, lists: list[list[str]]) -> list[str | None]:
    """Ask a parser; None for each list of words that it takes, else its complaint."""
    done = subprocess.run(
        [str(python), str(FOLDER / package.script)],
        input=json.dumps(lists),
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{package.script} failed:\n{done.stderr[-2000:]}")
    told: list[str | None] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


if __name__ == "__main__":
    sys.exit(main())
