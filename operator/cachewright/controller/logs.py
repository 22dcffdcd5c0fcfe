"""Turns every log record of the process, ours and the libraries', into one line: JSON or text for a console.

`main` calls `configure` once.
"""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal

import structlog

LogFormat = Literal["json", "console"]

NOISY: Final = ("kopf", "aiohttp", "asyncio", "kubernetes", "kubernetes.aio")
"""Libraries that say at INFO and DEBUG what we do not want to read, such as whole objects."""


def configure(log_format: LogFormat, level: str) -> None:
    """Set up structlog and the standard library's logging to write to stdout."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.types.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if log_format == "json"
        else [structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())]
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(())],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
