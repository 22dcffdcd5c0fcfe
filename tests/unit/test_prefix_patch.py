"""`delivery: Patch`: what is written to the workload, what is noted, and who wins a tug of war. Pure."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cachewright.api.conditions import ConditionType
from cachewright.engines.arguments import merge_container
from cachewright.engines.configuring import configure
from cachewright.engines.settings import Engine, PrefixSettings
from cachewright.engines.versions import EngineVersion
from cachewright.kube.merge import merged
from cachewright.reconcile.prefix.patch_note import PatchSeen, read_note
from cachewright.reconcile.prefix.seen import PrefixSeen
from cachewright.reconcile.workload import identity_of_template
from tests.support.caches import Document
from tests.support.passes import World
from tests.support.prefix import engine_deployment, prefix_cache

PATCHED = "prefix.cachewright.dev/patched"
PATCHED_FOR = "prefix.cachewright.dev/patched-for"
OURS = ["--enable-prefix-caching", "--enable-prompt-tokens-details"]
CONTAINER = 'k:{"name":"engine"}'


class PatchWorld(World):
    """A cache before one engine, whose Deployment is written to by us and by others."""

    def begin(self, *args: str) -> None:
        """Start with a settled cache and the engine as its user wrote it."""
        self.settle()
        self.live: Document = engine_deployment(*args)
        self.live["metadata"] |= {"namespace": "ml", "uid": "u1", "generation": 1, "managedFields": []}
        self.ours: Document = {}
        self.own("kubectl", "Apply", "f:image", "f:args")

    def own(self, manager: str, operation: str, *fields: str) -> None:
        """Note who owns what of the engine's container; whoever wrote last owns the words alone."""
        entries = self.live["metadata"]["managedFields"]
        for entry in entries:
            owned = entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"][CONTAINER]
            for each in fields:
                owned.pop(each, None)
        kept = [e for e in entries if (e["manager"], e["operation"]) != (manager, operation)]
        owned = {CONTAINER: {key: {} for key in fields}}
        tree = {"f:spec": {"f:template": {"f:spec": {"f:containers": owned}}}}
        entry = {"manager": manager, "operation": operation, "time": str(self.version), "fieldsV1": tree}
        self.live["metadata"]["managedFields"] = [*kept, entry]

    def writes(self, manager: str, *args: str, operation: str = "Update") -> None:
        """Somebody else sets the engine's arguments."""
        self.live["spec"]["template"]["spec"]["containers"][0]["args"] = list(args)
        self.live["metadata"]["generation"] += 1
        self.own(manager, operation, "f:args")

    @property
    def args(self) -> list[str]:
        """The engine's arguments as they are now."""
        found: list[str] = self.live["spec"]["template"]["spec"]["containers"][0]["args"]
        return found

    def run(self, *pods: Document, **seen: Any) -> str:
        """Run a pass, and carry out what it asks of the workload; return what the condition says."""
        note = read_note(self.children.get(("ConfigMap", "demo-engine")))
        live = copy.deepcopy(self.live)
        patched = PatchSeen(note, live) if note is not None else None
        has_layer = "prefix" in self.document["spec"]["layers"]
        prefix = PrefixSeen(live, tuple(pods), **seen) if has_layer else None
        planned = self.step(prefix=prefix, patched=patched)
        if planned.stamp is not None:
            wanted = copy.deepcopy(planned.stamp)
            metadata = {key: self.live["metadata"][key] for key in ("generation", "managedFields")}
            self.live = merged(self.live, self.ours, wanted)
            self.live["metadata"] |= metadata
            self.live["metadata"]["generation"] += 1
            self.ours = wanted
            for container in wanted["spec"]["template"].get("spec", {}).get("containers", []):
                self.own("cachewright", "Apply", *(f"f:{key}" for key in container if key != "name"))
        if planned.release is not None:
            self.live, self.ours = copy.deepcopy(planned.release), {}
        condition = self.condition(ConditionType.PREFIX_CACHING_READY)
        return f"{condition['status']} {condition['reason']}: {condition['message']}" if condition else ""

    def pod(self) -> Document:
        """Return a pod of the template as it is."""
        return {**copy.deepcopy(self.live["spec"]["template"]), "status": {}} | {
            "metadata": {**self.live["spec"]["template"]["metadata"], "name": "vllm-1"}
        }


@pytest.fixture
def world() -> PatchWorld:
    """An engine with its prefix cache switched off."""
    made = PatchWorld(prefix_cache(delivery="Patch", rollout="Immediate"))
    made.begin("serve", "--no-enable-prefix-caching")
    return made


def test_words_are_merged_where_they_stand() -> None:
    """What contradicts goes from command and args alike, its value too where it is in the other."""
    config = configure(Engine.VLLM, EngineVersion(0, 32), PrefixSettings(block_size=32))
    command = ["vllm", "serve", "--no-enable-prefix-caching", "--block-size"]
    given = merge_container(command, ["16", "--seed=1"], config)
    assert given == (["vllm", "serve"], ["--seed=1", OURS[0], "--block-size=32", OURS[1]])
    assert merge_container(*given, config) == given


