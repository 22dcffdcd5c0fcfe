"""Qdrant's configuration file and environment into what the stand-in is started with. Called by `__main__`.

Only what our manifests say is known; anything else is refused, so that no test passes because the stand-in
ignored what a real server would have obeyed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

API_KEY_VARIABLE: Final = "QDRANT__SERVICE__API_KEY"
INIT_FILE_VARIABLE: Final = "QDRANT_INIT_FILE_PATH"

WITHOUT_EFFECT: Final = frozenset(
    {
        "log_level",
        "telemetry_disabled",
        "service.enable_static_content",
        "storage.snapshots_path",
        "storage.on_disk_payload",
        "storage.collection.vectors.on_disk",
    }
)
"""What changes where a real server keeps things, and no answer of it."""


class ConfigurationError(ValueError):
    """A setting that the stand-in does not know, or not with this value."""


@dataclass(frozen=True)
class Configuration:
    """How one server runs; the defaults are Qdrant's."""

    host: str = "0.0.0.0"
    port: int = 6333
    folder: Path = Path("./storage")
    api_key: str | None = None
    init_file: Path | None = None
    """Written when the server has started."""


def read_configuration(path: Path | None, environment: Mapping[str, str]) -> Configuration:
    """Read a file, if one is given, and the environment, which wins; raises ConfigurationError."""
    settings = dict(_flat(yaml.safe_load(path.read_text()) or {})) if path is not None else {}
    init_file = environment.get(INIT_FILE_VARIABLE)
    configuration = Configuration(
        host=str(settings.pop("service.host", Configuration.host)),
        port=int(settings.pop("service.http_port", Configuration.port)),
        folder=Path(settings.pop("storage.storage_path", Configuration.folder)),
        api_key=environment.get(API_KEY_VARIABLE) or settings.pop("service.api_key", None),
        init_file=Path(init_file) if init_file else None,
    )
    if settings.pop("cluster.enabled", False):
        raise ConfigurationError("cluster.enabled: the stand-in is one peer")
    if unknown := sorted(settings.keys() - WITHOUT_EFFECT):
        raise ConfigurationError(f"the stand-in does not know {', '.join(unknown)}")
    return configuration


def _flat(settings: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Name each setting by its whole path."""
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{above}{name}.")
        else:
            found.append((f"{above}{name}", value))
    return found
