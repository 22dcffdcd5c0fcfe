"""The built-in model: what its vectors are, what has none, and where the work is done."""

from __future__ import annotations

import asyncio
import math
import threading
from pathlib import Path

import numpy as np
import pytest

from cachewright.embedders import builtin as module
from cachewright.embedders.builtin import (
    THREAD_NAME,
    BuiltinEmbedder,
    BuiltinModel,
)
from cachewright.embedders.protocol import Embedding
from cachewright.errors import EmbedderOverloaded, EmbedderUnavailable
from cachewright.keys.embedding_identity import BUILTIN


def cosine(one: Embedding, other: Embedding) -> float:
    """Compare two vectors of length 1."""
    return float(np.dot(np.frombuffer(one.vector, "f4"), np.frombuffer(other.vector, "f4")))


class Recording(BuiltinModel):
    """Notes the thread of each call, and waits for leave where a test wants so."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()
        self.leave = threading.Event()
        self.leave.set()
        self.calls = 0

    def embed(self, text: str) -> Embedding:
        """Embed one text."""
        self.threads.add(threading.current_thread().name)
        self.calls += 1
        self.leave.wait()
        return super().embed(text)


async def test_paraphrases_are_near_and_other_questions_far(builtin: BuiltinEmbedder) -> None:
    """The real model tells a paraphrase from another question."""
    asked, same, other = await builtin.embed(
        [
            "How do I reset my password?",
            "What is the way to reset a password?",
            "What does a kilo of tea cost?",
        ]
    )
    assert cosine(asked, same) > 0.85
    assert cosine(asked, other) < 0.3


async def test_vectors_have_the_declared_length_and_norm(builtin: BuiltinEmbedder) -> None:
    """What is stored is what the identity says: 384 numbers, finite, of length 1."""
    (made,) = await builtin.embed(["Which port does the gateway listen on?"])
    assert len(made.vector) == BUILTIN.dimensions == builtin.identity.dimensions
    assert all(map(math.isfinite, made.vector))
    assert cosine(made, made) == pytest.approx(1, abs=1e-5)
    assert made.n_tokens == 10
    assert made.is_embeddable


async def test_the_vector_of_a_text_does_not_depend_on_its_neighbours(builtin: BuiltinEmbedder) -> None:
    """A batch gives the very vectors that its texts give alone, in their order."""
    texts = ["a", "a much longer text than the first one, with commas", "b"]
    together = await builtin.embed(texts)
    alone = [(await builtin.embed([text]))[0] for text in texts]
    assert [made.vector for made in together] == [made.vector for made in alone]


@pytest.mark.parametrize("text", ["all good 😀", "数据库在哪里", "ສະບາຍດີ"])
async def test_a_text_with_an_unknown_token_says_so(builtin: BuiltinEmbedder, text: str) -> None:
    """Two emoji or foreign words would have equal vectors, so such a text must not be matched."""
    (made,) = await builtin.embed([text])
    assert made.has_unknown
    assert not made.is_embeddable


async def test_a_text_beyond_the_window_gets_no_vector(builtin: BuiltinEmbedder) -> None:
    """Nothing is cut off: 254 words fit between the special tokens, 255 do not."""
    fits, beyond, endless = await builtin.embed(["word " * 254, "word " * 255, "x" * 1_000_000])
    assert (fits.n_tokens, fits.beyond_window, len(fits.vector)) == (256, False, 384)
    assert (beyond.n_tokens, beyond.beyond_window, len(beyond.vector)) == (257, True, 0)
    assert endless.beyond_window


async def test_a_difference_at_the_end_of_a_long_text_shows(builtin: BuiltinEmbedder) -> None:
    """A text that nearly fills the window is embedded to its last word."""
    one, other = await builtin.embed([f"{'word ' * 250}{end}" for end in ("Paris", "dead")])
    assert one.vector != other.vector


async def test_no_work_is_done_on_the_event_loop() -> None:
    """Tokenizer and model run in the embedder's own thread alone."""
    model = Recording()
    embedder = BuiltinEmbedder(model)
    await embedder.embed(["one", "two"])
    await embedder.aclose()
    assert len(model.threads) == 1
    assert model.threads.pop().startswith(THREAD_NAME)


async def test_a_full_queue_refuses_at_once_and_recovers() -> None:
    """Waiting texts are bounded; the next ones are turned away instead of piling up."""
    model = Recording()
    model.leave.clear()
    embedder = BuiltinEmbedder(model, most_waiting=2)
    first = asyncio.ensure_future(embedder.embed(["one", "two"]))
    await asyncio.sleep(0)
    with pytest.raises(EmbedderOverloaded):
        await embedder.embed(["three"])
    model.leave.set()
    assert len(await first) == 2
    assert len(await embedder.embed(["three"])) == 1
    await embedder.aclose()


async def test_a_cancelled_text_is_never_computed() -> None:
    """Whoever gave up costs the others nothing."""
    model = Recording()
    model.leave.clear()
    embedder = BuiltinEmbedder(model)
    first = asyncio.ensure_future(embedder.embed(["one"]))
    second = asyncio.ensure_future(embedder.embed(["two"]))
    await asyncio.sleep(0)
    second.cancel()
    model.leave.set()
    await first
    await embedder.embed(["three"])
    assert model.calls == 2
    await embedder.aclose()


async def test_a_closed_embedder_says_so(builtin_model: BuiltinModel) -> None:
    """After the end there is an error and no hang."""
    embedder = BuiltinEmbedder(builtin_model)
    await embedder.aclose()
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(["one"])


def test_another_tokenizer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not the pinned one would make another space under the same name."""
    other = tmp_path / "tokenizer.json"
    other.write_bytes(module.TOKENIZER.read_bytes() + b" ")
    monkeypatch.setattr(module, "TOKENIZER", other)
    with pytest.raises(EmbedderUnavailable, match=r"tokenizer\.json is not the file"):
        BuiltinModel()
