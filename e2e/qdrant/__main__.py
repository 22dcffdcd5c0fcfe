"""Command line of the stand-in: `python -m e2e.qdrant --port 6333`, and in its image `./qdrant`."""

import argparse
import asyncio
import os
import signal
from pathlib import Path

from e2e.qdrant.configuration import API_KEY_VARIABLE, ConfigurationError, read_configuration
from e2e.qdrant.server import QdrantStandIn


async def serve(stand_in: QdrantStandIn, init_file: Path | None) -> None:
    """Run until SIGTERM or SIGINT; as process 1 of a container neither would end it by default."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with stand_in:
        if init_file is not None:
            await asyncio.to_thread(init_file.touch)
        print(f"qdrant stand-in listens on {stand_in.url}", flush=True)
        await ended.wait()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(
        description="A stand-in for a Qdrant server, over qdrant-edge-py.",
        epilog=f"The API key is taken from {API_KEY_VARIABLE}, as by the real server.",
    )
    parser.add_argument("--config-path", type=Path, help="Qdrant's configuration file; what follows wins")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--folder", type=Path, help="where collections are kept")
    asked = parser.parse_args()
    try:
        read = read_configuration(asked.config_path, os.environ)
    except ConfigurationError as e:
        parser.error(str(e))
    # Whoever says where collections are kept starts it by hand, on a machine of theirs.
    host = asked.host or ("127.0.0.1" if asked.folder else read.host)
    port = read.port if asked.port is None else asked.port
    stand_in = QdrantStandIn(asked.folder or read.folder, host=host, port=port, api_key=read.api_key)
    asyncio.run(serve(stand_in, read.init_file))


if __name__ == "__main__":
    main()
