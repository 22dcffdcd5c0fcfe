"""The state folder of one cache: digest key, cache id and record, kept from run to run.

The record is what makes a change of the model's version unreachable answers also across restarts, with a
store that outlives us. One run at a time: the folder is locked.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TextIO

from cachewright.errors import InvalidDocument, InvalidInput, LocalError
from cachewright.keys.digest import parse_digest_key
from cachewright.keys.record import RECORD_DATA_KEY, Record

DIGEST_KEY: Final = "digest-key"
RUNNING: Final = "running.json"
"""In the folder of the run: what other commands need to know of it."""


def default_state_folder(name: str) -> Path:
    """Return where the state of the cache `name` is kept."""
    home = os.environ.get("XDG_STATE_HOME")
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".local/state"
    return base / "cachewright/local" / name


@dataclass(frozen=True, slots=True)
class Running:
    """A run, as other commands find it."""

    document: Any
    """The InferenceCache in use, as it was written."""
    metrics_url: str
    upstream_url: str | None = None
    """Where misses go in place of the document's upstream; None: there."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read it from a state folder; raises InvalidInput where nothing runs."""
        try:
            told = json.loads((path / "run" / RUNNING).read_bytes())
            return cls(told["document"], str(told["metricsURL"]), told["upstreamURL"])
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise InvalidInput(f"no `cachewright local` is running with {path}; see --state-dir") from e

    def write(self, run: Path) -> None:
        """Write it into the folder of the run."""
        told = {
            "document": self.document,
            "metricsURL": self.metrics_url,
            "upstreamURL": self.upstream_url,
        }
        write_private(run / RUNNING, json.dumps(told))


class StateFolder:
    """A locked folder that only its owner can read."""

    def __init__(self, path: Path, lock: TextIO) -> None:
        self.path = path
        self._lock = lock
        self.run = path / "run"
        """The mounted files of this run; emptied at its start and at its end."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Make and lock the folder; raises LocalError where it cannot be used or is in use."""
        path = path.absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (path / "lock").open("w")
        except OSError as e:
            raise LocalError(f"the state folder {path} cannot be used: {e.strerror}; see --state-dir") from e
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise LocalError(
                f"another `cachewright local` is using {path}; stop it, or choose another --state-dir, "
                "or --ephemeral"
            ) from None
        folder = cls(path, lock)
        folder._remove_run()
        folder.run.mkdir(mode=0o700)
        return folder

    def close(self) -> None:
        """Remove the mounted files and let the folder go."""
        self._remove_run()
        self._lock.close()

    def digest_key(self) -> str:
        """Return the kept digest key, or a new one."""
        path = self.path / DIGEST_KEY
        with suppress(OSError, InvalidDocument, UnicodeDecodeError):
            text = path.read_text().strip()
            parse_digest_key(text)
            return text
        fresh = secrets.token_hex(32)
        write_private(path, fresh)
        return fresh

    def record(self) -> Record:
        """Return the kept record, or an empty one under a new cache id, which meets no older entry."""
        with suppress(OSError, InvalidDocument):
            return Record.from_json((self.path / RECORD_DATA_KEY).read_bytes())
        return Record(secrets.token_hex(8), revision=0, incarnation=0)

    def keep(self, record: Record) -> None:
        """Keep the record; to be called before anybody uses it, so that nothing is given out twice."""
        write_private(self.path / RECORD_DATA_KEY, record.to_json())

    def _remove_run(self) -> None:
        shutil.rmtree(self.run, ignore_errors=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    beside.replace(path)
