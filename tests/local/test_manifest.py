"""What `cachewright local` accepts, and what it says to everything else before it starts anything."""

from __future__ import annotations

import base64
import socket
import subprocess
from pathlib import Path

import openai
import pytest
import yaml

from cachewright.cli.main import main
from cachewright.errors import InvalidInput
from cachewright.local.secret_options import SecretOption, gather
from tests.local.harness import (
    API_KEYS,
    QUICKSTART,
    ask_with_key,
    command,
    edited,
    environment,
    refused,
    running,
    with_api_keys,
)


def test_an_invalid_manifest_is_told_as_by_validate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every problem with file, line and column, the very text of `cachewright validate`, exit code 1."""
    path = edited(tmp_path, model__version="", layers__exact__ttl="soon", gateway__replicas=-1)
    assert main(["local", "-f", str(path)]) == 1
    told = capsys.readouterr()
    assert main(["validate", "-f", str(path)]) == 1
    assert told.err == capsys.readouterr().out
    assert told.err.count(f"{path}:") == 3
    assert told.out == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "line 1"),
        ("kind: ConfigMap\n", "there is no InferenceCache"),
        ("", "there is no InferenceCache"),
    ],
)
def test_what_is_no_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    """Exit code 2 and one line about the file."""
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert main(["local", "-f", str(path)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert str(path) in told


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and the file's name."""
    assert main(["local", "-f", str(tmp_path / "absent.yaml")]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/absent.yaml: No such file or directory\n"


def test_several_caches_need_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --name they are listed; with it the right one is served."""
    document = yaml.safe_load(QUICKSTART.read_text())
    other = {**document, "metadata": {"name": "second"}}
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump_all([document, other]))
    assert main(["local", "-f", str(path)]) == 2
    assert "choose one with --name: quickstart, second" in capsys.readouterr().err
    assert main(["local", "-f", str(path), "--name", "third"]) == 2
    assert "no InferenceCache third" in capsys.readouterr().err
    with running(tmp_path, "--name", "second", "--state-dir", str(tmp_path / "kept"), manifest=path):
        assert (tmp_path / "kept/record.json").is_file()
    assert not (tmp_path / "state").exists()


def test_a_manifest_from_standard_input(tmp_path: Path) -> None:
    """`-f -` reads it once; the port is refused here so that the command ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = refused(tmp_path, "-f", "-", "--port", port, stdin=QUICKSTART.read_text())
    assert done.returncode == 3
    assert f"port {port} is in use; choose another with --port" in done.stderr


@pytest.mark.parametrize("option", ["--port", "--management-port"])
def test_a_port_in_use(tmp_path: Path, option: str) -> None:
    """One line that names the option, exit code 3, and no server left."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = {"--port": "0", option: port}
        flat = [word for pair in words.items() for word in pair]
        done = refused(tmp_path, "-f", str(QUICKSTART), *flat)
    assert done.returncode == 3
    assert done.stderr == f"port {port} is in use; choose another with {option} (0: any free one)\n"
    assert done.stdout == ""


def test_one_run_at_a_time_on_one_state_folder(tmp_path: Path) -> None:
    """The second is told how to go on, and the first is left alone."""
    with running(tmp_path, "--store", "memory") as local:
        done = refused(tmp_path, "-f", str(QUICKSTART), "--port", "0")
        assert done.returncode == 3
        assert "another `cachewright local` is using" in done.stderr
        assert "--state-dir" in done.stderr
        assert local.ask()[0].startswith("cachewright; fwd=miss")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--store", "floppy"], "--store wants auto, valkey, redis, memory or a URL"),
        (["--store", "http://x"], "the store's URL must look like"),
        (["--upstream", "localhost:8000"], "must be a URL such as"),
        (["--latency", "fast"], "must be a duration"),
        (["--port", "70000"], "must be a port"),
        (["--secret", "nonsense"], "NAME/KEY=@FILE"),
        (["--secret", "a/hunter2"], "NAME/KEY=@FILE"),
        (["--ephemeral", "--state-dir", "x"], "not allowed with"),
    ],
)
def test_a_wrong_option(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    """Usage on standard error, what was wanted, exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(["local", "-f", str(QUICKSTART), *words])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_missing_secrets_are_named_with_the_option_to_give_them(tmp_path: Path) -> None:
    """All at once, with what to write on the command line."""
    manifest = QUICKSTART.parent / "external-redis.yaml"
    done = refused(tmp_path, "-f", str(manifest), "--port", "0", "--upstream", "manifest")
    assert done.returncode == 2
    for place in ("openai/token", "private-ca/ca.crt", "support-bot-keys/keys.yaml"):
        assert f"--secret {place}=@FILE" in done.stderr
    assert "redis-url" not in done.stderr  # a store of our own takes its place


def test_a_secret_in_the_manifests_file(tmp_path: Path) -> None:
    """A Secret object beside the InferenceCache is all that it needs, encoded or plain."""
    manifest = with_api_keys(tmp_path)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "team-keys"},
        "data": {"keys.yaml": base64.b64encode(b"- {key: overridden, tenant: nobody}").decode()},
        "stringData": {"keys.yaml": API_KEYS},
    }
    manifest.write_text(f"{manifest.read_text()}---\n{yaml.safe_dump(secret)}")
    with running(tmp_path, "--store", "memory", manifest=manifest) as local:
        assert ask_with_key(local.base_url, "sk-acme").startswith("cachewright; fwd=miss")
        assert ask_with_key(local.base_url, "sk-acme").startswith("cachewright; hit")
        assert ask_with_key(local.base_url, "sk-globex").startswith("cachewright; fwd=miss")
        with pytest.raises(openai.AuthenticationError):
            ask_with_key(local.base_url, "overridden")


