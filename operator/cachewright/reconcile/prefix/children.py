"""Which ConfigMaps an engine's settings need. Pure; called by plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from cachewright.api.inference_cache import InferenceCache
from cachewright.api.names import ANNOTATION_PREFIX_SETTINGS, ANNOTATION_PREFIX_SINCE
from cachewright.engines.files import file_words
from cachewright.reconcile.prefix.injection import injection, live_settings
from cachewright.reconcile.prefix.patching import leaving, patching
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.prefix.target import prefix_target
from cachewright.reconcile.prefix.wish import PrefixWish
from cachewright.reconcile.state import Manifest, Observed, PrefixChildren
from cachewright.reconcile.timestamps import to_timestamp
from cachewright.render.metadata import engine_name, prefix_name
from cachewright.render.prefix import build_prefix_file_config_map


def prefix_children(
    cache: InferenceCache, wish: PrefixWish | None, observed: Observed, now: datetime
) -> PrefixChildren:
    """Return what is wanted; where the engine cannot be told so, what is there stays."""
    left = leaving(wish, observed)
    if wish is None:
        return left or PrefixChildren()
    if left is None:
        return _wanted(cache, wish, observed, now)
    # First what was patched is given back: another apply to the same workload would take our words out of it.
    is_patch = wish.layer.delivery == "Patch"
    wanted = PrefixChildren() if is_patch else _wanted(cache, wish, observed, now)
    return replace(wanted, keeps=wanted.keeps | left.keeps, stamp=left.stamp, release=left.release)


def _wanted(cache: InferenceCache, wish: PrefixWish, observed: Observed, now: datetime) -> PrefixChildren:
    identity = ("ConfigMap", prefix_name(cache.metadata.name))
    note = ("ConfigMap", engine_name(cache.metadata.name))
    if wish.configuration is None:
        return PrefixChildren(
            keeps=frozenset(
                {identity, note, *(("ConfigMap", name) for name in live_settings(observed))},
            )
        )
    if wish.layer.delivery == "Patch":
        return patching(cache, wish, observed)
    if wish.layer.delivery == "Inject":
        target = prefix_target(wish, observed.prefix or PrefixSeen(), cache.metadata.name)
        return injection(cache, wish, target, observed)
    live = observed.children.get(identity)
    words = file_words(wish.engine, wish.configuration)
    child = build_prefix_file_config_map(cache, wish.file, words, wish.digest, _since(live, wish, now))
    return PrefixChildren(applies=(child,))


def _since(live: Manifest | None, wish: PrefixWish, now: datetime) -> str:
    """Say when these settings came: pods that are older were started without them."""
    annotations = (live or {"metadata": {}})["metadata"].get("annotations") or {}
    if annotations.get(ANNOTATION_PREFIX_SETTINGS) == wish.digest:
        return str(annotations.get(ANNOTATION_PREFIX_SINCE) or to_timestamp(now))
    return to_timestamp(now)
