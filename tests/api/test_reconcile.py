"""Reconcile on a real API server: what it writes, what it leaves alone, what it survives."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cachewright.kube.client import KubeApi
from cachewright.kube.protocol import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    INFERENCE_CACHES,
    POD_DISRUPTION_BUDGETS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
)
from e2e.cluster.apiserver import ApiServer
from tests.api.harness import SETTINGS, Harness
from tests.support.caches import EXTERNAL_REDIS, cache_document
from tests.support.faulty_kube import ProcessKilledError

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]

CHILDREN = {
    ("ConfigMap", "demo-record"),
    ("ConfigMap", "demo-redis"),
    ("ConfigMap", "demo-gateway"),
    ("Secret", "demo-keys"),
    ("Secret", "demo-admin"),
    ("Secret", "demo-redis"),
    ("Service", "demo-redis"),
    ("Service", "demo-gateway"),
    ("StatefulSet", "demo-redis"),
    ("Deployment", "demo-gateway"),
    ("PodDisruptionBudget", "demo-gateway"),
    ("NetworkPolicy", "demo-redis"),
}


@pytest.fixture
def harness(api_server: ApiServer, kube_api: KubeApi, namespace: str) -> Harness:
    """An operator whose passes the test runs."""
    return Harness(api_server, kube_api, namespace)


@pytest.fixture
async def settled(harness: Harness) -> Harness:
    """An object called demo with a managed store, ready and at rest."""
    harness.apply(cache_document())
    await harness.settle()
    return harness


def _secret(value: str, *, labelled: bool = True, key: str = "url") -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "my-redis",
                "labels": {"cachewright.dev/use": "true"} if labelled else {"app": "mine"},
            },
            "stringData": {key: value},
        }
    )


async def test_a_new_object_becomes_ready(settled: Harness) -> None:
    """Every child exists, status is true, and the record's copy is in the store."""
    assert set(await settled.children()) == CHILDREN
    assert (await settled.conditions())["Ready"] == "True Ready"
    status = (await settled.cache())["status"]
    assert status["observedGeneration"] == 1
    assert status["endpoint"] == f"http://demo-gateway.{settled.namespace}.svc:8080/v1"
    assert status["layers"][0]["name"] == "Exact"
    record = json.loads((await settled.child(CONFIG_MAPS, "demo-record"))["data"]["record.json"])
    copy = await settled.store.read_record(record["cacheID"])
    assert copy is not None
    assert copy.revision == record["revision"]


async def test_twenty_resyncs_without_a_change_write_nothing(settled: Harness) -> None:
    """Zero write requests, and every resourceVersion stays as it was."""
    before = await settled.versions()
    settled.kube.writes.clear()
    for _ in range(20):
        await settled.reconcile()
    assert settled.kube.writes == []
    assert await settled.versions() == before


async def test_a_restarted_operator_writes_nothing_either(settled: Harness) -> None:
    """Start observes before it acts."""
    before = await settled.versions()
    settled.restart()
    await settled.reconcile()
    assert settled.kube.writes == []
    assert await settled.versions() == before


async def test_the_users_object_carries_nothing_of_ours_but_status(settled: Harness) -> None:
    """No annotation, label or finalizer is set on it, and no field of its spec is owned by us."""
    metadata = (await settled.cache())["metadata"]
    assert "annotations" not in metadata
    assert "finalizers" not in metadata
    assert "labels" not in metadata
    ours = [entry for entry in metadata["managedFields"] if entry["manager"] == "cachewright"]
    assert [entry["subresource"] for entry in ours] == ["status"]


