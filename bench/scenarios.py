"""The scenarios: what is asked of every gateway, and which figures come of it. Called by the command line.

Each is a function of the stage, the results and the plan; it runs all gateways in turn within each run, so
that whatever else the machine does falls on all of them.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis

from bench.contenders import Contender
from bench.load import Connection, Timing, ask_each, percentile, question, wire
from bench.processes import weigh
from bench.results import Results, Row, Target
from bench.slow_store import slow_store
from bench.stage import Stage, beside
from bench.wrk import run_wrk
from tests.adversarial.cases import Case, load_cases
from tests.adversarial.runner import count_by_class, run_cases, told_by

ANSWER_FILLING: Final = 1500
UPSTREAM_SECONDS: Final = 0.3
SLOW_SECONDS: Final = 0.05
RECOVERY_SECONDS: Final = 150.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done."""

    runs: int
    seconds: int
    """Of each run of the load generator."""
    requests: int
    """Of each run of the loader."""
    say: Callable[[str], None]


Scenario = Callable[[Stage, Results, Plan], Coroutine[None, None, None]]


async def exact_hits(stage: Stage, results: Results, plan: Plan) -> None:
    """One stored answer, over and over; by our gateway also without copies in its own memory."""
    await stage.conduct(latency_seconds=0.0, filling=ANSWER_FILLING)
    body = question(f"exact {secrets.token_hex(4)}")
    async with beside(stage, "no copies") as other:
        tried = [("exact hit", contender) for contender in stage.contenders]
        tried.insert(1, ("exact hit, no copies in memory", other.contenders[0]))
        for _, contender in tried:
            await _warm(contender, body)
        for run, connections in itertools.product(range(plan.runs), (1, 16, 64)):
            for title, contender in tried:
                plan.say(f"{title}, c={connections}, run {run + 1}, {contender.name}")
                results.note_load()
                await _exact_hit(title, contender, body, connections, stage, results, plan)


async def _exact_hit(
    title: str,
    contender: Contender,
    body: bytes,
    connections: int,
    stage: Stage,
    results: Results,
    plan: Plan,
) -> None:
    before = weigh(contender.process)
    load = await asyncio.to_thread(run_wrk, contender, body, "acme", connections, plan.seconds, stage.folder)
    after = weigh(contender.process)
    cpu = (after.cpu_seconds - before.cpu_seconds) / max(1, load.requests) * 1e6
    rate = load.requests / load.seconds
    one = connections == 1
    for figure, unit, value, target, less in (
        ("p50", "ms", load.p50_seconds * 1e3, Target(0.8) if one else None, True),
        ("p99", "ms", load.p99_seconds * 1e3, Target(3) if one else None, True),
        ("rate", "requests/s", rate, None if one else Target(3000, at_most=False), False),
        ("CPU of the gateway", "µs per request", cpu, None, True),
        ("memory (RSS)", "MB", after.rss_bytes / 1e6, Target(100), True),
        ("failed", "requests", load.failed, Target(0), True),
    ):
        name = f"{title}, {connections} connection{'' if one else 's'}"
        results.add(Row("exact", name, figure, unit, target, less), contender.name, value)


async def misses(stage: Stage, results: Results, plan: Plan) -> None:
    """Requests never seen before, against the same sent straight to the upstream."""
    await stage.conduct(latency_seconds=0.0, filling=ANSWER_FILLING)
    straight = Contender("upstream", stage.upstream_url, stage.contenders[0].process)
    for run in range(plan.runs):
        plan.say(f"miss, run {run + 1}")
        results.note_load()
        base = await _latencies(straight, _new_questions(straight, plan.requests))
        for contender in stage.contenders:
            found = await _latencies(contender, _new_questions(contender, plan.requests))
            for share, name, target in ((0.5, "p50", Target(1)), (0.99, "p99", Target(5))):
                added = (percentile(found, share) - percentile(base, share)) * 1e3
                row = Row("miss", "miss, 1 connection", f"added at {name}", "ms", target)
                results.add(row, contender.name, added)


