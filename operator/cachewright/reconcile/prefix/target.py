"""Which container of which workload is to be told, and by which settings. Pure; for `delivery: Inject`.

The name of the settings is also what a pod template says to have them: see `render.prefix_settings`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from cachewright.api.names import ANNOTATION_PREFIX_SETTINGS
from cachewright.engines.injection import refusal
from cachewright.reconcile.prefix.seen import PrefixSeen, engine_container
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.prefix.word_places import place_of
from cachewright.reconcile.workload import original_words
from cachewright.render.metadata import prefix_name

DIGEST_LENGTH: Final = 10
"""Hex digits that name settings; they are told apart within one object only."""


@dataclass(frozen=True, slots=True)
class PrefixTarget:
    """The engine's container as its user wrote it, and what it is to be told."""

    name: str
    """Of the ConfigMap that holds the settings."""
    container: str
    labels: Mapping[str, str]
    """Labels that the workload's pods carry."""
    refusal: str = ""
    """Why nothing may be added to its command line."""
    stamp: str = ""
    """The settings that the pod template names now."""
    workload: Mapping[str, Any] = field(default_factory=dict)
    """The workload; empty where only pods can be looked at."""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


def prefix_target(wish: PrefixWish, seen: PrefixSeen, cache_name: str) -> PrefixTarget | None:
    """Find the container in the pod template, or in a pod where the template cannot be read.

    None where nobody can tell which container is meant.
    """
    if wish.configuration is None:
        return None
    template: Mapping[str, Any] = _template(seen)
    containers = list((template.get("spec") or {}).get("containers") or [])
    found = engine_container(containers, wish.ref.container)
    name = str(found["name"]) if found is not None else wish.ref.container
    if name is None:
        return None
    command, args = _words(template, found or {})
    labels = _labels(wish, seen)
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    known = found is not None
    return PrefixTarget(
        name=f"{prefix_name(cache_name)}-{_digest(wish, name, labels)}",
        container=name,
        labels=labels,
        refusal=_refusal(wish, seen, command, args) if known or seen.workload is None else "is not there",
        stamp=str(annotations.get(ANNOTATION_PREFIX_SETTINGS, "")),
        workload=seen.workload or {},
        command=tuple(command),
        args=tuple(args),
    )


def _refusal(wish: PrefixWish, seen: PrefixSeen, command: list[str], args: list[str]) -> str:
    here = place_of(seen.workload).refusal(seen.workload) if seen.workload is not None else ""
    if here or wish.configuration is None:
        return here
    return refusal(command, args, wish.engine, wish.configuration)


def _template(seen: PrefixSeen) -> Mapping[str, Any]:
    if seen.workload is not None:
        return place_of(seen.workload).template(seen.workload)
    return seen.pods[0] if seen.pods else {}


def _words(template: Mapping[str, Any], container: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    original = original_words(template)
    if original is not None and original.container == container.get("name"):
        return original.command, original.args
    return list(container.get("command") or []), list(container.get("args") or [])


def _labels(wish: PrefixWish, seen: PrefixSeen) -> Mapping[str, str]:
    if wish.ref.pod_selector is not None:
        return wish.ref.pod_selector.match_labels
    selector = (seen.workload or {"spec": {}})["spec"].get("selector") or {}
    return dict(selector.get("matchLabels") or {})


def _digest(wish: PrefixWish, container: str, labels: Mapping[str, str]) -> str:
    """Name the settings as the user wrote them, and whom they are for.

    Neither a default that a later release adds nor another rendering of the same words changes it, so that
    no upgrade of the operator changes what pods carry.
    """
    whom = [wish.ref.api_version, wish.ref.kind, wish.ref.name, container, labels]
    text = orjson.dumps([wish.said, whom], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(b"cachewright/prefix/target\0" + text).hexdigest()[:DIGEST_LENGTH]
