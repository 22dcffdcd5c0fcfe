"""Questions that are nearly the same, and when a gateway has kept an answer for them; for demo and tests."""

from __future__ import annotations

from typing import Final

from e2e.client import ChatClient
from e2e.kubectl import wait_for

QUESTION: Final = "What is the speed limit in zone 3 of the city?"
PARAPHRASE: Final = "What's the speed limit in zone 3 of the city?"
OTHER_NUMBER: Final = "What is the speed limit in zone 4 of the city?"
"""As near to the question as many a paraphrase, and another question."""

EMBEDDER: Final = "all-MiniLM-L6-v2"
"""Name of the built-in embedder in requests for vectors."""

KEPT: Final = "cachewright_semantic_stored_total"
KEEP_SECONDS: Final = 60.0


def kept(management: ChatClient) -> float:
    """Return how many answers this pod has kept for similar questions."""
    lines = management.request("GET", "/metrics").body.decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{KEPT} "))


def wait_until_kept(management: ChatClient, before: float) -> None:
    """Wait until this pod has kept more than before; an answer is on its way to its client before that."""
    wait_for("an answer kept", lambda: kept(management) > before, KEEP_SECONDS)