def test_the_template_is_patched_once_and_given_back(world: PatchWorld) -> None:
    """Noted first, then patched; steady; and when the layer goes, all is as it was, ownership included."""
    before = world.pod()
    world.run(world.pod())
    assert world.args == ["serve", *OURS]
    assert world.live["metadata"]["labels"] == {PATCHED_FOR: "demo"}
    assert world.run(before).startswith("False WaitingForRollout: 1 of 1 pods")
    assert world.run(world.pod()).startswith("True Ready")
    assert identity_of_template(world.pod(), None) == identity_of_template(before, None)
    assert world.live["metadata"]["generation"] == 2

    world.change(layers={"exact": {}})
    world.run()
    assert world.args == ["serve", "--no-enable-prefix-caching"]
    assert ("ConfigMap", "demo-engine") in world.children
    world.run()
    (entry,) = world.live["metadata"]["managedFields"]
    assert entry["manager"] == "kubectl"
    owned = entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"][CONTAINER]
    assert set(owned) == {"f:image", "f:args"}
    assert world.live["metadata"]["labels"] == {}
    assert PATCHED not in world.live["spec"]["template"]["metadata"].get("annotations", {})
    world.run()
    assert ("ConfigMap", "demo-engine") not in world.children


def test_whoever_brings_a_manifest_back_again_and_again_wins(world: PatchWorld) -> None:
    """Twice it is patched anew; then it is left alone, and the manager named."""
    world.run()
    for _ in range(2):
        world.writes("argocd-controller", "serve", "--no-enable-prefix-caching", operation="Apply")
        world.run(world.pod())
        assert world.args == ["serve", *OURS]
    world.writes("argocd-controller", "serve", "--no-enable-prefix-caching", operation="Apply")
    said = world.run(world.pod())
    assert said.startswith("False TugOfWar: The words of Deployment vllm were set back 3 times by")
    assert "field manager argocd-controller" in said
    assert OURS[0] in said
    for _ in range(3):
        world.live["metadata"]["generation"] += 1
        assert world.run(world.pod()) == said
    assert world.args == ["serve", "--no-enable-prefix-caching"]

    layers = world.document["spec"]["layers"]
    world.change(layers={**layers, "prefix": {**layers["prefix"], "blockSize": 64}})
    world.run(world.pod())
    assert "--block-size=64" in world.args


def test_other_words_of_the_users_are_no_tug_of_war(world: PatchWorld) -> None:
    """A manifest that changes is merged anew as often as it changes; what it says is what is given back."""
    world.run()
    for seed in range(5):
        world.writes("kubectl-client-side-apply", "serve", f"--seed={seed}")
        stale = identity_of_template(world.pod(), None)
        world.run(world.pod())
        assert world.args == ["serve", f"--seed={seed}", *OURS]
        assert identity_of_template(world.pod(), None) == stale
    world.change(layers={"exact": {}})
    world.run()
    assert world.args == ["serve", "--seed=4"]


def test_what_a_person_undid_is_left_alone(world: PatchWorld) -> None:
    """As by `kubectl rollout undo`, at once, and until the settings change."""
    world.run()
    world.writes("kubectl", "serve", "--no-enable-prefix-caching")
    assert world.run(world.pod()).startswith("False TakenBack")
    assert world.args == ["serve", "--no-enable-prefix-caching"]


def test_words_that_are_there_already_are_left_their_owners(world: PatchWorld) -> None:
    """Nothing is patched, and so nothing has to be given back."""
    world.begin("serve", *OURS)
    assert world.run(world.pod()).startswith("True Ready")
    assert world.live["metadata"]["generation"] == 1
    assert ("ConfigMap", "demo-engine") not in world.children


def test_another_delivery_begins_when_the_words_are_given_back(world: PatchWorld) -> None:
    """One more apply to the same workload would take our words out of it, and leave it without any."""
    world.run()
    layers = world.document["spec"]["layers"]
    world.change(layers={**layers, "prefix": {**layers["prefix"], "delivery": "Inject"}})
    world.run(is_proven=True)
    assert world.args == ["serve", "--no-enable-prefix-caching"]
    world.run(is_proven=True)
    assert PATCHED_FOR not in world.live["metadata"]["labels"]
    world.run(is_proven=True)
    world.run(is_proven=True)
    annotations = world.live["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prefix.cachewright.dev/settings"].startswith("demo-prefix-")
    assert world.args == ["serve", "--no-enable-prefix-caching"]


def test_a_workload_that_may_not_be_looked_at_is_not_forgotten(world: PatchWorld) -> None:
    """Rights that come back let it be given back still."""
    world.run()
    note = read_note(world.children["ConfigMap", "demo-engine"])
    assert note is not None
    world.change(layers={"exact": {}})
    planned = world.step(patched=PatchSeen(note, None, is_hidden=True))
    assert (planned.stamp, planned.deletes) == (None, ())
    world.run()
    assert world.args == ["serve", "--no-enable-prefix-caching"]


def test_a_workload_of_another_object_is_not_patched(world: PatchWorld) -> None:
    """Two objects would undo each other's words for ever."""
    said = world.run(world.pod(), rival="other")
    assert said.startswith("False NameConflict")
    assert world.live["metadata"]["generation"] == 1
