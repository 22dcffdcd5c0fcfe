"""Which version of the model is served now, by all evidence: what the spec wants against what pods run. Pure.

Called by `rotation` before it looks at any layer: every layer that depends on the model follows one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachewright.api.names import ANNOTATION_WORKLOAD_SERVES
from cachewright.keys.record import KeyspaceState, Record
from cachewright.reconcile.workload import WorkloadSeen, identity_of_version

AUTO: Final = "Auto"
"""Value of `spec.model.version` that follows the workload."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the spec says about version and fence."""

    version: str
    """`spec.model.version`."""
    fenced: bool
    """True where pods decide when a version is served."""
    serves: tuple[str, str] = ("", "")
    """Identity and version that a person vouches for; see `ANNOTATION_WORKLOAD_SERVES`."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A version of the model, and the identity of the pods that serve it."""

    version: str
    """Empty where none is known yet: `Auto` before the first pod."""
    workload: str = ""
    """Empty where nothing is fenced, and while no pod was seen yet."""
    waits: bool = False
    """True where the spec wants another version than this, and the pods do not serve it yet."""


def parse_serves(text: str) -> tuple[str, str]:
    """Read the annotation `<identity>/<version>`; two empty texts for what is not that."""
    identity, slash, version = text.strip().partition("/")
    return (identity, version) if slash and identity and version else ("", "")


def serves_annotation(identity: str, version: str) -> str:
    """Return what to annotate an InferenceCache with, as `kubectl annotate` takes it."""
    return f"{ANNOTATION_WORKLOAD_SERVES}={identity}/{version}"


def in_use(record: Record) -> Serving | None:
    """Return the version that the record's layers hold answers of; None where none depends on the model."""
    for _, layer in sorted(record.layers.items()):
        if layer.model_version:
            return Serving(layer.model_version, layer.workload)
    return None


def serving(record: Record, wish: Wish, seen: WorkloadSeen) -> Serving:
    """Decide which version is served, and by which pods."""
    current = in_use(record)
    if not wish.fenced:
        return Serving(wish.version)
    if wish.version == AUTO:
        return _followed(record, current, seen)
    if current is None:
        return Serving(wish.version, seen.uniform)
    if current.version == wish.version:
        return Serving(current.version, _rebound(current, wish, seen))
    if not current.workload and not record.fenced:
        # Written without a fence so far, by whatever runs now: it takes a change to speak for a new version.
        current = Serving(current.version, seen.uniform)
    identity = _evidence(record, current, wish, seen)
    if identity:
        return Serving(wish.version, identity)
    return Serving(current.version, current.workload, waits=True)


def _followed(record: Record, current: Serving | None, seen: WorkloadSeen) -> Serving:
    """Take whatever all pods run for the version; a known identity keeps the version it had."""
    uniform = seen.uniform
    if not uniform:
        return current or Serving("")
    if current is not None and current.workload in ("", uniform):
        return Serving(current.version, uniform)
    retained = record.in_state(KeyspaceState.RETAINED)
    known = next((past.model_version for past in reversed(retained) if past.workload == uniform), "")
    return Serving(known or seen.versions.get(uniform, "") or uniform, uniform)


def _rebound(current: Serving, wish: Wish, seen: WorkloadSeen) -> str:
    """Return the identity that serves the version in use; another one only where somebody says so."""
    uniform = seen.uniform
    if not uniform or current.workload == uniform:
        return current.workload
    vouched = wish.serves == (uniform, wish.version) or uniform == identity_of_version(wish.version)
    return uniform if vouched or not current.workload else current.workload


def _evidence(record: Record, current: Serving, wish: Wish, seen: WorkloadSeen) -> str:
    """Return the identity that all pods carry if it speaks for the wanted version; else nothing.

    A new identity speaks for a new version, unless it is known to stand for another one.
    """
    uniform = seen.uniform
    if not uniform:
        return ""
    if wish.serves == (uniform, wish.version) or uniform == identity_of_version(wish.version):
        return uniform
    if any(past.workload == uniform and past.model_version == wish.version for past in record.past):
        return uniform
    by_annotation = current.workload == identity_of_version(current.version)
    others = {past.workload for past in record.past} | {current.workload}
    disputed = record.waiting.disputed if record.waiting else ()
    return "" if by_annotation or uniform in others or uniform in disputed else uniform
