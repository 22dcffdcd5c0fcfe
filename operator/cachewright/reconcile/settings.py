"""What one installation of the operator decides; frozen, built once by `controller.main`."""

from __future__ import annotations

from dataclasses import dataclass

from cachewright.render.settings import RenderSettings


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """Settings that reconcile reads."""

    render: RenderSettings
    engine_stacks: bool = False
    """Whether objects of engines' stacks may be patched: the operator has the rights then."""
    retry_store_seconds: float = 5.0
    """How soon a store that did not answer is tried again."""
    check_stores_seconds: float = 60.0
    """How soon external stores and embedders that are well are asked about again, for want of events."""
    await_probes_seconds: float = 2.0
    """How soon gateways' word is read again that is still to come; they look each second for being asked."""
    switch_seconds: float = 2.0
    """How long after a switch reached the store status tells of it: gateways serve copies from their memory
    for up to a second, and reading marks takes them a moment."""
    retry_workload_seconds: float = 10.0
    """How soon a workload that does not exist is looked for again; only its pods are watched."""
    reclaim_seconds: float = 30.0
    """How soon the store is asked again whether a keyspace is gone."""
    memory_seconds: float = 60.0
    """How soon the store is asked again how full it is, while something could be given up for room."""
    scrape_engines_seconds: float = 60.0
    """How soon an engine's pods are asked again for their metrics."""
    engine_timeout_seconds: float = 2.0
    """Longest wait for one pod of an engine, connecting included; the pods of one are asked all at once."""
    store_timeout_seconds: float = 3.0
    """Longest wait for one exchange with a store; a frozen one must not hold up other objects."""
