"""`cachewright local` as a process of its own, on a free port, with a manifest that a test may edit."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import psutil
import yaml
from prometheus_client.parser import text_string_to_metric_families

QUICKSTART = Path(__file__).parents[2] / "examples/quickstart.yaml"
API_KEYS = "- {key: sk-acme, tenant: acme}\n- {key: sk-globex, tenant: globex}\n"
QUESTION = "Why is the sky blue?"
START_SECONDS = 30.0


def command(*words: str) -> list[str]:
    """Return the command line of `cachewright local`."""
    return [sys.executable, "-m", "cachewright.cli", "local", *words]


def environment(folder: Path) -> dict[str, str]:
    """Return an environment whose state folder is a test's own."""
    return {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONWARNINGS": "default"}


def refused(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command that is expected to end by itself."""
    return subprocess.run(
        command(*words),
        input=stdin,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def fetch(url: str, body: str | None = None) -> tuple[int, str]:
    """GET a URL, or POST a body to it; returns status and text."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, parts.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def eventually(condition: Any, seconds: float = 10.0) -> None:
    """Return once the condition holds; fails when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@dataclass
class Local:
    """A running `cachewright local`."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    errors: Path

    @property
    def base_url(self) -> str:
        """What OpenAI clients take."""
        return str(self.ready["base_url"])

    @property
    def store_pid(self) -> int:
        """Process id of its private store server."""
        (child,) = psutil.Process(self.process.pid).children()
        return child.pid

    def client(self, tenant: str = "acme") -> openai.OpenAI:
        """Return the OpenAI SDK's client, as a tenant."""
        return openai.OpenAI(
            base_url=self.base_url, api_key="unused", default_headers={"X-Tenant-Id": tenant}, max_retries=0
        )

    def ask(self, question: str = QUESTION, tenant: str = "acme", **fields: Any) -> tuple[str, str]:
        """Ask the model; returns what the cache said of it, and the answer."""
        messages: list[Any] = [{"role": "user", "content": question}]
        fields = {"model": "demo-model", "temperature": 0, **fields}
        with self.client(tenant) as client:
            raw = client.chat.completions.with_raw_response.create(messages=messages, **fields)
            return raw.headers["cache-status"], raw.parse().choices[0].message.content or ""

    def counted(self, metric: str) -> float:
        """Return what the gateway's metrics say of a name, over all labels."""
        families = text_string_to_metric_families(fetch(self.ready["metrics_url"])[1])
        return sum(each.value for family in families for each in family.samples if each.name == metric)

    def said(self) -> str:
        """Return what it wrote to standard error so far."""
        return self.errors.read_text()

    def end(self, number: signal.Signals = signal.SIGINT) -> float:
        """Send a signal and wait; returns how many seconds the end took."""
        started = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(30)
        return time.monotonic() - started


@contextmanager
def running(folder: Path, *words: str, manifest: Path = QUICKSTART, latency: str = "20ms") -> Iterator[Local]:
    """Run `cachewright local` until the block ends."""
    errors = folder / "errors"
    words = ("-f", str(manifest), "--port", "0", "--output", "json", "--latency", latency, *words)
    with errors.open("w") as output:
        process = subprocess.Popen(
            command(*words), stdout=subprocess.PIPE, stderr=output, text=True, env=environment(folder)
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, errors.read_text()
        local = Local(process, json.loads(line), errors)
        assert fetch(local.ready["ready_url"])[0] == 200
        yield local
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
        process.communicate()


def edited(folder: Path, **changes: Any) -> Path:
    """Write the quickstart with other fields, such as `model__version="2"`, as an editor would."""
    document = yaml.safe_load(QUICKSTART.read_text())
    for where, value in changes.items():
        *steps, last = where.split("__")
        part = document["spec"]
        for step in steps:
            part = part.setdefault(step, {})
        part[last] = value
    path = folder / "cache.yaml"
    beside = folder / ".cache.yaml.new"
    beside.write_text(yaml.safe_dump(document))
    beside.replace(path)
    return path


def with_api_keys(folder: Path) -> Path:
    """Write a manifest whose tenants come from API keys in a Secret."""
    source = {"apiKeys": {"secretRef": {"name": "team-keys", "key": "keys.yaml"}}}
    return edited(folder, tenancy__source=source)


def ask_with_key(base_url: str, key: str) -> str:
    """Ask with an API key of ours; returns what the cache said."""
    with openai.OpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(
            model="demo-model", temperature=0, messages=[{"role": "user", "content": "Who am I?"}]
        )
        return raw.headers["cache-status"]
