"""What similar answers cost a miss, and the gateway's event loop: `python -m bench.semantic`.

Our gateway runs in this process, so that its loop can be watched from within; store, upstream, embedder and
the loader (`python -m bench.semantic --load`) are processes of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import uvloop

from bench.contenders import OURS, Contender
from bench.load import Connection, ask_each, percentile, wire
from bench.processes import free_port, running
from bench.quality import PAIRS, pairs_of
from bench.questions import embedder
from bench.semantic_report import Figure, render, write
from cachewright.keys.embedding_identity import BUILTIN
from cachewright.policy.document import EmbedderPolicy
from tests.gateway.harness import UNHURRIED_SECONDS
from tests.gateway.harness import running as running_gateway
from tests.gateway.semantic import SemanticGateway
from tests.support.redis_servers import RedisServer, run_redis

ROUNDS: Final = 5
AT_ONCE: Final = 16
UPSTREAM_SECONDS: Final = 0.1
TICK_SECONDS: Final = 0.002
NEVER_ALIKE: Final = 0.9999
"""A threshold that no other question reaches: each look-up embeds and searches, and is a miss."""

EXAMPLES = """\
examples:
  python -m bench.semantic           # everything, into docs/benchmarks.md; some minutes
  python -m bench.semantic --quick   # one short round, printed only
"""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the gateway."""

    title: str
    semantic: bool
    sidecar: bool = True
    """False: the model runs in a thread of the gateway's process, as in local mode."""


VARIANTS: Final = (
    Variant("exact layer alone", semantic=False),
    Variant("and the semantic layer, embedder beside the gateway", semantic=True),
    Variant("and the semantic layer, embedder in the gateway's process", semantic=True, sidecar=False),
)


@dataclass(frozen=True, slots=True)
class Place:
    """What all variants share."""

    folder: Path
    redis: RedisServer
    upstream: Contender
    embedder_url: str
    embedder: psutil.Process


def questions(most: int) -> list[str]:
    """Return English texts that ship for calibration, each once."""
    pairs = [*pairs_of(PAIRS / "pairs.csv"), *pairs_of(PAIRS / "held_out.csv")]
    texts = dict.fromkeys(text for pair in pairs for text in (pair.text_a, pair.text_b))
    return [text for text in texts if text.isascii()][:most]


def mounted(place: Place, variant: Variant, number: int) -> SemanticGateway:
    """Mount a gateway as a variant has it."""
    gateway = SemanticGateway(place.folder / str(number), place.redis, place.upstream.url, place.embedder_url)
    layers = ("Exact", "Semantic") if variant.semantic else ("Exact",)
    gateway.enact(
        routes=(gateway.policy.routes[0].model_copy(update={"layers": layers}),),
        embedder=EmbedderPolicy(
            url=place.embedder_url if variant.sidecar else None,
            identity=BUILTIN,
            timeout_seconds=UNHURRIED_SECONDS,
        ),
        semantic={"threshold": NEVER_ALIKE, "max_entries": 100_000},
    )
    return gateway


async def watch(lags: list[float]) -> None:
    """Note how much later than asked for this loop comes back, until cancelled."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        lags.append(1000 * (time.perf_counter() - began - TICK_SECONDS))


@dataclass(frozen=True, slots=True)
class Load:
    """What a loader saw."""

    ms: list[float]
    """Of each answer."""
    seconds: float
    """From the first request to the last answer."""


async def load(url: str, tenant: str, texts: Sequence[str], at_once: int) -> Load:
    """Let another process send each text once; fails where any request failed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.semantic", "--load", url, "--tenant", tenant, "--at-once", str(at_once),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(json.dumps(list(texts)).encode())
    seen = Load(**json.loads(out))
    if len(seen.ms) != len(texts):
        raise RuntimeError(f"{len(texts) - len(seen.ms)} requests of {len(texts)} failed")
    return seen