async def zipf(stage: Stage, results: Results, plan: Plan) -> None:
    """A trace in which few questions are asked often and many seldom."""
    await stage.conduct(latency_seconds=SLOW_SECONDS, filling=ANSWER_FILLING)
    for run in range(plan.runs):
        drawn = random.Random(run)  # noqa: S311 - a trace
        texts = [f"zipf {secrets.token_hex(4)} {rank}" for rank in range(500)]
        weights = [1 / (rank + 1) ** 1.1 for rank in range(len(texts))]
        trace = drawn.choices(texts, weights, k=plan.requests * 3)
        for contender in stage.contenders:
            plan.say(f"Zipf trace, run {run + 1}, {contender.name}")
            results.note_load()
            before = await stage.conduct()
            began = time.perf_counter()
            timings = await ask_each(contender, [wire(contender, question(text)) for text in trace], 16)
            seconds = time.perf_counter() - began
            calls = await stage.conduct() - before
            latencies = [timing.total_seconds for timing in timings]
            title = f"Zipf trace, 16 connections, upstream {SLOW_SECONDS * 1e3:.0f} ms"
            for figure, unit, value, less in (
                ("upstream calls", f"of {len(trace)} requests", calls, True),
                ("p50", "ms", percentile(latencies, 0.5) * 1e3, True),
                ("p99", "ms", percentile(latencies, 0.99) * 1e3, True),
                ("rate", "requests/s", len(trace) / seconds, False),
            ):
                row = Row("zipf", title, figure, unit, None, less)
                results.add(row, contender.name, value)


async def streams(stage: Stage, results: Results, plan: Plan) -> None:
    """A stored answer as a stream: when the first byte of its body is there."""
    await stage.conduct(latency_seconds=0.0, filling=ANSWER_FILLING)
    for run in range(plan.runs):
        for contender in stage.contenders:
            plan.say(f"streamed hit, run {run + 1}, {contender.name}")
            results.note_load()
            body = question(f"stream {secrets.token_hex(4)}", stream=True)
            if not await _warm(contender, body):
                continue
            timings = await ask_each(contender, [wire(contender, body)] * plan.requests)
            for figure, share, target in (("p50", 0.5, Target(2)), ("p99", 0.99, None)):
                value = percentile([timing.first_byte_seconds for timing in timings], share) * 1e3
                row = Row("stream", "streamed hit, 1 connection", f"first byte, {figure}", "ms", target)
                results.add(row, contender.name, value)


async def stampede(stage: Stage, results: Results, plan: Plan) -> None:
    """Fifty clients ask the same new question at once."""
    await stage.conduct(latency_seconds=UPSTREAM_SECONDS, filling=ANSWER_FILLING)
    for run in range(plan.runs):
        for contender in stage.contenders:
            plan.say(f"stampede, run {run + 1}, {contender.name}")
            results.note_load()
            request = wire(contender, question(f"stampede {secrets.token_hex(4)}"))
            connections = [await Connection.open(contender.url) for _ in range(50)]
            before = await stage.conduct()
            timings = await asyncio.gather(*(connection.ask(request) for connection in connections))
            calls = await stage.conduct() - before
            slowest = max(timing.total_seconds for timing in timings)
            title = f"50 clients ask one new question, upstream {UPSTREAM_SECONDS * 1e3:.0f} ms"
            results.add(Row("stampede", title, "upstream calls", "of 50", Target(1)), contender.name, calls)
            results.add(Row("stampede", title, "slowest answer", "ms"), contender.name, slowest * 1e3)
            for connection in connections:
                connection.close()


async def store_troubles(stage: Stage, results: Results, plan: Plan) -> None:
    """The store is frozen, gone or slow: what that adds to a request."""
    await stage.conduct(latency_seconds=0.0, filling=ANSWER_FILLING)
    for run in range(plan.runs):
        for contender in stage.contenders:
            for trouble, begin in (("frozen", stage.store.freeze), ("killed", stage.store.kill)):
                plan.say(f"store {trouble}, run {run + 1}, {contender.name}")
                results.note_load()
                await _uses_store(stage, contender)
                usual = await _usual_seconds(contender)
                await _uses_store(stage, contender)
                begin()
                try:
                    first, *later = await _new(contender, 4)
                finally:
                    stage.store.thaw() if trouble == "frozen" else stage.store.restart()
                _add_trouble(results, f"store {trouble}", contender, usual, first, later)
    await _slow_store(stage, results, plan)


