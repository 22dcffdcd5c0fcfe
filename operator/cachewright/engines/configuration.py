"""What an engine is to be started with: arguments, environment, a configuration file, and what must go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from cachewright.engines.versions import EngineVersion
from cachewright.errors import InvalidInput


class UnsupportedSetting(InvalidInput):
    """An engine or its version cannot do what is asked; the message says which can."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag, and its value where it takes one."""

    flag: str
    value: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """As words of a command line: `--flag=value`, so that no value can be taken for a flag."""
        return (self.flag,) if self.value is None else (f"{self.flag}={self.value}",)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A flag of the user's that undoes what is wanted."""

    flag: str
    why: str


@dataclass(frozen=True, slots=True)
class EngineConfiguration:
    """How one engine of one version is started with its prefix cache on."""

    arguments: tuple[Argument, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    """What must not stand beside them."""
    environment: dict[str, str] = field(default_factory=dict)
    file: dict[str, Any] = field(default_factory=dict)
    """Content of the engine's own configuration file; empty where it needs none."""
    extra_arguments: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All arguments, in their order; the same settings give the same words."""
        ours = tuple(word for argument in self.arguments for word in argument.words)
        return ours + self.extra_arguments

    def file_text(self) -> str:
        """Render the configuration file as YAML with sorted keys; empty where there is none."""
        return yaml.safe_dump(self.file, sort_keys=True) if self.file else ""


@dataclass(frozen=True, slots=True)
class Known:
    """A flag and the versions that know it."""

    flag: str
    since: EngineVersion
    values: tuple[tuple[str, EngineVersion], ...] = ()
    """Values that came later than the flag, with the version that brought each."""

    def argument(self, engine: str, version: EngineVersion, value: str | None = None) -> Argument:
        """Return the argument; raises UnsupportedSetting where this version does not know it."""
        if version < self.since:
            raise UnsupportedSetting(
                f"{engine} {version} does not know {self.flag}; it came with {self.since}"
            )
        since = next((since for known, since in self.values if known == value), self.since)
        if version < since:
            raise UnsupportedSetting(
                f"{engine} {version} does not know {self.flag}={value}; it came with {since}"
            )
        return Argument(self.flag, value)