async def test_fields_of_other_managers_are_left_alone(settled: Harness) -> None:
    """A label, an annotation, and a status-neutral field that others own survive a change of ours."""
    extra = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo-gateway", "labels": {"team": "search"}, "annotations": {"note": "x"}},
        "spec": {"minReadySeconds": 7},
    }
    settled.kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=json.dumps(extra))
    settled.patch("icache/demo", {"spec": {"gateway": {"replicas": 3}}})
    await settled.settle()
    deployment = await settled.child(DEPLOYMENTS, "demo-gateway")
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["minReadySeconds"] == 7
    assert deployment["metadata"]["labels"]["team"] == "search"
    assert deployment["metadata"]["annotations"]["note"] == "x"


async def test_fields_of_ours_go_when_the_spec_drops_them(settled: Harness) -> None:
    """What the user adds and takes away again disappears from the child."""
    settled.patch("icache/demo", {"spec": {"gateway": {"nodeSelector": {"disk": "fast"}}}})
    await settled.settle()
    pod = (await settled.child(DEPLOYMENTS, "demo-gateway"))["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"disk": "fast"}
    settled.patch("icache/demo", {"spec": {"gateway": {"nodeSelector": None}}})
    await settled.settle()
    pod = (await settled.child(DEPLOYMENTS, "demo-gateway"))["spec"]["template"]["spec"]
    assert "nodeSelector" not in pod


async def test_nothing_is_created_under_foreground_deletion(settled: Harness) -> None:
    """With deletionTimestamp set a pass writes nothing, although children disappear one by one."""
    settled.kubectl("delete", "icache/demo", "--cascade=foreground", "--wait=false")
    assert "deletionTimestamp" in (await settled.cache())["metadata"]
    for identity in (SERVICES, DEPLOYMENTS, POD_DISRUPTION_BUDGETS):
        settled.kubectl("delete", f"{identity.plural}/demo-gateway")
    settled.kube.writes.clear()
    for _ in range(3):
        await settled.reconcile()
    assert settled.kube.writes == []
    assert set(await settled.children()) == {
        (kind, name) for kind, name in CHILDREN if name != "demo-gateway" or kind == "ConfigMap"
    }


async def test_a_namespace_that_is_being_deleted_is_left_alone(settled: Harness) -> None:
    """Children that go before their object are not missed: no error, no event, no retry."""
    settled.kubectl("delete", "namespace", settled.namespace, "--wait=false")
    settled.kubectl("delete", "service/demo-gateway", "deployment/demo-gateway")
    settled.kube.writes.clear()
    outcome = await settled.reconcile()
    assert not outcome.retry
    assert settled.kube.writes == []
    assert (await settled.conditions())["Ready"] == "True Ready"


async def test_a_crash_after_every_write_converges(harness: Harness) -> None:
    """Killed after the first, second, third … write, the next process always ends in the same state."""
    harness.apply(cache_document())
    kills = 0
    for dies_after in range(1, 40):
        harness.kubectl("delete", "icache/demo", "--cascade=background")
        for kind, name in await harness.children():
            harness.kubectl("delete", f"{kind}/{name}")
        harness.apply(cache_document())
        harness.restart()
        harness.kube.dies_after = dies_after
        try:
            await harness.settle()
        except ProcessKilledError:
            kills += 1
            harness.restart()
            await harness.settle()
        assert set(await harness.children()) == CHILDREN, dies_after
        assert (await harness.conditions())["Ready"] == "True Ready", dies_after
        if harness.kube.dies_after is not None:
            break
    assert kills >= len(CHILDREN), "each child's write was interrupted once"


@pytest.mark.parametrize(("kind", "name"), sorted(CHILDREN))
async def test_a_deleted_child_is_made_again(settled: Harness, kind: str, name: str) -> None:
    """One pass brings back whatever was deleted by hand."""
    settled.kubectl("delete", f"{kind}/{name}")
    await settled.settle()
    assert set(await settled.children()) == CHILDREN
    assert (await settled.conditions())["Ready"] == "True Ready"


@pytest.mark.parametrize(
    ("target", "patch"),
    [
        ("deployment/demo-gateway", {"spec": {"replicas": 9}}),
        ("deployment/demo-gateway", {"metadata": {"labels": {"cachewright.dev/cache": None}}}),
        ("statefulset/demo-redis", {"spec": {"replicas": 0}}),
        ("service/demo-redis", {"spec": {"selector": {"app": "evil"}}}),
        ("configmap/demo-redis", {"data": {"redis.conf": "protected-mode no"}}),
        ("configmap/demo-gateway", {"data": {"policy.json": "{}"}}),
        ("configmap/demo-record", {"data": {"record.json": "{}"}}),
        ("networkpolicy/demo-redis", {"spec": {"ingress": [{}]}}),
        ("poddisruptionbudget/demo-gateway", {"spec": {"maxUnavailable": 2}}),
    ],
)
async def test_a_child_edited_by_hand_is_mended(settled: Harness, target: str, patch: dict[str, Any]) -> None:
    """One pass undoes an edit, and the next finds nothing to do."""
    before = {identity: _essence(child) for identity, child in (await settled.children()).items()}
    settled.patch(target, patch)
    await settled.settle()
    after = {identity: _essence(child) for identity, child in (await settled.children()).items()}
    if target == "configmap/demo-record":
        # It is read back from the store's copy, and its counters go on above any that was ever seen.
        was, mended = (_record(children.pop(("ConfigMap", "demo-record"))) for children in (before, after))
        assert mended["layers"] == was["layers"]
        assert min(mended["revision"], mended["incarnation"]) > 1_700_000_000
    assert after == before


def _record(config_map: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(config_map["data"]["record.json"])
    return record


def _essence(child: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in child.items() if key not in {"metadata", "status"}}
    if "spec" in kept and isinstance(kept["spec"].get("selector"), dict):
        kept["spec"] = {**kept["spec"], "selector": dict(sorted(kept["spec"]["selector"].items()))}
    return kept | {"labels": child["metadata"]["labels"]}


async def test_a_secret_that_arrives_late_gives_one_revision(harness: Harness) -> None:
    """Without it nothing is rendered; once there, the Deployment is written once and never again."""
    harness.apply(cache_document(spec={"stores": EXTERNAL_REDIS}))
    await harness.settle()
    assert await harness.children() == {}
    assert (await harness.conditions())["Ready"] == "False SecretNotFound"
    assert (await harness.conditions())["Stalled"] == "True SecretNotFound"
    harness.kubectl("apply", "-f", "-", stdin=_secret("redis://late:6379/0"))
    await harness.settle()
    assert (await harness.child(DEPLOYMENTS, "demo-gateway"))["metadata"]["generation"] == 1
    assert (await harness.conditions())["Ready"] == "True Ready"
    assert "Stalled" not in await harness.conditions()
    assert harness.store_urls[-1] == "redis://late:6379/0"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("delete", "secret/my-redis"), "SecretNotFound"),
        (("label", "secret/my-redis", "cachewright.dev/use-"), "SecretUnlabelled"),
        (("label", "secret/my-redis", "cachewright.dev/use=operator", "--overwrite"), "SecretUnlabelled"),
        (("patch", "secret/my-redis", "--type=merge", '--patch={"data":{"url":""}}'), "SecretNotFound"),
        (("patch", "secret/my-redis", "--type=merge", '--patch={"data":{"url":null}}'), "SecretNotFound"),
    ],
)
async def test_an_unusable_secret_keeps_the_last_good_and_says_so(
    harness: Harness, change: tuple[str, ...], reason: str
) -> None:
    """Deleted, unlabelled or emptied: what runs stays as it is, the condition names the Secret."""
    harness.kubectl("apply", "-f", "-", stdin=_secret("redis://one:6379/0"))
    harness.apply(cache_document(spec={"stores": EXTERNAL_REDIS}))
    await harness.settle()
    before = {key: value for key, value in (await harness.versions()).items() if key[0] != "InferenceCache"}
    harness.kubectl(*change)
    harness.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    await harness.settle()
    assert (await harness.conditions())["Ready"] == f"False {reason}"
    message = (await harness.cache())["status"]["conditions"][0]["message"]
    assert "my-redis" in message
    after = {key: value for key, value in (await harness.versions()).items() if key[0] != "InferenceCache"}
    assert after == before


