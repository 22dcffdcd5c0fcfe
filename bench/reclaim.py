"""Reclaiming a keyspace, measured: what others who use the store notice of it, beside FLUSHDB.

    python -m bench.reclaim                    # 1 M and 5 M keys, into docs/benchmarks.md
    python -m bench.reclaim --keys 100000      # one short run, printed only

The janitor is the very command that a Job runs, at the pace that an object has by default. FLUSHDB, which
also takes what belongs to everybody else, stands in for what people do without it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil
from redis import Redis

from bench.reclaim_report import write
from bench.results import machine
from cachewright.keys.digest import record_key
from cachewright.keys.keyspaces import Keyspace
from cachewright.keys.record import RECORD_DATA_KEY, KeyspaceState, LayerRecord, PastKeyspace, Record
from cachewright.keys.scheme import TAGS
from cachewright.policy.document import POLICY_DATA_KEY, GatewayPolicy, TenancyPolicy, UpstreamPolicy
from tests.support.redis_servers import RedisServer, run_redis

VALUE_BYTES: Final = 500
LIVE_KEYS: Final = 20_000
"""Entries of the active keyspace, which others read meanwhile."""

PRIORITY: Final = 10
"""Of those that run first; any number above zero would do."""

FLUSH_SECONDS: Final = 600.0
"""What FLUSHDB may take: it answers once everything is gone."""

BASELINE_SECONDS: Final = 20.0
METHODS: Final = ("nothing", "janitor", "FLUSHDB ASYNC", "FLUSHDB")
DEAD, LIVE = Keyspace("d" * 16, 1), Keyspace("a" * 16, 2)
NOW: Final = "2026-11-30T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Measured:
    """One method on one store."""

    keys: int
    method: str
    seconds: float
    """Until the keyspace was gone, or verified to be."""
    p50_ms: float
    p99_ms: float
    most_ms: float
    reads: int
    used_before_mb: float
    used_most_mb: float
    used_after_mb: float
    left_dead: int
    left_live: int
    load: float
    course: list[tuple[float, float]]
    """The longest answer in each quarter of a second: when, in seconds from the beginning, and ms."""


def main() -> int:
    """Parse the command line, measure, and report."""
    parser = argparse.ArgumentParser(prog="python -m bench.reclaim", description=__doc__.partition("\n")[0])
    parser.add_argument("--keys", type=int, action="append", help="only so many; may be repeated")
    parser.add_argument("--runs", type=int, default=1, help="of each size; default: 1")
    parser.add_argument("--method", action="append", choices=METHODS, help="only this one; may be repeated")
    parser.add_argument("--output", choices=("document", "json"), default=None)
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="run store and reader before everything else on the machine (SCHED_FIFO; needs root)",
    )
    parser.add_argument("--keep", type=Path, help="write what was measured there after each measurement")
    parser.add_argument("--report", type=Path, help="measure nothing: write the document from such a file")
    asked = parser.parse_args()
    if asked.report:
        write(json.loads(asked.report.read_text()))
        return 0
    if asked.realtime:
        put_first(os.getpid(), 1)  # filling a store takes long where others are at work
    measured: list[dict[str, Any]] = []
    results = {
        "began": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "realtime": asked.realtime,
        "valueBytes": VALUE_BYTES,
        "liveKeys": LIVE_KEYS,
        "measured": measured,
    }
    for keys in asked.keys or [1_000_000, 5_000_000]:
        for _ in range(asked.runs):
            for method in asked.method or METHODS:
                say(f"{keys:,} keys, {method}")
                one = measure(keys, method, realtime=asked.realtime)
                say(f"  p99 {one.p99_ms:.2f} ms, longest {one.most_ms:.2f} ms")
                measured.append(asdict(one))
                if asked.keep:
                    asked.keep.write_text(json.dumps(results))
    if asked.output == "document" or (asked.output is None and not asked.keys):
        write(results)
    else:
        json.dump(results, sys.stdout, indent=2)
        print()
    return 0


def say(text: str) -> None:
    """Tell how far it is."""
    print(f"[{datetime.now(UTC):%H:%M:%S}] {text}", file=sys.stderr, flush=True)


def measure(keys: int, method: str, *, realtime: bool) -> Measured:
    """Fill a store, let others read it, and take the keyspace away."""
    with run_redis("redis") as server, tempfile.TemporaryDirectory() as folder:
        root = Redis.from_url(server.url("root"), socket_timeout=FLUSH_SECONDS)
        record = publish(root, server.cache_id)
        fill(server, DEAD, keys)
        fill(server, LIVE, LIVE_KEYS)
        mount(Path(folder), server, record)
        before = used_mb(root)
        most = [before]
        if realtime:
            put_first(server.process.pid)
        with reading(server, Path(folder) / "reads", realtime=realtime) as reads:
            began = time.monotonic()
            act(method, root, Path(folder), most, realtime=realtime)
            ended = time.monotonic()
        waits = [(at - began, took * 1e3) for at, took in reads if began <= at <= ended + 2.0]
        took = sorted(wait for _, wait in waits)
        counts = {space: count(root, server.cache_id, space) for space in (DEAD, LIVE)}
        return Measured(
            keys=keys,
            method=method,
            seconds=ended - began,
            p50_ms=took[len(took) // 2],
            p99_ms=took[int(len(took) * 0.99)],
            most_ms=took[-1],
            reads=len(took),
            used_before_mb=before,
            used_most_mb=max(most),
            used_after_mb=used_mb(root),
            left_dead=counts[DEAD],
            left_live=counts[LIVE],
            load=psutil.getloadavg()[0],
            course=course(waits),
        )


def put_first(pid: int, priority: int = PRIORITY) -> None:
    """Let all threads of a process run before whatever else the machine does."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(priority))


