"""What a person declares for a run on one machine: an InferenceCache, and Secrets beside it.

`cli.local` reads it from files; the session asks for it at start and whenever a file has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cachewright.api.inference_cache import InferenceCache

SecretValues = Mapping[tuple[str, str], bytes]
"""Values by Secret name and key."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One edition of the manifest, valid by the API server's rules."""

    cache: InferenceCache
    document: Any
    """The object as it was written, so that the next edition can be checked as a change of it."""
    secrets: SecretValues = field(default_factory=dict, repr=False)
    """Of Secret objects in the same files."""
    template: str | None = None
    """Text of the prompt template, where a ConfigMap in the same files holds it."""


Read = Callable[[Declared | None], Declared]
"""Reads the manifest; with the edition in use, rules about changes are checked too.

Raises InvalidSpec with one line for each problem, and InvalidDocument for what is no manifest.
"""

Signature = Callable[[], tuple[object, ...]]
"""Returns what changes when one of the manifest's files does."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the manifest comes from."""

    read: Read
    signature: Signature
    shown: str
    """For people: the files."""
