"""Command line of the stand-in: `python -m e2e.qdrant --port 6333`, and the image's entry point."""

import argparse
import asyncio
import os
import signal
from pathlib import Path

from e2e.qdrant.server import QdrantStandIn


async def serve(stand_in: QdrantStandIn) -> None:
    """Run until SIGTERM or SIGINT; as process 1 of a container neither would end it by default."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with stand_in:
        print(f"qdrant stand-in listens on {stand_in.url}", flush=True)
        await ended.wait()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(
        description="A stand-in for a Qdrant server, over qdrant-edge-py.",
        epilog="The API key is taken from QDRANT__SERVICE__API_KEY, as by the real server.",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6333)
    parser.add_argument("--folder", type=Path, required=True, help="where collections are kept")
    asked = parser.parse_args()
    api_key = os.environ.get("QDRANT__SERVICE__API_KEY") or None
    asyncio.run(serve(QdrantStandIn(asked.folder, host=asked.host, port=asked.port, api_key=api_key)))


if __name__ == "__main__":
    main()
