"""`delivery: Patch`: what is written to the engine's workload next, and what is noted of it. Pure.

A patch that somebody undid is written anew, twice at most: whoever brings a manifest back again and again,
as GitOps does, wins, and is named. What a person undid by hand is left alone at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_PREFIX_SETTINGS
from cachewright.engines.arguments import merge_container
from cachewright.engines.configuration import EngineConfiguration
from cachewright.reconcile.prefix.patch_note import PatchNote, build_patch_note
from cachewright.reconcile.prefix.patched_workload import (
    build_patch,
    given_back,
    has_words,
    held_words,
    patched_for,
    words_owner,
)
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.target import PrefixTarget, prefix_target
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.prefix.word_places import place_of
from cachewright.reconcile.state import Manifest, Observed, PrefixChildren
from cachewright.reconcile.workload import OriginalWords, words_digest
from cachewright.render.metadata import engine_name


@dataclass(frozen=True, slots=True)
class PatchMove:
    """What comes next."""

    note: PatchNote | None
    patch: Manifest | None = None


def patching(cache: InferenceCache, wish: PrefixWish, observed: Observed) -> PrefixChildren:
    """Return the note that is wanted, and what to apply to the workload."""
    name, seen = cache.metadata.name, observed.prefix or PrefixSeen()
    keeps = frozenset({("ConfigMap", engine_name(name))})
    move = next_move(wish, seen, observed)
    if move is None or move.note is None:
        return PrefixChildren(keeps=keeps)
    return PrefixChildren(applies=(build_patch_note(cache, move.note),), keeps=keeps, stamp=move.patch)


def leaving(wish: PrefixWish | None, observed: Observed) -> PrefixChildren | None:
    """Return what gives back a workload that is not to be patched any more; None where nothing is left."""
    patched, seen = observed.patched, observed.prefix
    is_patch = wish is not None and wish.layer.delivery == "Patch"
    keeps = frozenset({("ConfigMap", engine_name(observed.name))})
    workload: Mapping[str, Any] | None = None
    if patched is not None and patched.is_hidden:
        return PrefixChildren(keeps=keeps)
    if patched is not None and not (is_patch and wish is not None and patched.note.is_of(wish.ref)):
        workload = patched.workload
    elif seen is not None and not is_patch:
        workload = seen.workload
    if workload is None:
        return None
    restored, released = given_back(workload, observed.name)
    if restored is None and released is None:
        return None
    return PrefixChildren(keeps=keeps, stamp=restored, release=released)


def next_move(wish: PrefixWish, seen: PrefixSeen, observed: Observed) -> PatchMove | None:
    """Decide; None where nothing can be decided on."""
    target = prefix_target(wish, seen, observed.name)
    patched = observed.patched
    # One of another workload counts no more: that has been given back.
    note = patched.note if patched is not None and patched.note.is_of(wish.ref) else None
    if target is None or seen.workload is None or seen.rival or wish.configuration is None:
        return None
    template = place_of(seen.workload).template(seen.workload).get("metadata") or {}
    named = (template.get("annotations") or {}).get(ANNOTATION_PREFIX_SETTINGS)
    fresh = _fresh(wish, target, seen.workload)
    is_known = note is not None and (note.uid, note.settings) == (fresh.uid, fresh.settings)
    if held_words(seen.workload) is not None and named == wish.digest:
        return PatchMove(note if is_known else fresh)
    given = wanted_words(wish.configuration, target, seen.workload)
    if target.refusal or has_words(seen.workload, target.container, given):
        return PatchMove(note)
    if note is None or not is_known or note.original != fresh.original:
        note = fresh
    elif not note.has_ended and note.generation != fresh.generation:
        owner = words_owner(seen.workload, target.container)
        by_hand = owner is not None and owner.is_person
        note = replace(note, rounds=note.rounds + 1, generation=fresh.generation, taken_back=by_hand)
    if note.has_ended:
        return PatchMove(note)
    original = OriginalWords(target.container, list(target.command), list(target.args))
    return PatchMove(note, build_patch(seen.workload, observed.name, original, given, wish.digest))


def wanted_words(
    configuration: EngineConfiguration, target: PrefixTarget, workload: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """Return the container's command and args as they are to be."""
    command, args = merge_container(target.command, target.args, configuration)
    return command, place_of(workload).order(args)


def is_rival(workload: Mapping[str, Any], cache_name: str) -> bool:
    """Tell whether another object patched it."""
    return patched_for(workload) not in ("", cache_name)


def _fresh(wish: PrefixWish, target: PrefixTarget, workload: Mapping[str, Any]) -> PatchNote:
    metadata = workload["metadata"]
    return PatchNote(
        api_version=wish.ref.api_version,
        kind=wish.ref.kind,
        name=wish.ref.name,
        uid=str(metadata["uid"]),
        settings=wish.digest,
        original=words_digest(target.command, target.args),
        generation=int(metadata.get("generation", 0)),
    )
