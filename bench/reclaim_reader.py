"""Someone else's requests: reads keys of a store, one each millisecond, and notes how long each answer took.

Run by `bench.reclaim` as a process of its own, so that nothing but the store keeps it waiting. Reads commands
on standard input: an empty line ends it. Writes pairs of doubles (when, how long, in seconds) to a file.
"""

from __future__ import annotations

import gc
import select
import socket
import sys
import time
from array import array
from pathlib import Path

PAUSE_SECONDS = 0.001


def main(port: int, login: str, pattern: str, count: int, target: Path) -> None:
    """Read until told to end."""
    gc.disable()
    noted = array("d")
    with socket.create_connection(("127.0.0.1", port)) as store:
        store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _ask(store, f"AUTH {login}\r\n".encode())
        print("ready", flush=True)
        number = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            number = (number + 7919) % count
            key = pattern.replace("#", f"{number:06x}").replace("@", f"{number % 64:02d}")
            request = f"GET {key}\r\n".encode()
            began = time.monotonic()
            _ask(store, request)
            noted.extend((began, time.monotonic() - began))
            time.sleep(PAUSE_SECONDS)
    with target.open("wb") as file:
        noted.tofile(file)


def _ask(store: socket.socket, request: bytes) -> None:
    store.sendall(request)
    answer = store.recv(4096)
    if answer.startswith(b"$") and answer != b"$-1\r\n":
        length, _, rest = answer[1:].partition(b"\r\n")
        missing = int(length) + 2 - len(rest)
        while missing > 0:
            missing -= len(store.recv(missing))
    elif answer.startswith(b"-"):
        raise RuntimeError(answer.decode())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