def act(method: str, root: Redis, folder: Path, most: list[float], *, realtime: bool) -> None:
    """Do it, to its end."""
    match method:
        case "nothing":
            time.sleep(BASELINE_SECONDS)
        case "janitor":
            # It would run on another machine, so it must not take turns with the store on this one.
            first = ["chrt", "--fifo", str(PRIORITY - 1)] if realtime else ["nice", "-n", "5"]
            command = [*first, sys.executable, "-m", "cachewright.cli", "janitor"]
            command += ["--config-dir", str(folder)]
            with subprocess.Popen([*command, "--timeout", "7200"], stdout=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    most.append(used_mb(root))
                    time.sleep(0.5)
            if process.returncode:
                raise RuntimeError(f"the janitor ended with {process.returncode}")
        case "FLUSHDB ASYNC":
            root.flushdb(asynchronous=True)
            while root.info("memory")["lazyfree_pending_objects"]:
                time.sleep(0.01)
        case _:
            root.flushdb()


def course(waits: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep the longest of each quarter of a second."""
    longest: dict[float, float] = {}
    for at, wait in waits:
        slot = at // 0.25 * 0.25
        longest[slot] = max(longest.get(slot, 0.0), wait)
    return sorted(longest.items())


def publish(root: Redis, cache_id: str) -> Record:
    """Lay a record that has given up one keyspace and uses another."""
    past = PastKeyspace("Exact", DEAD, "binding", KeyspaceState.DELETING, NOW, NOW)
    record = Record(cache_id, 3, 2, layers={"Exact": LayerRecord(LIVE, "binding", NOW)}, past=(past,))
    for tag in TAGS:
        fields: list[str | int] = ["revision", record.revision, "changes", 1, "record", record.to_json()]
        root.hset(record_key(cache_id, tag), items=fields)
    return record


def key_of(cache_id: str, keyspace: Keyspace, number: int) -> str:
    """Name an entry as the gateway does, but for a digest that can be told from its number."""
    return f"{{cw1:{cache_id}:{number % 64:02d}}}:{keyspace}:{'t' * 43}:{number:06x}{'0' * 58}"


def fill(server: RedisServer, keyspace: Keyspace, keys: int) -> None:
    """Store entries, many in one write."""
    value = b"x" * VALUE_BYTES
    rest = b"$%d\r\n%s\r\n$2\r\nEX\r\n$5\r\n86400\r\n" % (VALUE_BYTES, value)
    with socket.create_connection(("127.0.0.1", server.port)) as store:
        store.sendall(b"AUTH root root\r\n")
        store.recv(64)
        for start in range(0, keys, 2000):
            stop = min(start + 2000, keys)
            names = (key_of(server.cache_id, keyspace, number).encode() for number in range(start, stop))
            store.sendall(b"".join(b"*5\r\n$3\r\nSET\r\n$%d\r\n%s\r\n%s" % (len(n), n, rest) for n in names))
            missing = 5 * (stop - start)
            while missing:
                missing -= len(store.recv(missing))


def count(root: Redis, cache_id: str, keyspace: Keyspace) -> int:
    """Count what is left of a keyspace."""
    return sum(1 for _ in root.scan_iter(match=f"{{cw1:{cache_id}:*}}:{keyspace}:*", count=5000))


def used_mb(root: Redis) -> float:
    """Return the memory that the server uses for data."""
    return int(root.info("memory")["used_memory"]) / 1e6


@contextmanager
def reading(server: RedisServer, target: Path, *, realtime: bool) -> Iterator[list[tuple[float, float]]]:
    """Read the active keyspace until the block ends; afterwards the list holds what was noted."""
    pattern = f"{{cw1:{server.cache_id}:@}}:{LIVE}:{'t' * 43}:#{'0' * 58}"
    command = [sys.executable, "-m", "bench.reclaim_reader", str(server.port), "root root", pattern]
    noted: list[tuple[float, float]] = []
    with subprocess.Popen(
        [*command, str(LIVE_KEYS), str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdout.readline()
        if realtime:
            put_first(reader.pid)
        time.sleep(1)
        yield noted
        time.sleep(2)
        reader.stdin.write(b"\n")
        reader.stdin.close()
        reader.wait()
    numbers = array("d")
    numbers.frombytes(target.read_bytes())
    noted.extend(zip(numbers[::2], numbers[1::2], strict=True))


def mount(folder: Path, server: RedisServer, record: Record) -> None:
    """Write the files that the janitor reads."""
    policy = GatewayPolicy(
        cache="bench/reclaim",
        cache_id=server.cache_id,
        key_id="",
        binding="binding",
        model="",
        upstream=UpstreamPolicy(url="http://nowhere", timeout_seconds=1),
        tenancy=TenancyPolicy(mode="Single"),
        routes=(),
        exact=None,
        total_budget_seconds=1,
        max_cacheable_body_bytes=1,
        max_body_bytes=1,
    )
    files = {
        f"policy/{POLICY_DATA_KEY}": policy.to_json(),
        f"record/{RECORD_DATA_KEY}": record.to_json(),
        "redis/url": server.url("gateway"),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


if __name__ == "__main__":
    sys.exit(main())
