"""Turns every log record of a process, ours and the libraries', into one line: JSON or text for a console.

Each long-running command's `main` calls `configure` once.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Final, Literal, TextIO

import structlog

LogFormat = Literal["json", "console"]

LOG_LEVELS: Final = ("debug", "info", "warning", "error")


def configure(
    log_format: LogFormat, level: str, quiet: Iterable[str] = (), stream: TextIO | None = None
) -> None:
    """Set up structlog and the standard library's logging to write to `stream`, by default stdout.

    `quiet` names loggers whose INFO and DEBUG are not wanted.
    """
    stream = stream or sys.stdout
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.types.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if log_format == "json"
        else [
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(),
                # rich, where it is installed, would print the values of variables: headers, prompts, keys.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
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
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(())],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)
