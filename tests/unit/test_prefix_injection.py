"""`delivery: Inject`: from the workload and its pods to settings, stamps and what is said. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from cachewright.api.conditions import ConditionType
from cachewright.engines.configuring import configure
from cachewright.engines.injection import refusal
from cachewright.engines.settings import Engine, PrefixSettings
from cachewright.engines.versions import EngineVersion
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.references import what_counts
from cachewright.reconcile.state import Plan
from cachewright.reconcile.workload import identity_of_template
from tests.support.caches import Document
from tests.support.passes import World
from tests.support.prefix import engine_deployment, engine_template, prefix_cache

SETTINGS = "prefix.cachewright.dev/settings"
STAMPS = "prefix.cachewright.dev/stamps"
REACHED = "prefix.cachewright.dev/reached"

NAME = "demo-prefix-2507560b4b"
"""Frozen: another name for the same words would roll every engine that has them."""


def workload(*args: str, stamp: str = "") -> Document:
    """Return the engine's Deployment as the API server gives it."""
    made = engine_deployment(*args)
    made["metadata"] |= {"namespace": "ml", "uid": "u1"}
    if stamp:
        made["spec"]["template"]["metadata"]["annotations"] = {SETTINGS: stamp}
    return made


def pod(*args: str, stamp: str = "") -> Document:
    """Return a pod of it."""
    annotations = {SETTINGS: stamp} if stamp else {}
    spec = engine_template(*args)["spec"]
    return {
        "metadata": {"name": "vllm-1", "labels": {"app": "vllm"}, "annotations": annotations},
        "spec": spec,
    }


WORDS = ["serve", "--enable-prefix-caching", "--enable-prompt-tokens-details"]


class EngineWorld(World):
    """A cache before one engine."""

    def see(self, *pods: Document, stamp: str = "", **seen: Any) -> tuple[Plan, str]:
        """Run a pass; return its plan and what the condition says."""
        args = seen.pop("args", ["serve"])
        found = PrefixSeen(workload(*args, stamp=stamp), tuple(pods), **seen)
        planned = self.step(prefix=found)
        condition = self.condition(ConditionType.PREFIX_CACHING_READY)
        return planned, f"{condition['status']} {condition['reason']}: {condition['message']}"

    @property
    def settings(self) -> dict[str, Document]:
        """Return the annotations of each ConfigMap of settings."""
        return {
            name: child["metadata"]["annotations"]
            for (_, name), child in self.children.items()
            if name.startswith("demo-prefix-")
        }


def engine(**layer: Any) -> EngineWorld:
    """Return a settled cache whose engine is to be told."""
    world = EngineWorld(prefix_cache(**layer))
    world.settle()
    return world


def test_settings_come_in_steps() -> None:
    """Written, proved, named by the template, and in the pods; nothing is stamped before the proof."""
    world = engine(rollout="Immediate")
    planned, said = world.see(pod("serve"))
    assert (planned.stamp, said.partition(":")[0]) == (None, "False Progressing")
    assert STAMPS not in world.settings[NAME]
    planned, said = world.see(pod("serve"), is_proven=False)
    assert (planned.stamp, said.partition(":")[0]) == (None, "False PolicyAPIUnavailable")
    planned, said = world.see(pod("serve"), is_proven=False, proof_error="exceeded quota")
    assert said.startswith("False PolicyUnproven: The pod that was to prove")
    planned, said = world.see(pod("serve"), is_proven=True)
    assert world.settings[NAME][STAMPS] == "Deployment/vllm"
    assert planned.stamp is not None
    assert planned.stamp["metadata"] == {"name": "vllm", "namespace": "ml", "uid": "u1"}
    planned, said = world.see(pod("serve"), stamp=NAME)
    assert (planned.stamp, said.partition(":")[0]) == (None, "False WaitingForRollout")
    assert world.settings[NAME][REACHED] == "true"
    planned, said = world.see(pod(*WORDS, stamp=NAME), stamp=NAME)
    assert said.startswith("True Ready")
    assert not planned.writes


