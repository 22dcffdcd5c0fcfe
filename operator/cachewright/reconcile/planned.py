"""What a pass is about to change of what runs, as `status.planned` tells it before anything is written. Pure.

Called by plan, by status and by service. Only what people want to know beforehand is told: pods that are
started anew, and volumes; Services, ConfigMaps and the like follow from these. Of a new object nothing is
told, since nothing runs yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cachewright.reconcile.drift import RENDERED_ANNOTATION, differences
from cachewright.reconcile.state import ChildId, Manifest, Observed, PlannedChange

ROLLED: Final = frozenset({"StatefulSet", "Deployment"})
"""Kinds whose pods are started anew when their template changes."""

CLUSTER: Final = "Cluster"
"""Of CloudNativePG, whose own operator decides about its pods."""

TOLD: Final = ROLLED | {CLUSTER, "PersistentVolumeClaim"}

MOST_FIELDS: Final = 16
MOST_CHANGES: Final = 16
MOST_CHARACTERS: Final = 256

_TEMPLATE: Final = "spec.template"
_RENDERED: Final = f"metadata.annotations.{RENDERED_ANNOTATION}"


def planned_changes(
    observed: Observed, applies: Iterable[Manifest], stamp: Manifest | None, deletes: Iterable[Manifest]
) -> tuple[PlannedChange, ...]:
    """Say what writing all this does to what runs; `stamp` goes to the engine's workload."""
    if not observed.children:
        return ()
    changes = [_applied(observed.children, child) for child in applies if child["kind"] in TOLD]
    if stamp is not None:
        changes.append(PlannedChange(*_identity(stamp), "Roll", (_TEMPLATE,)))
    changes += [PlannedChange(*_identity(child), "Remove") for child in deletes if child["kind"] in TOLD]
    return tuple(sorted(changes, key=lambda change: (change.kind, change.name))[:MOST_CHANGES])


def planned_status(changes: tuple[PlannedChange, ...]) -> list[Manifest]:
    """Render for status."""
    return [
        {
            "kind": change.kind,
            "name": change.name,
            "effect": change.effect,
            **({"fields": list(change.fields)} if change.fields else {}),
        }
        for change in changes
    ]


def planned_sentence(changes: tuple[PlannedChange, ...]) -> str:
    """Render for an Event."""
    return " ".join(_sentences(changes))


def _sentences(changes: tuple[PlannedChange, ...]) -> Iterator[str]:
    for change in changes:
        what = f"{change.kind} {change.name}"
        because = f": {', '.join(change.fields)}" if change.fields else ""
        match change.effect:
            case "Create":
                yield f"{what} is going to be made."
            case "Live":
                yield f"{what} changes without a restart{because}."
            case "Roll":
                yield f"{what} is rolled{because}."
            case "Remove":
                yield f"{what} is going to be removed."


def _applied(children: dict[ChildId, Manifest], child: Manifest) -> PlannedChange:
    live = children.get(_identity(child))
    if live is None:
        return PlannedChange(*_identity(child), "Create")
    found = [path for path in differences(live, child) if path != _RENDERED]
    # Nobody can tell what a field does that is no longer there, or what others make of one; so the worst is
    # told.
    may_roll = not found or any(path.startswith(_TEMPLATE) for path in found)
    rolls = child["kind"] == CLUSTER or (child["kind"] in ROLLED and may_roll)
    fields = tuple(path[:MOST_CHARACTERS] for path in found[:MOST_FIELDS])
    return PlannedChange(*_identity(child), "Roll" if rolls else "Live", fields)


def _identity(manifest: Manifest) -> ChildId:
    return str(manifest["kind"]), str(manifest["metadata"]["name"])
