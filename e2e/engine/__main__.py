"""Command line of the stand-in: `python -m e2e.engine --port 8000`, and the image's entry point."""

import argparse
import asyncio
import contextlib
import os
import signal

from .prefix_cache import PrefixCache
from .server import Engine


async def serve(engine: Engine, drain_seconds: float = 0.0) -> None:
    """Run until SIGTERM or SIGINT; as process 1 of a container neither would end it by default.

    With `drain_seconds` the first signal only announces the end: new and kept-alive connections are answered
    for that long, as by an engine behind a preStop hook, or until a second signal.
    """
    signals: asyncio.Queue[None] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, None)
    async with engine:
        print(f"engine {engine.version} listens on {engine.url}", flush=True)
        await signals.get()
        if drain_seconds:
            print(f"engine {engine.version} goes on for {drain_seconds:g} s", flush=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(signals.get(), drain_seconds)


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(
        description="A stand-in for a model server, with the OpenAI chat API.",
        epilog="example: python -m e2e.engine --port 8000 --latency 0.6 --version 2",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--latency", type=float, default=0.6, metavar="SECONDS", help="default: 0.6")
    parser.add_argument("--model", help="answer with this model; default: the one asked for")
    parser.add_argument("--version", default="1", help="part of every answer; default: 1")
    parser.add_argument(
        "--fail-every", type=int, default=0, metavar="N", help="answer each N-th call with 500"
    )
    parser.add_argument("--tenant-header", default="X-Tenant-Id", metavar="NAME", help="default: X-Tenant-Id")
    parser.add_argument(
        "--drain",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="go on answering this long after SIGTERM, on kept-alive connections too; default: 0",
    )
    parser.add_argument(
        "--enable-prefix-caching",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="keep blocks of prompts, and count at /metrics how many tokens were known",
    )
    parser.add_argument(
        "--enable-prompt-tokens-details",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="tell in each answer's usage how many tokens were known",
    )
    parser.add_argument("--block-size", type=int, default=16, metavar="TOKENS", help="default: 16")
    asked = parser.parse_args()
    engine = Engine(
        host=asked.host,
        port=asked.port,
        latency_seconds=asked.latency,
        model=asked.model,
        version=asked.version,
        fail_every=asked.fail_every,
        tenant_header=asked.tenant_header,
        prefix_cache=PrefixCache(asked.block_size) if asked.enable_prefix_caching else None,
        tells_known_tokens=asked.enable_prompt_tokens_details,
        dev_mode=os.environ.get("VLLM_SERVER_DEV_MODE") == "1",
    )
    asyncio.run(serve(engine, asked.drain))


if __name__ == "__main__":
    main()