def test_a_pod_that_names_settings_and_lacks_them_is_told() -> None:
    """The policy was away when it was made."""
    world = engine(rollout="Immediate")
    world.see(is_proven=True)
    world.see(is_proven=True)
    _, said = world.see(pod("serve", stamp=NAME), stamp=NAME)
    assert said.startswith("False FlagMissing: Pod vllm-1")


def test_what_was_taken_back_is_left_alone_until_settings_change() -> None:
    """Neither the operator nor the policy names those settings again."""
    world = engine(rollout="Immediate")
    world.see()
    world.see(is_proven=True)
    world.see(stamp=NAME)
    planned, said = world.see(pod("serve"))
    assert (planned.stamp, said.partition(":")[0]) == (None, "False TakenBack")
    assert STAMPS not in world.settings[NAME]
    layers = world.document["spec"]["layers"]
    world.change(layers={**layers, "prefix": {**layers["prefix"], "blockSize": 64}})
    world.see(pod("serve"))
    planned, said = world.see(pod("serve"), is_proven=True)
    assert planned.stamp is not None
    assert planned.stamp["spec"]["template"]["metadata"]["annotations"][SETTINGS] != NAME


def test_former_settings_stay_for_what_names_them_and_five_more() -> None:
    """A rollout that is undone finds its settings; they do not pile up for ever."""
    world = engine()
    world.see()
    layers = world.document["spec"]["layers"]
    for size in range(1, 12):
        world.change(layers={**layers, "prefix": {**layers["prefix"], "blockSize": size}})
        world.see(pod("serve", stamp=NAME))
    assert NAME in world.settings
    assert len(world.settings) == 7
    world.change(layers={"exact": {}})
    world.settle()
    assert world.settings == {}


def test_another_objects_settings_are_not_replaced_unless_they_are_gone() -> None:
    """The template names those of another object, which is there or is not."""
    world = engine(rollout="Immediate")
    world.see(stamp="other-prefix-0123456789")
    planned, said = world.see(pod("serve"), stamp="other-prefix-0123456789", is_proven=True, rival="other")
    assert (planned.stamp, said.partition(":")[0]) == (None, "False NameConflict")
    planned, _ = world.see(pod("serve"), stamp="other-prefix-0123456789")
    assert planned.stamp is not None


@pytest.mark.parametrize(
    ("command", "args", "said"),
    [
        ([], [], "has neither command nor args"),
        (["/bin/sh", "-c"], ["vllm serve"], "runs a shell"),
        ([], ["bash", "run.sh"], "add to its line: --enable-prefix-caching"),
        (["python3", "-c", "x"], [], "runs a shell"),
        (["python3", "-m", "x"], ["push", "--crash", "-cc"], ""),
    ],
)
def test_a_command_line_that_would_break_is_refused(command: list[str], args: list[str], said: str) -> None:
    """With what to write instead."""
    config = configure(Engine.VLLM, EngineVersion(0, 32), PrefixSettings())
    found = refusal(command, args, Engine.VLLM, config)
    assert said in found
    assert bool(said) is bool(found)


def test_a_shape_that_cannot_be_added_to_is_told_and_nothing_is_written() -> None:
    """Also where nobody knows the engine among several containers."""
    world = engine(rollout="Immediate")
    planned, said = world.see(args=["sh", "-c", "x"])
    assert said.startswith("False FlagNotInjectable: Container engine of Deployment vllm runs a shell")
    assert not planned.writes
    assert world.settings == {}


def test_an_edited_pod_is_to_a_fence_what_it_was_before() -> None:
    """What was put aside counts, whatever characters it has; but the watch sees the edit."""
    words = ["serve", "a\\n", "b\nc", "\\\\"]
    before = pod(*words, stamp=NAME)
    after = pod(*words, *WORDS[1:], stamp=NAME)
    aside = ["engine", "0", *(word.replace("\\", "\\\\").replace("\n", "\\n") for word in words)]
    after["metadata"]["annotations"]["prefix.cachewright.dev/original"] = "\n".join(aside)
    assert identity_of_template(after, None) == identity_of_template(before, None)
    assert identity_of_template(pod(*words, *WORDS[1:]), None) != identity_of_template(before, None)
    assert what_counts("Pod", after) != what_counts("Pod", before)
