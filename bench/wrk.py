"""wrk, the load generator of Debian: one request over and over, percentiles and a rate back.

Called by the scenario of exact hits, where a loader in Python would be slower than what it measures.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.contenders import Contender

SCRIPT: Final = """
wrk.method = "POST"
wrk.body = %s
%s
done = function(summary, latency, requests)
  io.write(string.format('{"p50":%%.6f,"p99":%%.6f,"requests":%%d,"seconds":%%.6f,"failed":%%d}\\n',
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, summary.requests, summary.duration / 1e6,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of wrk found."""

    p50_seconds: float
    p99_seconds: float
    requests: int
    seconds: float
    failed: int


def run_wrk(
    contender: Contender, body: bytes, tenant: str, connections: int, seconds: int, folder: Path
) -> Load:
    """Send one request over `connections` for some seconds, from one thread."""
    program = shutil.which("wrk")
    if program is None:
        raise RuntimeError("wrk is missing; `make bench` installs the Debian package wrk")
    sent = [("Content-Type", "application/json"), ("X-Tenant-Id", tenant), ("X-User-Role", "user")]
    headers = "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in (*sent, *contender.headers))
    script = folder / "wrk.lua"
    script.write_text(SCRIPT % (json.dumps(body.decode()), headers))
    command = [program, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
    url = f"{contender.url}/v1/chat/completions"
    done = subprocess.run([*command, url], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return Load(told["p50"], told["p99"], told["requests"], told["seconds"], told["failed"])