async def test_a_foreign_object_under_our_name_is_refused(harness: Harness) -> None:
    """A Service of somebody else's is not taken over, and nothing else is written beside it."""
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "demo-gateway"},
        "spec": {"selector": {"app": "mine"}, "ports": [{"port": 80}]},
    }
    harness.kubectl("apply", "-f", "-", stdin=json.dumps(foreign))
    before = (await harness.child(SERVICES, "demo-gateway"))["metadata"]["resourceVersion"]
    harness.apply(cache_document())
    await harness.settle()
    assert await harness.children() == {}
    assert (await harness.conditions())["Stalled"] == "True NameConflict"
    assert (await harness.child(SERVICES, "demo-gateway"))["metadata"]["resourceVersion"] == before
    harness.kubectl("delete", "service/demo-gateway")
    await harness.settle()
    assert (await harness.conditions())["Ready"] == "True Ready"


async def test_an_orphan_of_ours_is_adopted(settled: Harness) -> None:
    """Deleted with its children kept and created again, the object takes them up: no pod restarts."""
    before = (await settled.child(STATEFUL_SETS, "demo-redis"))["metadata"]["uid"]
    settled.kubectl("delete", "icache/demo", "--cascade=orphan", "--wait=false")
    # The garbage collector would take off the owner references; there is none in this tier.
    for kind, name in await settled.children():
        settled.patch(f"{kind}/{name}", {"metadata": {"ownerReferences": None}})
    settled.patch("icache/demo", {"metadata": {"finalizers": None}})
    assert await settled.api.get(INFERENCE_CACHES, settled.namespace, "demo") is None
    settled.apply(cache_document())
    await settled.settle()
    assert (await settled.conditions())["Ready"] == "True Ready"
    after = await settled.child(STATEFUL_SETS, "demo-redis")
    assert after["metadata"]["uid"] == before
    assert after["metadata"]["ownerReferences"][0]["uid"] == (await settled.cache())["metadata"]["uid"]


