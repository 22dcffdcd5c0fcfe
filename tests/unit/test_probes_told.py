"""What gateways found when they tried their layers, as status tells it."""

from __future__ import annotations

from typing import Any

from cachewright.reconcile.observe_store_pods import digest_of_pods
from cachewright.reconcile.plan import plan
from cachewright.reconcile.state import Applied, StoreState
from cachewright.reconcile.status import build_status
from cachewright.stores.probes import ProbeReport, ProbeState
from tests.support.caches import cache_document
from tests.support.passes import NOW, SETTINGS, World

SEMANTIC = {
    "stores": {"redis": {"managed": {}}, "qdrant": {"external": {"url": "http://qdrant:6333"}}},
    "embedder": {"builtin": {}},
    "layers": {"exact": {}, "semantic": {"store": "Qdrant"}},
}


def conditions(probes: dict[str, ProbeReport], **parts: Any) -> dict[str, str]:
    """Return conditions as `status reason` of a cache whose pods are all ready."""
    world = World(cache_document(spec=SEMANTIC))
    world.settle()
    store = StoreState(record=world.store_record, asked=True, probes=probes)
    seen = world.look(store=store, **parts)
    status = build_status(seen, plan(seen, SETTINGS, NOW), Applied(), NOW)
    return {each["type"]: f"{each['status']} {each['reason']}" for each in status["conditions"]}


def report(state: ProbeState, age_seconds: float = 0.0, request: str | None = "") -> ProbeReport:
    """Make a report of that age."""
    return ProbeReport(state, "put: the disk is full", "a gateway", NOW.timestamp() - age_seconds, request)


def test_layers_that_are_well_make_the_object_ready() -> None:
    """And the embedder with them; a layer without a report holds the object back."""
    well = conditions({"Exact": report(ProbeState.WELL), "Semantic": report(ProbeState.WELL)})
    assert (well["Ready"], well["EmbedderReady"]) == ("True Ready", "True Ready")
    unknown = conditions({})
    assert (unknown["Ready"], unknown["EmbedderReady"]) == ("False Progressing", "Unknown Progressing")
    half = conditions({"Exact": report(ProbeState.WELL)})
    assert (half["Ready"], half["StoresReady"]) == ("False Progressing", "Unknown Progressing")


def test_a_report_from_before_a_restart_of_a_store_counts_no_more() -> None:
    """Good or bad: gateways are asked, and what they say then is told."""
    asked = {"store_pods": "pods of now"}
    for state in (ProbeState.WELL, ProbeState.STORE):
        old = conditions({each: report(state) for each in ("Exact", "Semantic")}, **asked)
        assert (old["Ready"], old["StoresReady"]) == ("False Progressing", "Unknown Progressing")
    for request in ("pods of now", None):
        reports = {each: report(ProbeState.WELL, request=request) for each in ("Exact", "Semantic")}
        assert conditions(reports, **asked)["Ready"] == "True Ready"


def test_gateways_are_asked_once_for_each_change_of_the_stores_pods() -> None:
    """Only once Redis answers, and not again while the request stands."""
    world = World(cache_document(spec=SEMANTIC))
    world.settle()

    def asked(request: str, store_pods: str) -> str | None:
        store = StoreState(record=world.store_record, asked=True, probe_request=request)
        return plan(world.look(store=store, store_pods=store_pods), SETTINGS, NOW).probe_request

    assert asked("", "pods of now") == "pods of now"
    assert asked("pods of now", "pods of now") is None
    assert asked("pods of now", "") is None
    silent = world.look(store=StoreState(error="no answer", asked=True), store_pods="pods of now")
    assert plan(silent, SETTINGS, NOW).probe_request is None


def test_a_restart_of_any_kind_changes_the_digest_of_the_pods() -> None:
    """Another pod, another container in it, a time of not being ready; pods that start are not heard of."""

    def pod(uid: str = "a", restarts: int = 0, since: str = "12:00", status: str = "True") -> dict[str, Any]:
        ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
        containers = [{"name": "qdrant", "restartCount": restarts}]
        return {
            "metadata": {"uid": uid},
            "status": {"conditions": [ready], "containerStatuses": containers},
        }

    seen = {digest_of_pods([each]) for each in (pod(), pod("b"), pod(restarts=1), pod(since="12:01"))}
    assert len(seen) == 4
    assert digest_of_pods([pod(), pod("b")]) == digest_of_pods([pod("b"), pod()])
    assert digest_of_pods([pod(), pod("new", status="False")]) == digest_of_pods([pod()])
    assert digest_of_pods([pod(status="False")]) == digest_of_pods([]) == ""


def test_a_layer_that_fails_is_told_until_its_report_is_old() -> None:
    """Whoever wrote it may be gone then, and nobody knows."""
    failing = conditions({"Exact": report(ProbeState.WELL), "Semantic": report(ProbeState.STORE)})
    assert (failing["Ready"], failing["StoresReady"]) == ("False LayerFailing", "False LayerFailing")
    assert failing["Reconciling"] == "True LayerFailing"
    old = conditions(
        {"Exact": report(ProbeState.WELL), "Semantic": report(ProbeState.STORE, age_seconds=200)}
    )
    assert (old["Ready"], old["StoresReady"]) == ("False Progressing", "Unknown Progressing")


def test_an_embedder_in_trouble_is_told_apart_from_one_that_was_replaced() -> None:
    """Both make the object unready, and the stores are not blamed."""
    for state, reason in (
        (ProbeState.EMBEDDER, "EmbedderUnready"),
        (ProbeState.MISMATCH, "EmbedderMismatch"),
    ):
        told = conditions({"Exact": report(ProbeState.WELL), "Semantic": report(state)})
        assert (told["Ready"], told["EmbedderReady"]) == (f"False {reason}", f"False {reason}")
        assert told["StoresReady"] == "True Ready"


def test_a_report_round_trips() -> None:
    """What is written is what is read."""
    for request in (None, "", "pods of now"):
        told = report(ProbeState.MISMATCH, request=request)
        assert ProbeReport.from_json(told.to_json()) == told
