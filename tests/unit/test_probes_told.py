"""What gateways found when they tried their layers, as status tells it."""

from __future__ import annotations

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


def conditions(probes: dict[str, ProbeReport]) -> dict[str, str]:
    """Return conditions as `status reason` of a cache whose pods are all ready."""
    world = World(cache_document(spec=SEMANTIC))
    world.settle()
    store = StoreState(record=world.store_record, asked=True, probes=probes)
    seen = world.look(store=store)
    status = build_status(seen, plan(seen, SETTINGS, NOW), Applied(), NOW)
    return {each["type"]: f"{each['status']} {each['reason']}" for each in status["conditions"]}


def report(state: ProbeState, age_seconds: float = 0.0) -> ProbeReport:
    """Make a report of that age."""
    return ProbeReport(state, "put: the disk is full", "a gateway", NOW.timestamp() - age_seconds)


def test_layers_that_are_well_make_the_object_ready() -> None:
    """And the embedder with them; without a report nobody knows of it."""
    well = conditions({"Exact": report(ProbeState.WELL), "Semantic": report(ProbeState.WELL)})
    assert (well["Ready"], well["EmbedderReady"]) == ("True Ready", "True Ready")
    unknown = conditions({})
    assert (unknown["Ready"], unknown["EmbedderReady"]) == ("True Ready", "Unknown Progressing")


def test_a_layer_that_fails_is_told_until_its_report_is_old() -> None:
    """Whoever wrote it may be gone then."""
    failing = conditions({"Semantic": report(ProbeState.STORE)})
    assert (failing["Ready"], failing["StoresReady"]) == ("False LayerFailing", "False LayerFailing")
    assert failing["Reconciling"] == "True LayerFailing"
    old = conditions({"Semantic": report(ProbeState.STORE, age_seconds=200)})
    assert (old["Ready"], old["StoresReady"]) == ("True Ready", "True Ready")


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
    told = report(ProbeState.MISMATCH)
    assert ProbeReport.from_json(told.to_json()) == told