async def test_suspend_changes_nothing_and_says_so(settled: Harness) -> None:
    """A bump and a deleted child wait until the object is resumed."""
    settled.patch("icache/demo", {"spec": {"suspend": True, "model": {"version": "2"}}})
    settled.kubectl("delete", "poddisruptionbudget/demo-gateway")
    before = {key: value for key, value in (await settled.versions()).items() if key[0] != "InferenceCache"}
    await settled.settle()
    assert (await settled.conditions())["Ready"] == "True Suspended"
    after = {key: value for key, value in (await settled.versions()).items() if key[0] != "InferenceCache"}
    assert after == before
    settled.patch("icache/demo", {"spec": {"suspend": False}})
    await settled.settle()
    assert set(await settled.children()) == CHILDREN
    assert (await settled.cache())["status"]["layers"][0]["keyspace"].endswith("-2")


async def test_no_secret_value_leaves_its_secret(harness: Harness) -> None:
    """Neither generated passwords nor the user's URL stand in any other object, status or event."""
    harness.kubectl("apply", "-f", "-", stdin=_secret("redis://:SEKRIT-VALUE@one:6379/0"))
    harness.apply(cache_document("outside", spec={"stores": EXTERNAL_REDIS}))
    harness.apply(cache_document())
    await harness.settle("outside")
    await harness.settle()
    values = ["SEKRIT-VALUE"]
    for name in ("demo-keys", "demo-admin", "demo-redis", "outside-keys"):
        data = (await harness.child(SECRETS, name))["data"]
        values += [base64.b64decode(value).decode() for value in data.values()]
    events = harness.kubectl("get", "events.events.k8s.io", "-o", "json")
    visible = (
        await harness.everything_but_secrets() + await harness.everything_but_secrets("outside") + events
    )
    for value in values:
        assert value.strip() not in visible
        assert base64.b64encode(value.encode()).decode() not in visible


