"""What is said aloud about a change of status: a log line, and mostly an Event. Pure; called by service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from cachewright.api.conditions import ConditionType, Reason
from cachewright.reconcile.state import Manifest

WARNINGS: Final = frozenset({Reason.ROLLOUT_NOT_SEEN, Reason.WORKLOAD_CHANGED, Reason.RECLAIM_FAILED})
"""Reasons of `RotationComplete` that want a person."""

PASSING: Final = frozenset({Reason.PROGRESSING, Reason.STORE_UNREADY, Reason.STORE_DEGRADED})
"""Reasons of `StoresReady` that any start and any restart of a pod has."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """One log line, and the Event beside it."""

    log_event: str
    log_fields: Mapping[str, Any]
    event: Literal["Normal", "Warning", ""] = ""
    """Type of the Event; empty for none."""
    reason: str = field(default="")
    message: str = field(default="")


def announcements(before: Manifest, status: Manifest) -> Iterator[Announcement]:
    """Compare two statuses."""
    ready, former = (_condition(each, ConditionType.READY) for each in (status, before))
    if _word(ready) != _word(former):
        fields = {"ready": ready["status"], "reason": ready["reason"]}
        came = ready["status"] == "True" and former.get("status") != "True"
        kind: Literal["Normal", ""] = "Normal" if came else ""
        yield Announcement("ready_changed", fields, kind, ready["reason"], ready["message"])
    yield from _stores(before, status)
    yield from _rotation(before, status)
    yield from _shortage(before, status, ConditionType.MEMORY_PRESSURE, "memory_pressure_changed")
    yield from _shortage(before, status, ConditionType.STORE_UNDERSIZED, "store_undersized_changed")


def _shortage(
    before: Manifest, status: Manifest, kind: ConditionType, log_event: str
) -> Iterator[Announcement]:
    """Tell of a condition that is present only while something is short."""
    short, former = (_condition(each, kind) for each in (status, before))
    if bool(short) != bool(former):
        told = (short["reason"], short["message"]) if short else ("", "")
        yield Announcement(log_event, {"short": bool(short)}, "Warning" if short else "", *told)


def _stores(before: Manifest, status: Manifest) -> Iterator[Announcement]:
    stores, former = (_condition(each, ConditionType.STORES_READY) for each in (status, before))
    if not stores or _word(stores) == _word(former):
        return
    reason = str(stores["reason"])
    fields = {"ready": stores["status"], "reason": reason}
    wants_a_person = stores["status"] != "True" and reason not in PASSING
    kind: Literal["Warning", ""] = "Warning" if wants_a_person else ""
    yield Announcement("stores_changed", fields, kind, reason, stores["message"])


def _rotation(before: Manifest, status: Manifest) -> Iterator[Announcement]:
    rotation, former = (_condition(each, ConditionType.ROTATION_COMPLETE) for each in (status, before))
    moved = _moved(before, status)
    if not rotation or not former or (_word(rotation) == _word(former) and not moved):
        return
    reason = str(rotation["reason"])
    fields = {"complete": rotation["status"], "reason": reason, **moved}
    if reason == Reason.PROGRESSING:
        yield Announcement("rotation_changed", fields)
        return
    told = "".join(f" {layer} uses {keyspace}." for layer, keyspace in moved.items())
    kind: Literal["Normal", "Warning"] = "Warning" if reason in WARNINGS else "Normal"
    yield Announcement("rotation_changed", fields, kind, reason, f"{rotation['message']}{told}")


def _moved(before: Manifest, status: Manifest) -> dict[str, str]:
    """Return the layers whose keyspace is another than before."""
    former = {each["name"]: each["keyspace"] for each in before.get("layers") or []}
    now = {each["name"]: each["keyspace"] for each in status.get("layers") or []}
    return {name: keyspace for name, keyspace in now.items() if former.get(name, keyspace) != keyspace}


def _word(condition: Manifest) -> tuple[Any, Any]:
    return condition.get("status"), condition.get("reason")


def _condition(status: Manifest, kind: ConditionType) -> Manifest:
    found: Manifest = next((c for c in status.get("conditions") or [] if c.get("type") == kind), {})
    return found
