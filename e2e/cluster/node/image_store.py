"""Which image archives the node's containerd has taken in: each once, and none outlives its file."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from e2e.cluster import console

CTR: Final = ("ctr", "-n", "k8s.io", "images")
IMPORTED: Final = re.compile(r"^unpacking (\S+) \(", re.MULTILINE)

RunInside = Callable[[Sequence[str], int | None], str]
"""Runs a command in the node's namespaces, with a file descriptor as its standard input."""


@dataclass(frozen=True)
class Imported:
    """An archive as it was when it was imported, and the image names that came of it."""

    size: int
    mtime_ns: int
    images: list[str]


class ImageStore:
    """The images of one node; the record lies in containerd's folder, for both go together."""

    def __init__(self, folder: Path, run_inside: RunInside) -> None:
        self._record = folder / "imported.json"
        self._run_inside = run_inside

    def load(self, archives: Iterable[Path]) -> None:
        """Import those archives that were not imported in their present state."""
        record = self._read()
        for archive in archives:
            seen = archive.stat()
            before = record.get(str(archive))
            if before and (before.size, before.mtime_ns) == (seen.st_size, seen.st_mtime_ns):
                continue
            with console.Step(f"importing {archive.name}"), archive.open("rb") as content:
                printed = self._run_inside([*CTR, "import", "-"], content.fileno())
            record[str(archive)] = Imported(seen.st_size, seen.st_mtime_ns, IMPORTED.findall(printed))
            self._write(record)

    def forget_removed(self) -> None:
        """Remove images whose archive is gone: builds replace them, and old layers would fill the disk.

        Only for a node without pods: a running pod's image would be removed just the same.
        """
        record = self._read()
        gone = [archive for archive in record if not Path(archive).exists()]
        images = {image for archive in gone for image in record.pop(archive).images}
        images -= {image for kept in record.values() for image in kept.images}
        if images:
            self._run_inside([*CTR, "remove", *sorted(images)], None)
        if gone:
            self._write(record)

    def _read(self) -> dict[str, Imported]:
        if not self._record.exists():
            return {}
        return {
            archive: Imported(**content) for archive, content in json.loads(self._record.read_text()).items()
        }

    def _write(self, record: dict[str, Imported]) -> None:
        content = {archive: asdict(imported) for archive, imported in record.items()}
        self._record.write_text(json.dumps(content, indent=1) + "\n")
