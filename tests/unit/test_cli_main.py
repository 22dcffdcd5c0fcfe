"""The command line as a whole: dispatch, help, version, and what is imported when."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from cachewright.cli.main import COMMANDS, main
from cachewright.crd.manifest import build_crd


def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "cachewright.cli", *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=300)


def test_help_names_every_command_and_has_examples() -> None:
    """A newcomer finds each command and how it is called."""
    done = run("--help")
    assert done.returncode == 0
    for command, (_, summary) in COMMANDS.items():
        assert command in done.stdout
        assert summary in done.stdout
    assert "examples:" in done.stdout


def test_version() -> None:
    """The version is that of the installed package."""
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("cachewright 0.")


@pytest.mark.parametrize("words", [[], ["serve"], ["--verbose"]])
def test_a_wrong_command_line_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No command, an unknown one, an unknown option: usage on standard error, exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: cachewright" in capsys.readouterr().err


def test_crd_prints_what_can_be_applied(capsys: pytest.CaptureFixture[str]) -> None:
    """`cachewright crd | kubectl apply -f -` gets the CRD."""
    assert main(["crd"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == build_crd()


def imported(*words: str) -> set[str]:
    """Return the modules that are loaded once a command has shown its help."""
    program = (
        "import sys\n"
        "from cachewright.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(' '.join(sorted(sys.modules)), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return set(done.stderr.split())


def test_a_command_whose_libraries_are_missing_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bare install says what to install in place of a traceback."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    for name in [
        each for each in sys.modules if each.startswith(("cachewright.cli.local", "cachewright.gateway.main"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["local", "--help"]) == 2
    assert "pip install 'cachewright[local]'" in capsys.readouterr().err


def test_help_of_the_whole_imports_no_command() -> None:
    """Only what is asked for is loaded."""
    loaded = imported("--help")
    assert not loaded & {name for name, _ in COMMANDS.values()}
    assert not loaded & {"pydantic", "yaml", "cel", "kopf", "kubernetes", "aiohttp"}


def test_validate_loads_no_server() -> None:
    """Checking a file needs neither the operator's nor the gateway's libraries."""
    assert not imported("validate", "--help") & {
        "kopf",
        "kubernetes",
        "aiohttp",
        "redis",
        "uvicorn",
        "jinja2",
    }


def test_the_gateway_loads_nothing_of_the_operator() -> None:
    """A gateway pod stays light: no kopf, no Kubernetes client, no templates, no CRD generator."""
    loaded = imported("gateway", "--help")
    assert "cachewright.gateway.main" in loaded
    assert not loaded & {"kopf", "kubernetes", "jinja2", "cachewright.controller", "cachewright.crd", "cel"}


def test_local_mode_needs_nothing_of_the_operator() -> None:
    """The extra `local` is enough: neither kopf nor a Kubernetes client nor templates."""
    loaded = imported("local", "--help")
    assert "cachewright.local.session" in loaded
    assert not loaded & {"kopf", "kubernetes", "jinja2", "cachewright.controller", "cachewright.kube"}


def test_the_operator_has_its_options_in_its_help() -> None:
    """The arguments of a command are added when it is chosen."""
    done = run("operator", "--help")
    assert done.returncode == 0
    assert "--resync-seconds" in done.stdout
