"""What the managed PostgreSQL's pod runs, with the real programs: first start, restart, refusal."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from cachewright.api.stores import ManagedPostgres
from cachewright.crd.validation import load
from cachewright.render.postgres import DATABASE, LOGIN, MIGRATIONS, POSTGRES_PORT, postgres_files
from tests.support.caches import cache_document
from tests.support.postgres_servers import RUNS_AS, binary
from tests.support.waiting import until

SAID = re.compile(r"^cachewright: (.*)$", re.MULTILINE)


@dataclass
class Pod:
    """The container's file system reduced to one folder, and its one process."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """The database's folder."""
        return self.folder / "data" / "pgdata"

    def write_files(self, password: str) -> None:
        """Mount what the operator renders; the port alone is another one."""
        for name, text in postgres_files(load(cache_document()), ManagedPostgres(memory="256Mi")).items():
            here = text.replace(f"port = {POSTGRES_PORT}", f"port = {self.port}")
            here = here.replace("directories = '/tmp'", f"directories = '{self.folder}'")
            (self.folder / "config" / name).write_text(here)
        (self.folder / "secrets" / "password").write_text(password)

    def start(self, log: Path) -> None:
        """Run the container's command."""
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                ["sh", str(self.folder / "config" / "start.sh")],
                stdout=output,
                stderr=output,
                user=RUNS_AS if os.getuid() == 0 else None,
                env={
                    "PATH": f"{Path(binary('postgres')).parent}:{os.environ['PATH']}",
                    "LC_ALL": "C",
                    "PGPORT": str(self.port),
                    "PGDATA": str(self.data),
                    "CACHEWRIGHT_CONFIG": str(self.folder / "config"),
                    "CACHEWRIGHT_SECRETS": str(self.folder / "secrets"),
                    "CACHEWRIGHT_SOCKETS": str(self.folder),
                },
            )

    def end(self) -> None:
        """Kill it without a word."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()

    def connect(self, password: str, user: str = LOGIN) -> psycopg.Connection[tuple[object, ...]]:
        """Log in from outside the pod."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, dbname=DATABASE, autocommit=True
        )

    def leave_half_a_start(self) -> None:
        """Leave what a first start leaves that was killed while it made the database."""
        half = Path(f"{self.data}.new")
        half.mkdir()
        (half / "PG_VERSION").write_text("18")
        if os.getuid() == 0:
            shutil.chown(half, RUNS_AS)

    async def serves(self, password: str) -> bool:
        """Tell whether a gateway can log in."""
        try:
            self.connect(password).close()
        except psycopg.OperationalError:
            assert self.process is not None
            assert self.process.poll() is None, "the script ended"
            return False
        return True


@pytest.fixture
def pod() -> Iterator[Pod]:
    """An empty volume, and the files that the operator mounts."""
    folder = Path(tempfile.mkdtemp(prefix="cachewright-managed-"))
    for name in ("config", "secrets", "data"):
        (folder / name).mkdir(mode=0o755)
    if os.getuid() == 0:
        folder.chmod(0o755)
        for path in (folder, folder / "data"):
            shutil.chown(path, RUNS_AS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = Pod(folder, port)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(folder)


async def test_the_database_is_made_once_and_brought_up_to_date_at_each_start(pod: Pod) -> None:
    """An empty or half-filled volume becomes a database; killed and started anew, it keeps what it held."""
    pod.leave_half_a_start()
    pod.write_files("first-password")
    log = pod.folder / "log"
    pod.start(log)
    await until(lambda: pod.serves("first-password"), 120)
    assert SAID.findall(log.read_text()) == [
        f"making a database in {pod.data}",
        f"migration 1: {MIGRATIONS[0][1]}",
        "ready to serve",
    ]
    with pod.connect("first-password") as connection:
        row = connection.execute("SELECT current_setting('is_superuser'), current_setting('shared_buffers')")
        assert row.fetchone() == ("off", "64MB")
        assert connection.execute("SELECT '[1,2]'::vector <=> '[2,1]'").fetchone() is not None
        connection.execute("SET synchronous_commit = on")  # else a kill may lose what came last
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
        pod.connect("first-password", user="postgres")
    pod.end()
    pod.write_files("second-password")
    pod.data.chmod(0o770)  # as kubelet leaves it where the pod has an fsGroup
    pod.start(log)
    await until(lambda: pod.serves("second-password"), 120)
    with pod.connect("second-password") as connection:
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
    assert not await pod.serves("first-password")
    said = log.read_text()
    assert SAID.findall(said) == ["ready to serve"]
    assert "password" not in said.replace('password authentication failed for user "cachewright"', "")


def test_a_volume_of_another_major_version_is_left_alone(pod: Pod) -> None:
    """The pod says what to do, and touches nothing."""
    pod.write_files("password")
    pod.data.mkdir()
    (pod.data / "PG_VERSION").write_text("15")
    log = pod.folder / "log"
    pod.start(log)
    assert pod.process is not None
    assert pod.process.wait(60) == 1
    assert "holds a database of PostgreSQL 15, and this image is PostgreSQL 18" in log.read_text()
    assert [path.name for path in pod.data.iterdir()] == ["PG_VERSION"]
