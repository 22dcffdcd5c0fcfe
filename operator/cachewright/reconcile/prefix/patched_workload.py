"""A workload whose pod template names our words: what is applied to it, and how it is given back. Pure.

Server-side apply takes the container's words over from whoever wrote them. So that nothing of ours is left,
they are given back in two writes: the words as they were, and then the ownership. A write that changes
fields is always noted as its writer's; one that changes nothing but `managedFields` is not.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachewright.api.names import (
    ANNOTATION_PREFIX_PATCHED,
    ANNOTATION_PREFIX_SETTINGS,
    FIELD_MANAGER,
    LABEL_PREFIX_PATCHED,
)
from cachewright.reconcile.prefix.word_places import Words, Workload, place_of
from cachewright.reconcile.workload import OriginalWords, given_digests, original_text, original_words
from cachewright.render.metadata import Manifest

WORDS: Final = ("command", "args")

PERSONS: Final = "kubectl"
"""Field managers of a person's commands begin so: `rollout undo`, `edit`, `patch`, `replace`."""

APPLIED_BY_CLIENT: Final = "kubectl-client-side-apply"
"""`kubectl apply`, which brings a manifest back as it is written down, whoever runs it."""


@dataclass(frozen=True, slots=True)
class FieldOwner:
    """Who wrote a field last."""

    manager: str
    operation: str

    @property
    def is_person(self) -> bool:
        """Tell whether somebody undid it by hand, rather than by applying a manifest anew."""
        by_hand = self.operation == "Update" and self.manager != APPLIED_BY_CLIENT
        return by_hand and self.manager.partition("-")[0] == PERSONS


def patched_for(workload: Workload) -> str:
    """Name the InferenceCache that patched it; empty where none has."""
    return str((workload["metadata"].get("labels") or {}).get(LABEL_PREFIX_PATCHED, ""))


def held_words(workload: Workload) -> OriginalWords | None:
    """Return the words before the patch; None where there is none, or somebody else wrote the words."""
    template = place_of(workload).template(workload)
    if ANNOTATION_PREFIX_PATCHED not in ((template.get("metadata") or {}).get("annotations") or {}):
        return None
    original = original_words(template)
    if original is None or original.is_changed:
        return None
    return original if any(_is_ours(workload, original.container, kind) for kind in WORDS) else None


def has_words(workload: Workload, container: str, given: tuple[Sequence[str], Sequence[str]]) -> bool:
    """Tell whether a container has just these words now, whoever wrote them."""
    containers = place_of(workload).template(workload)["spec"]["containers"]
    found: Workload = next((each for each in containers if each["name"] == container), {})
    return tuple(list(found.get(kind) or []) for kind in WORDS) == tuple(map(list, given))


def build_patch(
    workload: Workload,
    cache_name: str,
    original: OriginalWords,
    given: tuple[Sequence[str], Sequence[str]],
    settings: str,
) -> Manifest:
    """Render what is applied: the words, the words before, and whose wish it was."""
    annotations = {
        ANNOTATION_PREFIX_PATCHED: f"{given_digests(*given)}\n{original_text(original)}",
        ANNOTATION_PREFIX_SETTINGS: settings,
    }
    # What stays as it is stays its owner's, unless it is ours already: left out, it would be removed.
    changed = {
        kind: list(words)
        for kind, words in zip(WORDS, given, strict=True)
        if list(words) != _before(original, kind) or (words and _is_ours(workload, original.container, kind))
    }
    return _manifest(workload, cache_name, original.container, changed, annotations)


def given_back(workload: Workload, cache_name: str) -> tuple[Manifest | None, Manifest | None]:
    """Return the next write that gives a workload back: one to apply, or one to replace it by.

    Neither where nothing of it is ours.
    """
    if patched_for(workload) != cache_name or workload["metadata"].get("deletionTimestamp"):
        return None, None
    original = held_words(workload)
    if original is None:
        return None, _released(workload)
    before = {kind: _before(original, kind) for kind in WORDS if _is_ours(workload, original.container, kind)}
    # A list that was not there is left out: the API server removes it, as nobody but us has asked for it.
    left = {kind: words for kind, words in before.items() if words}
    return _manifest(workload, cache_name, original.container, left, {}), None


def words_owner(workload: Workload, container: str) -> FieldOwner | None:
    """Find who wrote the container's words last; None where that was us, or somebody who is not noted."""
    latest = max(
        (
            (str(entry.get("time", "")), str(entry.get("manager", "")), str(entry.get("operation", "")))
            for entry in _entries(workload)
            if entry.get("manager") != FIELD_MANAGER and place_of(workload).owned(entry, container)
        ),
        default=None,
    )
    return FieldOwner(latest[1], latest[2]) if latest else None


def _before(original: OriginalWords, kind: str) -> list[str]:
    return original.command if kind == "command" else original.args


def _manifest(
    workload: Workload,
    cache_name: str,
    container: str,
    words: Words,
    annotations: Mapping[str, str],
) -> Manifest:
    metadata = workload["metadata"]
    part = place_of(workload).manifest(container, words, annotations)
    return {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        **part,
        "metadata": {
            **part.get("metadata", {}),
            # With its uid, so that one that is gone meanwhile is not made again.
            **{key: metadata[key] for key in ("name", "namespace", "uid")},
            "labels": {LABEL_PREFIX_PATCHED: cache_name},
        },
    }


def _released(workload: Workload) -> Manifest:
    """Render the workload without our label, and with what we owned in the hands of whoever has the rest."""
    released: Manifest = copy.deepcopy(dict(workload))
    released.pop("status", None)
    metadata, place = released["metadata"], place_of(workload)
    del metadata["labels"][LABEL_PREFIX_PATCHED]
    for key in (ANNOTATION_PREFIX_PATCHED, ANNOTATION_PREFIX_SETTINGS):
        metadata.get("annotations", {}).pop(key, None)
    for container in place.template(workload)["spec"]["containers"]:
        name = container["name"]
        taken = {kind for kind in WORDS if kind in container and _is_ours(workload, name, kind)}
        for entry in _entries(released):
            if entry.get("manager") != FIELD_MANAGER:
                place.hand_over(entry, name, taken)
    metadata["managedFields"] = [
        entry
        for entry in metadata.get("managedFields") or []
        if entry.get("manager") != FIELD_MANAGER or entry.get("subresource")
    ]
    return released


def _is_ours(workload: Workload, container: str, kind: str) -> bool:
    """Tell whether a list of words was given by us."""
    return any(
        kind in place_of(workload).owned(entry, container)
        for entry in _entries(workload)
        if entry.get("manager") == FIELD_MANAGER
    )


def _entries(workload: Workload) -> Iterator[dict[str, Any]]:
    for entry in workload["metadata"].get("managedFields") or []:
        if not entry.get("subresource"):
            yield entry
