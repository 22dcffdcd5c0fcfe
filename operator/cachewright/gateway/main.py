"""`cachewright gateway`: from the command line to a running gateway process.

Called by `cachewright.cli`. Loads none of the operator's libraries.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from pathlib import Path
from typing import Final, TextIO

import uvloop

from cachewright.gateway.mounts import DEFAULT_FOLDER
from cachewright.gateway.process import GatewayProcess, GatewaySettings
from cachewright.logs import LOG_LEVELS, LogFormat, configure

EXAMPLES: Final = """\
examples:
  cachewright gateway
  cachewright gateway --config-dir ./config --port 8080 --log-format console
"""

_QUIET: Final = ("uvicorn", "uvicorn.error", "aiohttp", "asyncio")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--config-dir",
        type=Path,
        default=DEFAULT_FOLDER,
        help="folder with the mounted policy, record, keys and store URL (default: %(default)s)",
    )
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on (default: %(default)s)")  # noqa: S104
    parser.add_argument("--port", type=int, default=8080, help="traffic port (default: %(default)s)")
    parser.add_argument(
        "--management-port", type=int, default=9090, help="health and metrics (default: %(default)s)"
    )
    parser.add_argument(
        "--admin-port",
        type=int,
        default=9091,
        help="stats and purge; opened only where admin/token is mounted (default: %(default)s)",
    )
    parser.add_argument("--log-format", choices=("json", "console"), default="json")
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="info")


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT and return the exit code."""
    configure_logs(options.log_format, options.log_level)
    settings = GatewaySettings(
        options.config_dir,
        options.host,
        options.port,
        options.management_port,
        options.admin_port,
        probes=True,
    )
    uvloop.run(_serve(settings))
    return 0


def configure_logs(log_format: LogFormat, level: str, stream: TextIO | None = None) -> None:
    """Set up logging for a process that serves; local mode calls it too."""
    configure(log_format, level, quiet=_QUIET, stream=stream)
    logging.getLogger("uvicorn.error").addFilter(_is_news)


async def _serve(settings: GatewaySettings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    process = GatewayProcess(settings)
    await process.start()
    await stopping.wait()
    await process.stop()


def _is_news(record: logging.LogRecord) -> bool:
    # Returning early is how the app ends an answer that its upstream broke off; the app logs it itself.
    return not record.getMessage().startswith("ASGI callable returned without completing response")
