"""What one installation of the operator decides; frozen, built once by `controller.main`."""

from __future__ import annotations

from dataclasses import dataclass

from cachewright.render.settings import RenderSettings


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """Settings that reconcile reads."""

    render: RenderSettings
    retry_store_seconds: float = 5.0
    """How soon a store that did not answer is tried again."""
    store_timeout_seconds: float = 3.0
    """Longest wait for one exchange with a store; a frozen one must not hold up other objects."""
