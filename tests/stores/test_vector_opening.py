"""From a URL to a vector store, and what that costs those who use none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cachewright.errors import InvalidInput
from cachewright.stores.memory_vectors import MemoryVectorStore
from cachewright.stores.qdrant_vectors import QdrantVectorStore
from cachewright.stores.vector_opening import open_vector_store

CLIENTS = ("numpy", "qdrant_client", "httpx", "grpc", "psycopg")


def test_the_scheme_chooses_the_store() -> None:
    """Nothing is connected yet, so an address where nobody listens is fine."""
    memory = open_vector_store("memory://?max_bytes=1000")
    assert isinstance(memory, MemoryVectorStore)
    assert memory.max_bytes == 1000
    assert isinstance(open_vector_store("https://qdrant.example:6333", api_key="key"), QdrantVectorStore)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "qdrant",
        "redis://host:6379",
        "memory://?max_bytes=0",
        "memory://host",
        "http://",
        "http://:6333",
        "https://user:secret@host",
        "https://host?secret=secret",
    ],
)
def test_a_url_that_is_not_one_is_refused(url: str) -> None:
    """With what it should look like, and never with its own text: part of it may be a password."""
    with pytest.raises(InvalidInput) as refused:
        open_vector_store(url)
    assert "secret" not in str(refused.value)


def test_an_authority_that_is_no_pem_is_refused(tmp_path: pytest.TempPathFactory) -> None:
    """At once, not at the first call."""
    with pytest.raises(InvalidInput, match="PEM"):
        open_vector_store("https://host", ca_file=f"{tmp_path}/missing")


def test_nothing_is_imported_before_it_is_used() -> None:
    """A gateway with exact alone carries neither numpy nor a vector store's client."""
    code = (
        "import sys; import cachewright.stores.vectors, cachewright.stores.vector_opening;"
        f"print([name for name in {CLIENTS} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
