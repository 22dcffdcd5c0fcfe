"""`delivery: ConfigMap`: do the engine's pods read the file, and does no argument speak against it? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from cachewright.api.conditions import Reason
from cachewright.api.names import ANNOTATION_PREFIX_SINCE
from cachewright.engines.arguments import contradictions
from cachewright.engines.configuration import EngineConfiguration
from cachewright.engines.files import file_words
from cachewright.engines.settings import Engine
from cachewright.reconcile.prefix.finding import PrefixFinding
from cachewright.reconcile.prefix.seen import (
    PrefixSeen,
    engine_container,
    mounted_config_maps,
    words_of,
)
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.state import Observed
from cachewright.reconcile.timestamps import from_timestamp
from cachewright.render.metadata import prefix_name
from cachewright.render.prefix import FILE_DIR, LINES_KEY


def file_finding(wish: PrefixWish, seen: PrefixSeen, observed: Observed) -> PrefixFinding | None:
    """Return the first thing that is amiss; None where every pod reads the file."""
    configuration = wish.configuration or EngineConfiguration()
    name = prefix_name(observed.name)
    missing, old = 0, 0
    for pod in seen.pods:
        container = engine_container(pod["spec"]["containers"], wish.ref.container)
        if container is None:
            return _no_container(wish, str(pod["metadata"]["name"]))
        words = words_of(container)
        mounts = [path for each, path in mounted_config_maps(pod, container) if each == name]
        if not _names_file(words, file_words(wish.engine, configuration)[0], mounts):
            missing += 1
            continue
        against = [] if wish.engine is Engine.TENSORRT_LLM else contradictions(words, configuration)
        if against:
            message = f"Pod {pod['metadata']['name']} has {against[0]}; arguments win over the file."
            return PrefixFinding(Reason.FLAG_CONTRADICTED, message)
        old += _is_older(str(pod["metadata"].get("creationTimestamp", "")), _since(observed))
    total = len(seen.pods)
    if missing:
        return PrefixFinding(Reason.FLAG_MISSING, _what_to_add(wish, configuration, name, missing, total))
    if old:
        message = (
            f"{old} of {total} pods of {wish.workload} were started before the settings came; roll them."
        )
        return PrefixFinding(Reason.WAITING_FOR_ROLLOUT, message)
    return None


def _no_container(wish: PrefixWish, pod: str) -> PrefixFinding:
    if wish.ref.container is None:
        message = f"Pod {pod} has several containers: name the engine's in workloadRef.container."
    else:
        message = f"Pod {pod} has no container {wish.ref.container}."
    return PrefixFinding(Reason.FLAG_MISSING, message)


def _what_to_add(
    wish: PrefixWish, configuration: EngineConfiguration, name: str, missing: int, total: int
) -> str:
    words = " ".join(file_words(wish.engine, configuration))
    return (
        f"{missing} of {total} pods of {wish.workload} do not read the file: mount ConfigMap {name} at"
        f" {FILE_DIR} and add the arguments {words}; key {LINES_KEY} of it holds the lines."
    )


def _names_file(words: Sequence[str], flag: str, mounts: Sequence[str]) -> bool:
    """Tell whether the engine is told to read a file of ours, wherever it is mounted."""
    named = [after for word, after in pairwise(words) if word == flag]
    named += [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]
    return any(path == mount or path.startswith(f"{mount}/") for path in named for mount in mounts)


def _since(observed: Observed) -> datetime | None:
    live = observed.children.get(("ConfigMap", prefix_name(observed.name)))
    annotations = (live or {"metadata": {}})["metadata"].get("annotations") or {}
    return from_timestamp(str(annotations.get(ANNOTATION_PREFIX_SINCE, "")))


def _is_older(created: str, since: datetime | None) -> bool:
    at = from_timestamp(created)
    return at is not None and since is not None and at < since
