"""The gateways that are measured: ours as its image runs it, and LiteLLM's proxy in its own environment.

Both get the same store, the same upstream and one worker process. Called by `bench.stage`.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import psutil
import yaml

from bench.processes import free_port, running
from cachewright.crd.validation import load
from cachewright.keys.digest import key_id_of
from cachewright.keys.record import Record
from cachewright.policy.from_spec import build_policy
from tests.adversarial.cases import ALIAS, ARM_HEADER, MODEL, ROLE_HEADER, TENANT_HEADER, VARY_HEADER

LITELLM: Final = "litellm[proxy]==1.106.12"
PLOTTER: Final = "matplotlib"

OURS: Final = "cachewright"
PEER: Final = "LiteLLM"


@dataclass(frozen=True, slots=True)
class Contender:
    """One running gateway."""

    name: str
    url: str
    """Without a path."""
    process: psutil.Process
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with each request, besides those of the request."""


def peer_folder() -> Path:
    """Return where the peer's environment lives, outside the project's own."""
    cache = Path(os.environ.get("CACHEWRIGHT_CACHE", Path.home() / ".cache/cachewright"))
    return cache / "bench/litellm"


def install_peer() -> Path:
    """Make the peer's environment if it is missing; returns its Python."""
    python = peer_folder() / "bin/python"
    if not (peer_folder() / "bin/litellm").exists():
        print(f"installing {LITELLM} and {PLOTTER} into {peer_folder()}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(peer_folder())], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, LITELLM, PLOTTER], check=True)
    return python


Variant = Literal["usual", "adversarial", "no copies"]
"""All defaults; an experiment and ample budgets; no answers kept in the gateway's own memory."""


def manifest(upstream_url: str, variant: Variant) -> dict[str, Any]:
    """Return the object that our gateway enacts."""
    exact: dict[str, Any] = {"ttl": "30m"}
    changes: dict[str, Any] = {}
    match variant:
        case "adversarial":
            route = {"name": "chat", "match": {"path": "/v1/chat/completions"}, "layers": ["Exact"]}
            changes["limits"] = {"budget": {"exact": "5s", "total": "5s"}}
            changes["routes"] = [{**route, "experiment": {"armHeader": ARM_HEADER}}]
        case "no copies":
            exact["local"] = {"maxEntries": 0}
    return {
        "apiVersion": "cachewright.dev/v1alpha1",
        "kind": "InferenceCache",
        "metadata": {"name": "bench", "namespace": "bench"},
        "spec": {
            "model": {"name": MODEL, "aliases": [ALIAS], "version": "1"},
            "upstream": {"url": f"{upstream_url}/v1", "varyHeaders": [VARY_HEADER]},
            "tenancy": {
                "source": {"trustedHeader": {"name": TENANT_HEADER}},
                "role": {"header": ROLE_HEADER},
            },
            "stores": {"redis": {"managed": {}}},
            "layers": {"exact": exact},
            **changes,
        },
    }


@contextmanager
def run_ours(
    folder: Path, cache_id: str, store_url: str, upstream_url: str, *, variant: Variant = "usual"
) -> Iterator[Contender]:
    """Run `cachewright gateway` on mounts as a cluster would give it."""
    digest_key = secrets.token_hex(32)
    key_id = key_id_of(digest_key)
    policy = build_policy(load(manifest(upstream_url, variant)), cache_id, key_id)
    record = Record(cache_id, 0, 0).with_layer("Exact", "b" * 16, policy.binding, "2026-11-30T00:00:00Z")
    mounts = {
        "policy/policy.json": policy.to_json(),
        "record/record.json": record.to_json(),
        "keys/digest-key": digest_key,
        "redis/url": store_url,
    }
    for name, text in mounts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    port, management = free_port(), free_port()
    listening = ["--host", "127.0.0.1", "--port", str(port), "--management-port", str(management)]
    command = [sys.executable, "-m", "cachewright.cli", "gateway", "--config-dir", str(folder), *listening]
    with running(command, folder / "log", f"http://127.0.0.1:{management}/readyz") as process:
        yield Contender(OURS, f"http://127.0.0.1:{port}", process)


@contextmanager
def run_peer(folder: Path, store_url: str, upstream_url: str) -> Iterator[Contender]:
    """Run LiteLLM's proxy with its Redis cache; it forwards client headers, so tenants reach the upstream."""
    install_peer()
    folder.mkdir(parents=True, exist_ok=True)
    key = f"sk-{secrets.token_hex(24)}"
    parameters = {"model": f"openai/{MODEL}", "api_base": f"{upstream_url}/v1", "api_key": "sk-none"}
    cache = {"type": "redis", "url": store_url, "ttl": 1800}
    configuration = {
        "model_list": [{"model_name": MODEL, "litellm_params": parameters}],
        "litellm_settings": {"cache": True, "cache_params": cache, "num_retries": 0, "telemetry": False},
        "general_settings": {"master_key": key, "forward_client_headers_to_llm_api": True},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(configuration))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(peer_folder() / "bin/litellm"), "--config", str(path), "--host", "127.0.0.1"]
    quiet = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_LOG": "ERROR",
        "PYTHONWARNINGS": "ignore",
    }
    ready = f"{url}/health/liveliness"
    with running([*command, "--port", str(port)], folder / "log", ready, quiet) as process:
        yield Contender(PEER, url, process, (("Authorization", f"Bearer {key}"),))
