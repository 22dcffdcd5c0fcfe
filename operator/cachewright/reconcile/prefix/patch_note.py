"""What the operator notes of a workload that it patched, in a ConfigMap of its own. Pure.

The words before are kept on the workload itself, so that they outlive the object; here stands only how often
somebody undid the patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.model import WorkloadRef
from cachewright.render.metadata import Manifest, child_metadata, engine_name

MAX_ROUNDS: Final = 2
"""How often a patch that was undone is written anew."""


@dataclass(frozen=True, slots=True)
class PatchNote:
    """One patched workload."""

    api_version: str
    kind: str
    name: str
    uid: str
    settings: str
    """Digest of the settings that the words came from."""
    original: str
    """Digest of the words before."""
    rounds: int = 0
    """How often the patch was undone, back to just these words."""
    generation: int = 0
    """The workload's generation before the latest patch."""
    taken_back: bool = False
    """True where a person undid it, who is not to be argued with."""

    @property
    def has_ended(self) -> bool:
        """Tell whether these settings are not to be written any more."""
        return self.taken_back or self.rounds > MAX_ROUNDS

    def is_of(self, ref: WorkloadRef) -> bool:
        """Tell whether this is the workload that is meant now."""
        mine = (self.api_version, self.kind, self.name)
        return mine == (ref.api_version, ref.kind, ref.name)


@dataclass(frozen=True, slots=True)
class PatchSeen:
    """A note, and the workload as it is now."""

    note: PatchNote
    workload: Mapping[str, Any] | None
    """None where it is gone."""
    is_hidden: bool = False
    """True where it may not be looked at, as after rights were taken away."""


def read_note(live: Manifest | None) -> PatchNote | None:
    """Read the note; None where there is none, or a hand has made it unreadable."""
    data = (live or {}).get("data") or {}
    try:
        return PatchNote(
            api_version=data["api_version"],
            kind=data["kind"],
            name=data["name"],
            uid=data["uid"],
            settings=data["settings"],
            original=data["original"],
            rounds=int(data["rounds"]),
            generation=int(data["generation"]),
            taken_back=data["taken_back"] == "True",
        )
    except (KeyError, ValueError):
        return None


def build_patch_note(cache: InferenceCache, note: PatchNote) -> Manifest:
    """Render the ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(cache, engine_name(cache.metadata.name), "engine"),
        "data": {key: str(value) for key, value in asdict(note).items()},
    }
