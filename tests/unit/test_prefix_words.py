"""Words of engines survive being put aside, merged and kept in a stack's fields, whatever they are. Pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.engines.arguments import contradictions, merge_container, missing_arguments
from cachewright.engines.configuring import configure
from cachewright.engines.settings import Engine, PrefixSettings
from cachewright.engines.versions import EngineVersion
from cachewright.reconcile.prefix.patched_workload import build_patch
from cachewright.reconcile.prefix.word_places import PLACES, place_of
from cachewright.reconcile.workload import OriginalWords, original_words
from tests.support.prefix import engine_deployment

FLAGS = ("--enable-prefix-caching", "--no-enable-prefix-caching=1", "--block_size", "--block-size=8", "16")
WORDS = st.lists(
    st.text(max_size=8) | st.sampled_from((*FLAGS, "a\\nb", "\\", "'a b'", "--", "-x")), max_size=6
)
CONFIG = configure(Engine.VLLM, EngineVersion(0, 32), PrefixSettings(block_size=32, gpu_memory_share=0.8))


@given(WORDS, WORDS)
def test_what_was_put_aside_is_read_back(command: list[str], args: list[str]) -> None:
    """Ends of line, backslashes and empty words included, from the annotation of a patched template."""
    workload = engine_deployment(*args)
    workload["metadata"] |= {"namespace": "ml", "uid": "u1"}
    given_words = (command, [*args, "--more"])
    original = OriginalWords("engine", command, args)
    patch = build_patch(workload, "demo", original, given_words, "0123456789")
    template = patch["spec"]["template"]
    template["spec"]["containers"] = [{"name": "engine", "command": command, "args": [*args, "--more"]}]
    assert original_words(template) == original
    template["spec"]["containers"][0]["args"] = ["other"]
    assert original_words(template) == OriginalWords("engine", command, ["other"], is_changed=True)


@given(WORDS, WORDS)
def test_merging_does_what_it_is_for_and_once_is_enough(command: list[str], args: list[str]) -> None:
    """Nothing is missing and nothing contradicts; merged again, the words stay as they are."""
    merged = merge_container(command, args, CONFIG)
    words = [*merged[0], *merged[1]]
    assert missing_arguments(words, CONFIG) == ()
    assert contradictions(words, CONFIG) == ()
    assert merge_container(*merged, CONFIG) == merged
    kept = iter([*command, *args])
    assert all(word in kept for word in [*merged[0], *merged[1]] if word not in CONFIG.words)


@pytest.mark.parametrize("kind", sorted(PLACES.keys() - {"StatefulSet"}))
@given(args=WORDS)
def test_words_are_read_back_from_where_a_kind_keeps_them(kind: str, args: list[str]) -> None:
    """In their order, from a switch, a list or one quoted text."""
    workload = {"kind": kind, "metadata": {}, "spec": {"template": {"spec": {"containers": []}}}}
    place = place_of(workload)
    ordered = place.order(args)
    assert place.order(ordered) == ordered
    part = place.manifest("main", {"args": ordered}, {})
    (container,) = place.template({**workload, **(part or {"spec": {}})})["spec"]["containers"]
    assert container["args"] == ordered
