"""The process: probes, metrics, mounts that change, an orderly end, quiet logs, a light import."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest

from e2e.engine import Engine
from tests.gateway.harness import (
    CHAT,
    QUESTION,
    TENANT,
    Gateway,
    Response,
    ScriptedUpstream,
    root_client,
    running,
)
from tests.support.redis_servers import RedisServer
from tests.support.waiting import until


@contextmanager
def command(gateway: Gateway) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Run `cachewright gateway` on a gateway's mounts; gives the process and its two ports."""
    ports = []
    for _ in range(2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
    arguments = ["--config-dir", str(gateway.folder), "--host", "127.0.0.1", "--log-level", "debug"]
    listening = ["--port", str(ports[0]), "--management-port", str(ports[1])]
    process = subprocess.Popen(
        [sys.executable, "-m", "cachewright.cli", "gateway", *arguments, *listening],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    try:
        yield process, ports[0], ports[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that belongs to no gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


async def ready(client: aiohttp.ClientSession, port: int) -> None:
    """Wait until a port says that the gateway is ready."""

    async def is_ready() -> bool:
        try:
            async with client.get(f"http://127.0.0.1:{port}/readyz") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    await until(is_ready)


async def test_both_ports_answer_probes(gateway: Gateway) -> None:
    """Alive and ready, on the traffic port and on the management port."""
    for path in ("/healthz", "/readyz"):
        assert (await gateway.call(path, method="GET", headers=[])).status == 200
        assert (await gateway.management(path)).status == 200
    assert (await gateway.management("/v1/models")).status == 404


async def test_metrics_are_of_bounded_names(gateway: Gateway) -> None:
    """Layers, routes, outcomes and reasons; no tenant, model or key; nothing of it on the traffic port."""
    for _ in range(2):
        await gateway.call()
    await gateway.call(stream=1)
    await gateway.call("/nowhere")
    labels = {"route": "default"}
    assert await gateway.metric("cachewright_requests_total", layer="exact", outcome="hit", **labels) == 1
    assert await gateway.metric("cachewright_requests_total", layer="exact", outcome="miss", **labels) == 1
    assert await gateway.metric("cachewright_requests_total", layer="none", outcome="bypass", **labels) == 1
    assert await gateway.metric("cachewright_requests_total", layer="none", outcome="refused") == 1
    assert await gateway.metric("cachewright_lookup_seconds_count", layer="exact") == 2
    for outcome in ("hit", "miss", "bypass"):
        assert await gateway.metric("cachewright_request_seconds_count", outcome=outcome) == 1
    assert await gateway.metric("cachewright_upstream_seconds_count") == 2
    assert await gateway.metric("cachewright_stored_total") == 1
    text = (await gateway.management("/metrics")).body.decode()
    for name in ("breaker_open", "write_queue_depth", "writes_dropped_total", "record_revision"):
        assert f"cachewright_{name}" in text
    assert "acme" not in text
    assert "llama" not in text
    assert (await gateway.call("/metrics", method="GET")).status == 404


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("policy/policy.json", "{}"),
        ("policy/policy.json", '{"unknown": 1}'),
        ("keys/digest-key", "short"),
        ("keys/digest-key", "cd" * 32),
        ("redis/url", ""),
        ("redis/url", "http://nowhere"),
    ],
)
async def test_a_broken_mount_leaves_the_last_good_in_use(gateway: Gateway, name: str, text: str) -> None:
    """All or nothing: whatever is wrong with one file, requests are served as before."""
    await gateway.call()
    gateway.mount(name, text)

    async def is_counted() -> bool:
        return await gateway.metric("cachewright_configuration_errors_total") == 1

    await until(is_counted)
    assert (await gateway.call()).is_hit
    assert (await gateway.management("/readyz")).status == 200


@pytest.mark.parametrize("name", ["policy/policy.json", "keys/digest-key", "redis/url"])
async def test_without_its_mounts_it_is_alive_and_not_ready(mounts: Gateway, name: str) -> None:
    """Requests get a clear 503 until the file is there, and then are served without a restart."""
    text = (mounts.folder / name).read_text()
    (mounts.folder / name).unlink()
    async with running(mounts):
        assert (await mounts.management("/healthz")).status == 200
        assert (await mounts.management("/readyz")).status == 503
        answer = await mounts.call()
        assert (answer.status, answer.error_code) == (503, "not_ready")
        mounts.mount(name, text)

        async def is_ready() -> bool:
            return (await mounts.management("/readyz")).status == 200

        await until(is_ready)
        assert (await mounts.call()).status == 200


async def test_a_changed_policy_counts_without_a_restart(gateway: Gateway) -> None:
    """Here another upstream: later requests go there, and what is cached stays."""

    async def teapot(_request: object) -> Response:
        return Response(418)

    await gateway.call()
    async with ScriptedUpstream(teapot) as other:
        gateway.enact(upstream={"url": f"{other.url}/v1"})

        async def goes_there() -> bool:
            return (await gateway.call(temperature=1)).status == 418

        await until(goes_there)
        assert (await gateway.call()).is_hit


async def test_sigterm_lets_answers_end(
    mounts: Gateway, engine: Engine, client: aiohttp.ClientSession
) -> None:
    """It turns unready at once, a stream in flight still ends, and the exit code is 0."""
    engine.flowing.clear()
    headers = {**TENANT, "Content-Type": "application/json"}
    body = json.dumps({**QUESTION, "stream": True})
    with command(mounts) as (process, port, management_port):
        await ready(client, port)
        url = f"http://127.0.0.1:{port}{CHAT}"
        async with client.post(url, data=body, headers=headers) as response:
            await response.content.readany()
            process.send_signal(signal.SIGTERM)

            async def is_unready() -> bool:
                async with client.get(f"http://127.0.0.1:{management_port}/readyz") as probe:
                    return probe.status == 503

            await until(is_unready)
            async with client.post(url, data=json.dumps({**QUESTION, "seed": 1}), headers=headers) as late:
                assert late.status == 200  # until every balancer has heard of it
            engine.flowing.set()
            assert (await response.content.read()).endswith(b"data: [DONE]\n\n")
        assert await asyncio.to_thread(process.wait, 30) == 0


async def test_sigterm_lets_followers_have_the_whole_answer(
    mounts: Gateway, engine: Engine, client: aiohttp.ClientSession
) -> None:
    """Streamed and whole, from a call that is still under way, and the answer is stored before the end."""
    engine.flowing.clear()
    headers = {**TENANT, "Content-Type": "application/json"}
    with command(mounts) as (process, port, management_port):
        await ready(client, port)
        url = f"http://127.0.0.1:{port}{CHAT}"
        bodies = [json.dumps({**QUESTION, "stream": stream}) for stream in (True, True, False)]
        streams = [await client.post(url, data=body, headers=headers) for body in bodies[:2]]
        whole = asyncio.create_task(client.post(url, data=bodies[2], headers=headers).__aenter__())

        async def all_follow() -> bool:
            async with client.get(f"http://127.0.0.1:{management_port}/metrics") as response:
                samples = (await response.text()).splitlines()
            counts = [line for line in samples if line.startswith("cachewright_lookup_seconds_count")]
            return sum(float(line.rpartition(" ")[2]) for line in counts) == 3

        await until(all_follow)
        process.send_signal(signal.SIGTERM)

        async def is_unready() -> bool:
            async with client.get(f"http://127.0.0.1:{management_port}/readyz") as probe:
                return probe.status == 503

        await until(is_unready)
        engine.flowing.set()
        for response in streams:
            assert (await response.content.read()).endswith(b"data: [DONE]\n\n")
        answer = await whole
        assert (await answer.json())["choices"][0]["finish_reason"] == "stop"
        assert await asyncio.to_thread(process.wait, 30) == 0
    assert engine.calls[CHAT] == 1
    async with root_client(mounts.redis) as store:
        assert len(await store.keys("*:11*-*")) == 1


async def test_logs_hold_no_content(
    tmp_path: Path, own_redis: RedisServer, engine: Engine, client: aiohttp.ClientSession
) -> None:
    """JSON lines, few of them however often a store fails, without prompts, tenants, headers or secrets."""
    gateway = Gateway(tmp_path, own_redis, engine.url)
    secret = {
        "X-Tenant-Id": "tenant-hunter2",
        "Authorization": "Bearer sk-hunter2",
        "Content-Type": "application/json",
    }
    with command(gateway) as (process, port, _):
        await ready(client, port)
        url = f"http://127.0.0.1:{port}"
        for number in range(60):
            if number == 20:
                own_redis.kill()
            body = json.dumps({**QUESTION, "messages": [{"role": "user", "content": f"hunter2 {number}"}]})
            async with client.post(url + CHAT, data=body, headers=secret) as response:
                assert response.status == 200
        async with client.post(f"{url}/v1/hunter2?key=hunter2", data="{hunter2", headers=secret) as response:
            assert response.status == 404
        process.send_signal(signal.SIGTERM)
        output = await asyncio.to_thread(process.communicate, None, 30)
    lines = output[0].splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert {"gateway_started", "record_read", "store_left_alone", "gateway_stopped"} <= set(events)
    assert len(events) < 20
    assert "hunter2" not in output[0]
    assert ":gateway@" not in output[0]


async def test_a_gateway_is_light(mounts: Gateway, client: aiohttp.ClientSession) -> None:
    """It loads none of the operator's libraries and stays below 100 MB after some traffic."""
    with command(mounts) as (process, port, _):
        await ready(client, port)
        headers = {**TENANT, "Content-Type": "application/json"}
        for number in range(300):
            body = json.dumps({**QUESTION, "seed": number % 10})
            async with client.post(f"http://127.0.0.1:{port}{CHAT}", data=body, headers=headers) as response:
                assert response.status == 200
        assert psutil.Process(process.pid).memory_info().rss < 100 * 1024 * 1024
    program = (
        "import sys, cachewright.gateway.main; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = await asyncio.to_thread(subprocess.check_output, [sys.executable, "-c", program], text=True)
    assert not {"kopf", "kubernetes", "jinja2", "cel", "fastapi", "starlette"} & set(loaded.split())


async def test_a_taken_port_ends_the_process(mounts: Gateway, engine: Engine) -> None:
    """It does not stay alive without listening."""
    port = engine.url.rpartition(":")[2]
    command_line = [sys.executable, "-m", "cachewright.cli", "gateway", "--config-dir", str(mounts.folder)]
    listening = ["--host", "127.0.0.1", "--port", port, "--management-port", "0"]
    done = await asyncio.to_thread(
        subprocess.run, [*command_line, *listening], capture_output=True, timeout=30
    )
    assert done.returncode != 0