def test_every_way_to_give_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a file, from the environment, or as it is; each wins over the manifest's."""
    (tmp_path / "token").write_bytes(b"from a file")
    monkeypatch.setenv("TOKEN", "from the environment")
    texts = [f"a/file=@{tmp_path}/token", "a/env=env:TOKEN", "a/value=a=b/c", "a/in.both=ours"]
    options = tuple(SecretOption.parse(text) for text in texts)
    assert gather(options, {("a", "in.both"): b"theirs", ("b", "kept"): b"kept"}) == {
        ("a", "file"): b"from a file",
        ("a", "env"): b"from the environment",
        ("a", "value"): b"a=b/c",
        ("a", "in.both"): b"ours",
        ("b", "kept"): b"kept",
    }
    assert "from" not in repr(options)
    assert "ours" not in repr(options)


@pytest.mark.parametrize(
    ("given", "said"),
    [("@absent", "absent: No such file"), ("env:ABSENT", "the environment variable ABSENT is not set")],
)
def test_a_secret_that_cannot_be_read(given: str, said: str) -> None:
    """The message names the place and what is missing."""
    with pytest.raises(InvalidInput, match=said):
        SecretOption.parse(f"team-keys/keys.yaml={given}").value()


def test_a_secret_that_makes_no_sense(tmp_path: Path) -> None:
    """What the gateway could not use is told at the start, without its value, with exit code 2."""
    words = ["--port", "0", "--store", "memory", "--secret", "team-keys/keys.yaml=hunter2"]
    done = refused(tmp_path, "-f", str(with_api_keys(tmp_path)), *words)
    assert done.returncode == 2
    assert "must be a list" in done.stderr
    assert "hunter2" not in done.stderr


def test_without_a_terminal_it_speaks_in_lines(tmp_path: Path) -> None:
    """Into a pipe go the greeting and one line an interval, each flushed as it is written."""
    words = [
        "-f",
        str(QUICKSTART),
        "--port",
        "0",
        "--store",
        "memory",
        "--interval",
        "200ms",
        "--latency",
        "1ms",
    ]
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, text=True, env=environment(tmp_path)
    ) as process:
        try:
            assert process.stdout is not None
            greeting = "".join(
                iter(
                    process.stdout.readline,
                    '  print(answer.headers["cache-status"], answer.parse().choices[0].message.content)\n',
                )
            )
            curl = next(line for line in greeting.splitlines() if line.startswith("  curl"))
            assert "X-Tenant-Id: acme" in curl
            for _ in range(2):
                done = subprocess.run(curl, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
            assert "cache-status: cachewright; hit" in done.stdout.lower()
            lines = iter(process.stdout.readline, "")
            line = next(each for each in lines if "requests" in each)
            assert "/s)" in line
        finally:
            process.terminate()
