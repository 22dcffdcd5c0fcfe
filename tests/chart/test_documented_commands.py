"""The helm commands of README and docs do what they say: their values are accepted and rendered."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.chart.helm import Helm

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "charts/cachewright/README.md",
]

_SHELL: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def helm_commands() -> list[str]:
    """List the commands that install or upgrade, each in one line."""
    blocks = [block for page in PAGES for block in _SHELL.findall(page.read_text())]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if re.match(r"helm (install|upgrade) ", line)]


def test_there_are_commands_to_try() -> None:
    """The pages still show how to install and how to upgrade."""
    assert {command.split()[1] for command in helm_commands()} == {"install", "upgrade"}


@pytest.mark.parametrize("command", helm_commands())
def test_a_documented_command_renders(helm: Helm, command: str) -> None:
    """Release, chart, namespace and every `--set` of a documented command are good."""
    _, _, release, chart, *rest = shlex.split(command)
    assert (ROOT / chart / "Chart.yaml").exists()
    settings = [word for flag, word in itertools.pairwise(rest) if flag == "--set"]
    namespace = rest[rest.index("--namespace") + 1]
    text = helm.render(release=release, namespace=namespace, settings=settings)
    for setting in settings:
        _, _, value = setting.partition("=")
        for part in value.strip("{}").split(","):
            assert part in text, f"{setting} changes nothing"