async def test_a_bump_moves_the_record_and_restarts_no_gateway(settled: Harness) -> None:
    """New id, new incarnation, revision +1, the store's copy too; the Deployment keeps its generation."""
    before = json.loads((await settled.child(CONFIG_MAPS, "demo-record"))["data"]["record.json"])
    settled.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    await settled.settle()
    after = json.loads((await settled.child(CONFIG_MAPS, "demo-record"))["data"]["record.json"])
    assert after["revision"] == before["revision"] + 1
    assert after["layers"]["Exact"]["keyspace"] != before["layers"]["Exact"]["keyspace"]
    assert (await settled.child(DEPLOYMENTS, "demo-gateway"))["metadata"]["generation"] == 1
    copy = await settled.store.read_record(after["cacheID"])
    assert copy is not None
    assert copy.revision == after["revision"]
    assert (await settled.cache())["status"]["layers"][0]["keyspace"] == after["layers"]["Exact"]["keyspace"]


async def test_a_switch_is_told_when_no_copy_can_be_served_any_more(settled: Harness) -> None:
    """Status follows the store's copy by as long as gateways may answer from their memory."""
    before = (await settled.cache())["status"]
    settled.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    outcome = await settled.reconcile()
    assert outcome.requeue_after_seconds == pytest.approx(SETTINGS.switch_seconds)
    settled.monotonic += SETTINGS.switch_seconds / 2
    outcome = await settled.reconcile()
    assert outcome.requeue_after_seconds == pytest.approx(SETTINGS.switch_seconds / 2)
    assert (await settled.cache())["status"] == before
    settled.monotonic += SETTINGS.switch_seconds / 2
    await settled.reconcile()
    cache = await settled.cache()
    assert cache["status"]["observedGeneration"] == cache["metadata"]["generation"]
    assert (await settled.conditions())["RotationComplete"] == "True Switched"


async def test_a_concurrent_writer_of_the_record_loses_nothing(settled: Harness) -> None:
    """The record is replaced only at the version that was read; a conflict is retried from a fresh look."""
    config_map = await settled.child(CONFIG_MAPS, "demo-record")
    record = json.loads(config_map["data"]["record.json"])
    settled.patch("icache/demo", {"spec": {"model": {"version": "2"}}})
    other = {**record, "revision": record["revision"] + 5, "incarnation": record["incarnation"] + 5}
    racing = settled.kube.replace

    async def replace_late(manifest: dict[str, Any]) -> dict[str, Any]:
        settled.kube.replace = racing  # type: ignore[method-assign]
        settled.patch("configmap/demo-record", {"data": {"record.json": json.dumps(other)}})
        return await racing(manifest)

    settled.kube.replace = replace_late  # type: ignore[method-assign]
    outcome = await settled.reconcile()
    assert outcome.retry
    assert (await settled.conditions())["Ready"] == "False ApiUnavailable"
    await settled.settle()
    after = json.loads((await settled.child(CONFIG_MAPS, "demo-record"))["data"]["record.json"])
    assert after["revision"] == other["revision"] + 1
    assert after["incarnation"] == other["incarnation"] + 1


async def test_a_large_spec_is_accepted(harness: Harness) -> None:
    """A spec near its bounds is reconciled; nothing of ours copies it into an annotation."""
    routes = [
        {"name": f"route-{number}", "match": {"path": "/" + "p" * 250}, "layers": ["Exact"]}
        for number in range(32)
    ]
    aliases = [f"{number}-" + "a" * 250 for number in range(32)]
    model = {"name": "demo-model", "version": "1", "aliases": aliases}
    harness.apply(cache_document(spec={"routes": routes, "model": model}))
    await harness.settle()
    assert (await harness.conditions())["Ready"] == "True Ready"