async def _slow_store(stage: Stage, results: Results, plan: Plan) -> None:
    async with slow_store(stage.store.port, SLOW_SECONDS) as port:
        url = f"redis://USER:USER@127.0.0.1:{port}/0"
        async with beside(stage, store_url=url) as slow:
            for run in range(plan.runs):
                for usual_one, contender in zip(stage.contenders, slow.contenders, strict=True):
                    plan.say(f"store slow, run {run + 1}, {contender.name}")
                    results.note_load()
                    usual = await _usual_seconds(usual_one)
                    first, *later = await _new(contender, 4)
                    title = f"store slow ({SLOW_SECONDS * 1e3:.0f} ms a reply)"
                    _add_trouble(results, title, contender, usual, first, later)


def _add_trouble(
    results: Results,
    title: str,
    contender: Contender,
    usual_seconds: float,
    first: Timing,
    later: Sequence[Timing],
) -> None:
    added = (first.total_seconds - usual_seconds) * 1e3
    results.add(Row("trouble", title, "added, first", "ms", Target(5)), contender.name, added)
    worst = (max(timing.total_seconds for timing in later) - usual_seconds) * 1e3
    results.add(Row("trouble", title, "added, worst of the next 3", "ms", Target(1)), contender.name, worst)
    failed = sum(timing.status != 200 for timing in (first, *later))
    results.add(Row("trouble", title, "failed", "of 4", Target(0)), contender.name, failed)


async def adversarial(stage: Stage, results: Results, plan: Plan) -> None:
    """The adversarial set: answers that were computed for somebody or something else.

    Our gateway has an experiment and an ample budget here: a look-up that a busy machine cuts short would
    hide a wrong hit.
    """
    await stage.conduct(latency_seconds=0.0, filling=0)
    cases = load_cases()
    async with beside(stage, "adversarial") as patient:
        await _adversarial(patient.contenders + stage.contenders[1:], cases, results, plan)


async def _adversarial(
    contenders: Sequence[Contender], cases: Sequence[Case], results: Results, plan: Plan
) -> None:
    for contender in contenders:
        plan.say(f"adversarial set, {contender.name}")
        found = await run_cases(contender.url, cases, contender.headers)
        results.classes[contender.name] = count_by_class(found)
        wrong = sum(result.is_wrong for result in found)
        apart = sum(not case.share for case in cases)
        row = Row("adversarial", "adversarial set", "wrong hits", f"of {apart}", Target(0))
        results.add(row, contender.name, wrong)


SCENARIOS: Final[dict[str, Scenario]] = {
    "exact": exact_hits,
    "miss": misses,
    "zipf": zipf,
    "stream": streams,
    "stampede": stampede,
    "trouble": store_troubles,
    "adversarial": adversarial,
}


async def _warm(contender: Contender, body: bytes) -> bool:
    """Ask until the answer is one that was given before; False where that never happens."""
    given = set()
    for _ in range(50):
        (timing,) = await ask_each(contender, [wire(contender, body)])
        told = told_by(timing.body)
        call = told["call"] if told else None
        if call is not None and call in given:
            return True
        given.add(call)
        await asyncio.sleep(0.05)
    return False


def _new_questions(contender: Contender, count: int) -> list[bytes]:
    return [wire(contender, question(f"new {secrets.token_hex(8)}")) for _ in range(count)]


async def _new(contender: Contender, count: int) -> list[Timing]:
    return await ask_each(contender, _new_questions(contender, count))


async def _latencies(contender: Contender, requests: list[bytes]) -> list[float]:
    return [timing.total_seconds for timing in await ask_each(contender, requests)]


async def _usual_seconds(contender: Contender) -> float:
    return percentile(await _latencies(contender, _new_questions(contender, 20)), 0.5)


async def _uses_store(stage: Stage, contender: Contender) -> None:
    """Wait until a gateway keeps new answers in the store, and not in its memory alone."""
    deadline = time.monotonic() + RECOVERY_SECONDS
    async with Redis.from_url(stage.store.url("root")) as client:
        while time.monotonic() < deadline:
            before = await client.dbsize()
            if await _warm(contender, question(f"again {secrets.token_hex(4)}")):
                for _ in range(20):
                    if await client.dbsize() > before:
                        return
                    await asyncio.sleep(0.02)
            await asyncio.sleep(1)
    raise RuntimeError(f"{contender.name} did not use its store again within {RECOVERY_SECONDS:.0f} s")
