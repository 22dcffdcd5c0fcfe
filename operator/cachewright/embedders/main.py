"""`cachewright embedder`: from the command line to a running `/v1/embeddings` server of the built-in model.

Called by `cachewright.cli`. The operator runs it as a sidecar of each gateway; anybody may run it elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from typing import Final

import structlog
import uvloop

from cachewright.embedders.builtin import BuiltinEmbedder
from cachewright.embedders.server import EmbedderServer
from cachewright.keys.embedding_identity import BUILTIN
from cachewright.logs import LOG_LEVELS, configure

EXAMPLES: Final = """\
examples:
  cachewright embedder
  cachewright embedder --host 0.0.0.0 --port 8091
  curl -s localhost:8091/v1/embeddings -H 'content-type: application/json' \\
    -d '{"model": "all-MiniLM-L6-v2", "input": "How do I reset my password?"}'
"""

_QUIET: Final = ("uvicorn", "uvicorn.error", "asyncio")

_log = structlog.get_logger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on for requests (default: %(default)s)"
    )
    parser.add_argument("--port", type=int, default=8091, help="port for requests (default: %(default)s)")
    parser.add_argument(
        "--health-port",
        type=int,
        default=8092,
        help="/healthz and /readyz, on all addresses (default: %(default)s)",
    )
    parser.add_argument("--log-format", choices=("json", "console"), default="json")
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="info")


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT and return the exit code."""
    configure(options.log_format, options.log_level, quiet=_QUIET)
    uvloop.run(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    server = EmbedderServer(BuiltinEmbedder(), options.host, options.port, options.health_port)
    await server.start()
    _log.info("embedder_started", model=BUILTIN.model, port=server.port, health_port=server.health_port)
    await stopping.wait()
    await server.stop()
    _log.info("embedder_stopped")
