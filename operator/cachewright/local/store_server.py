"""A private Valkey or Redis server: started with us, reached through a socket of ours, ended with us.

It has the users, rights and memory policy of a managed store, listens on no port, and writes nothing to
disk. It ends even when we are killed: the kernel sends it the signal.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cachewright.errors import LocalError
from cachewright.local.state_folder import write_private
from cachewright.local.store_choice import OwnServer
from cachewright.stores.redis_acl import acl_lines

SOCKET: Final = "store.sock"
START_SECONDS: Final = 10.0
END_SECONDS: Final = 1.0

_LONGEST_SOCKET_PATH: Final = 100
"""The kernel takes 107 bytes."""

_DIE_WITH_PARENT: Final = """\
import ctypes, os, sys
PR_SET_PDEATHSIG, SIGKILL = 1, 9
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Run by a fresh interpreter that then becomes the server, since code between fork and exec is not safe in a
process with threads. The parent is looked at after the request, so that its death in between is seen."""


class StoreServer:
    """One server process."""

    def __init__(self, server: OwnServer, folder: Path, cache_id: str, max_memory_bytes: int) -> None:
        """`folder` is emptied by its owner at the next start, should we be killed."""
        self._server = server
        self._max_memory_bytes = max_memory_bytes
        self._folder = _folder_for_socket(folder)
        self._socket = self._folder / SOCKET
        self._process: subprocess.Popen[bytes] | None = None
        password = secrets.token_urlsafe(32)
        users = acl_lines(cache_id, _sha256(password), _sha256(secrets.token_urlsafe(32)))
        write_private(self._folder / "users.acl", users)
        self.url = f"unix://gateway:{password}@{quote(str(self._socket))}?db=0"

    @property
    def pid(self) -> int:
        """The server's process id; 0 before it was started."""
        return self._process.pid if self._process else 0

    @property
    def has_ended(self) -> bool:
        """True when the server is gone although nobody told it to go."""
        return self._process is not None and self._process.poll() is not None

    async def start(self) -> None:
        """Start the server and return once it answers; raises LocalError.

        To be called on the main thread, with which the server lives and dies.
        """
        self._socket.unlink(missing_ok=True)
        log = self._folder / "log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - takes a millisecond, on the main thread
                [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *self._command()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we end it when the last answers are stored
                cwd=self._folder,
                env={},
            )
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await self._answers():
                    if self.has_ended:
                        raise LocalError(f"{self._server.executable} ended at once: {_last_line(log)}")
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise LocalError(
                f"{self._server.executable} did not answer within {START_SECONDS:.0f} s"
            ) from None

    async def restart(self, max_memory_bytes: int) -> None:
        """Start the server anew, empty."""
        self._max_memory_bytes = max_memory_bytes
        self._end()
        await self.start()

    def close(self) -> None:
        """End the server and remove every trace of it."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _command(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._folder),
            "aclfile": str(self._folder / "users.acl"),
            "maxmemory": str(self._max_memory_bytes),
            "maxmemory-policy": "volatile-lfu",  # the record has no TTL, so it is never evicted
            "save": "",
            "appendonly": "no",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return [str(self._server.executable), *words]

    async def _answers(self) -> bool:
        with suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
            try:
                writer.write(b"PING\r\n")
                return bool(await reader.read(64))  # to be told to log in is an answer too
            finally:
                writer.close()
        return False


def _folder_for_socket(wanted: Path) -> Path:
    """Make a folder for the server: the wanted one, or a temporary one where its path is too long."""
    if len(os.fsencode(wanted / SOCKET)) <= _LONGEST_SOCKET_PATH:
        wanted.mkdir(mode=0o700)
        return wanted
    folder = Path(tempfile.mkdtemp(prefix="cachewright-store-"))
    if len(os.fsencode(folder / SOCKET)) <= _LONGEST_SOCKET_PATH:
        return folder
    folder.rmdir()
    raise LocalError(f"the path {folder} is too long for a socket; set TMPDIR to a shorter one")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