def send(options: argparse.Namespace) -> None:
    """Be the other process: texts from standard input, milliseconds to standard output."""
    gateway = Contender(OURS, options.load, psutil.Process())
    bodies = [
        json.dumps(
            {"model": "llama", "temperature": 0, "messages": [{"role": "user", "content": text}]}
        ).encode()
        for text in json.load(sys.stdin)
    ]
    requests = [wire(gateway, body, options.tenant) for body in bodies]
    began = time.perf_counter()
    timings = uvloop.run(ask_each(gateway, requests, options.at_once))
    seconds = time.perf_counter() - began
    answered = [1000 * one.total_seconds for one in timings if one.status == 200]
    print(json.dumps(asdict(Load(answered, seconds))))


async def measure(place: Place, variant: Variant, number: int, texts: Sequence[str]) -> Figure:
    """Measure one round of a variant: one request after the other, then many at once."""
    gateway = mounted(place, variant, number)
    tenant, half = f"tenant-{number}", len(texts) // 2
    async with running_gateway(gateway):
        await load(gateway.url, tenant, ["How do I begin?"], 1)
        await load(gateway.url, f"{tenant}-warm", texts[:20], 1)
        await _conduct(place.upstream, latency_seconds=0.0)
        cpu = _cpu_seconds(place)
        single = await load(gateway.url, tenant, texts[:half], 1)
        cpu_ms = 1000 * (_cpu_seconds(place) - cpu) / half
        await _conduct(place.upstream, latency_seconds=UPSTREAM_SECONDS)
        async with _watched() as lags:
            many = await load(gateway.url, tenant, texts[half:], AT_ONCE)
        if variant.semantic:
            await _has_embedded(gateway, len(texts))
    return Figure(
        variant=variant.title,
        miss_p50_ms=percentile(single.ms, 0.5),
        miss_p99_ms=percentile(single.ms, 0.99),
        cpu_ms=cpu_ms,
        rate=len(many.ms) / many.seconds,
        lag_p50_ms=percentile(lags, 0.5),
        lag_p99_ms=percentile(lags, 0.99),
        lag_most_ms=max(lags),
        load=psutil.getloadavg()[0],
    )


async def _has_embedded(gateway: SemanticGateway, asked: int) -> None:
    """Fail unless nearly every question was embedded and searched for."""
    misses = await gateway.metric("cachewright_semantic_misses_total", reason="below")
    if misses < 0.95 * asked:
        raise RuntimeError(f"only {misses:.0f} of {asked} questions were looked up by similarity")


@asynccontextmanager
async def _watched() -> Any:  # noqa: ANN401 - a context manager of a list
    lags: list[float] = []
    watching = asyncio.create_task(watch(lags))
    try:
        yield lags
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _cpu_seconds(place: Place) -> float:
    times = place.embedder.cpu_times()
    return time.process_time() + times.user + times.system


async def _conduct(upstream: Contender, **changes: float) -> None:
    body = json.dumps(changes).encode()
    head = f"POST /bench/conduct HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = await Connection.open(upstream.url)
    await connection.ask(head.encode() + body)
    connection.close()


@contextmanager
def place() -> Iterator[Place]:
    """Start store, upstream and embedder until the block ends."""
    port = free_port()
    command = [sys.executable, "-m", "bench.upstream", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="cachewright-semantic-") as name, run_redis("valkey") as redis:
        folder = Path(name)
        answers = running(command, folder / "upstream.log", f"{url}/bench/calls")
        with answers as upstream, embedder(folder) as (embedder_url, process):
            yield Place(folder, redis, Contender("upstream", url, upstream), embedder_url, process)


def main() -> int:
    """Parse the command line, measure, and report."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.semantic",
        description="Measure what similar answers cost a miss and the gateway's event loop.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="one short round, and no change of the document")
    for hidden, default in (("--load", ""), ("--tenant", "acme"), ("--at-once", 1)):
        parser.add_argument(hidden, type=type(default), default=default, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        send(options)
        return 0
    texts, rounds = questions(100 if options.quick else 600), 1 if options.quick else ROUNDS
    figures = []
    with place() as here:
        for turn in range(rounds):
            for number, variant in enumerate(VARIANTS):
                print(f"round {turn + 1} of {rounds}: {variant.title}", file=sys.stderr, flush=True)
                made = measure(here, variant, turn * len(VARIANTS) + number, texts)
                figures.append(uvloop.run(made))
    text = render(figures)
    if options.quick:
        print(json.dumps([asdict(one) for one in figures], indent=1))
        print(text)
    else:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
