"""Fixtures: the real built-in model, loaded once, and an HTTP server whose answers a test writes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cachewright.embedders.builtin import BuiltinEmbedder, BuiltinModel
from tests.embedders.server import EmbeddingServer


@pytest.fixture(scope="session")
def builtin_model() -> BuiltinModel:
    """Return the real model."""
    return BuiltinModel()


@pytest.fixture
async def builtin(builtin_model: BuiltinModel) -> AsyncIterator[BuiltinEmbedder]:
    """Return the real model behind its queue."""
    embedder = BuiltinEmbedder(builtin_model)
    yield embedder
    await embedder.aclose()


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    """Return a running server on loopback."""
    started = EmbeddingServer()
    await started.start()
    yield started
    await started.aclose()
