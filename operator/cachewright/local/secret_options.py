"""`--secret NAME/KEY=VALUE`: from options and declared Secrets to the value behind each reference.

The session resolves them anew with every edition, so that a changed `@file` takes effect by itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cachewright.errors import InvalidInput
from cachewright.local.declared import SecretValues
from cachewright.reconcile.state import SecretUse

_FORM: Final = "--secret wants NAME/KEY=@FILE, NAME/KEY=env:VARIABLE or NAME/KEY=VALUE"


@dataclass(frozen=True, slots=True)
class SecretOption:
    """One `--secret`."""

    name: str
    key: str
    given: str = field(repr=False)
    """`@FILE`, `env:VARIABLE`, or the value itself."""

    @classmethod
    def parse(cls, text: str) -> SecretOption:
        """Read an option's argument; raises InvalidInput, which quotes no value."""
        place, equals, given = text.partition("=")
        name, slash, key = place.partition("/")
        if not (equals and slash and name and key and given):
            raise InvalidInput(f"{_FORM}, not {place!r}")
        return cls(name, key, given)

    @property
    def file(self) -> Path | None:
        """The file that holds the value, if it is one."""
        return Path(self.given[1:]) if self.given.startswith("@") else None

    def value(self) -> bytes:
        """Return the value; raises InvalidInput where the file or the variable is missing."""
        place = f"--secret {self.name}/{self.key}"
        if self.file is not None:
            try:
                return self.file.read_bytes()
            except OSError as e:
                raise InvalidInput(f"{place}: {self.file}: {e.strerror or e}") from e
        if self.given.startswith("env:"):
            variable = self.given.removeprefix("env:")
            if not os.environ.get(variable):
                raise InvalidInput(f"{place}: the environment variable {variable} is not set")
            return os.environ[variable].encode()
        return self.given.encode()


def gather(options: tuple[SecretOption, ...], declared: SecretValues) -> SecretValues:
    """Return all values that are known; an option wins over a Secret in the manifest."""
    return {**declared, **{(option.name, option.key): option.value() for option in options}}


def missing(use: SecretUse) -> str:
    """Say how to give a value that is not there."""
    place = f"{use.name}/{use.key}"
    return (
        f"{use.field_path}: no Secret {use.name} with the key {use.key}; give it with "
        f"--secret {place}=@FILE or --secret {place}=env:VARIABLE, or add the Secret to the manifest's file"
    )
