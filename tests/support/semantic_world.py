"""A semantic layer behind an exact one, over stores in memory, with a scripted embedder and a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cachewright.keys.context import Context
from cachewright.keys.digest import ExactQuestion, exact_digest, tenant_tag
from cachewright.keys.generations import Dependence
from cachewright.keys.record import Record
from cachewright.layers.admission import Admission, AdmissionSettings
from cachewright.layers.breaker import Breaker
from cachewright.layers.exact import ExactLayer, ExactSettings, Hit, Miss
from cachewright.layers.known_record import KnownRecord
from cachewright.layers.semantic import SemanticLayer
from cachewright.layers.semantic_keeping import Keeping
from cachewright.layers.similar import Asked, NoMatch, SemanticSettings
from cachewright.layers.vector_space import OpenSpace, SpaceSettings
from cachewright.policy.answers import KeptAnswer
from cachewright.policy.document import RoutePolicy
from cachewright.policy.question import Question, find_question
from cachewright.policy.reasons import RefusalReason, SemanticRefusal
from cachewright.stores.memory import MemoryCacheStore
from cachewright.stores.memory_vectors import MemoryVectorStore
from cachewright.stores.vectors import EntryId, Vector, VectorEntry, VectorSpace
from cachewright.stores.vectors import Hit as Candidate
from tests.support.embedders import StubEmbedder

CACHE: Final = "c" * 16
KEY: Final = bytes(range(32))
ROUTE: Final = RoutePolicy(name="chat", path="/v1/chat/completions", layers=("Exact",))
FIRST: Final = Record(CACHE, 0, 0).with_layer("Exact", "1" * 16, "binding", "t").with_layer(
    "Semantic", "5" * 16, "semantic binding", "t"
)  # fmt: skip


@dataclass
class TroubledVectors(MemoryVectorStore):
    """A vector store that can be told to fail, to hang, or to do something just before it reads a body."""

    error: Exception | None = None
    frozen: bool = False
    before_body: Callable[[], Awaitable[None]] | None = None
    damage: Callable[[bytes], bytes] = lambda body: body
    puts: int = 0

    async def obey(self) -> None:
        """Do as told."""
        if self.frozen:
            await asyncio.sleep(3600)
        if self.error is not None:
            raise self.error

    async def check(self) -> Any:
        """Do as told, then check."""
        await self.obey()
        return await MemoryVectorStore.check(self)

    async def put(self, space: VectorSpace, entry: VectorEntry) -> None:
        """Do as told, then put."""
        await self.obey()
        self.puts += 1
        await MemoryVectorStore.put(self, space, entry)

    async def search(
        self, space: VectorSpace, vector: Vector, tenant_tag: str, partition: str, now: float, limit: int = 5
    ) -> Sequence[Candidate]:
        """Do as told, then search."""
        await self.obey()
        return await MemoryVectorStore.search(self, space, vector, tenant_tag, partition, now, limit)

    async def read_body(self, space: VectorSpace, entry: EntryId, nonce: bytes) -> bytes | None:
        """Do as told, then read."""
        if self.before_body is not None:
            await self.before_body()
        body = await MemoryVectorStore.read_body(self, space, entry, nonce)
        return None if body is None else self.damage(body)


@dataclass
class World:
    """The layers of one cache."""

    now: float = 1_790_000_000.0
    settings: SemanticSettings = field(
        default_factory=lambda: SemanticSettings(CACHE, "semantic binding", 3600.0)
    )
    admission: AdmissionSettings = field(default_factory=lambda: AdmissionSettings(1000))
    threshold: float = 0.93
    mismatches: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the layers."""
        self.store = MemoryCacheStore(lambda: self.now)
        self.vectors = TroubledVectors()
        self.embedder = StubEmbedder()
        self.known = KnownRecord(CACHE)
        self.known.offer(FIRST)
        self.breakers = (
            Breaker(self._check_vectors, 5.0, lambda _: None),
            Breaker(self._check_embedder, 5.0, lambda _: None),
        )
        self.build()

    def build(self) -> None:
        """Make the layers anew, as a second gateway or with other settings."""
        self.space = OpenSpace(self.vectors, self.embedder, SpaceSettings(CACHE), self.mismatches.append)
        self.exact = ExactLayer(
            self.store,
            self.known,
            Breaker(self.store.ping, 5.0, lambda _: None),
            ExactSettings(CACHE, "binding", 1800.0, 5.0),
            KEY,
            wall_clock=lambda: self.now,
        )
        self.layer = SemanticLayer(
            self.store,
            self.vectors,
            self.embedder,
            self.space,
            self.known,
            self.breakers,
            self.settings,
            KEY,
            lambda: self.now,
        )
        admission = Admission(self.store, self.vectors, self.admission, KEY, lambda: self.now)
        self.keeping = Keeping(
            self.layer, self.known, self.store, self.vectors, admission, self.settings, KEY, lambda: self.now
        )

    async def asked(self, text: str, tenant: str = "acme", system: str = "", **context: Any) -> Asked:
        """Look a question up in the exact layer, which must not have it."""
        found, asked = await self.exactly(text, tenant, system, **context)
        assert isinstance(found, Miss)
        return asked(found)

    async def exactly(
        self, text: str, tenant: str = "acme", system: str = "", **context: Any
    ) -> tuple[Hit | Miss, Callable[[Miss], Asked]]:
        """Look a question up in the exact layer, and return how to ask the semantic one."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        body = {"model": "m", "messages": messages, "temperature": 0}
        exact = ExactQuestion(ROUTE.path, "", (), body, Context(**context))
        tag = tenant_tag(KEY, tenant.encode())
        dependence = Dependence.of(KEY, tag, exact)
        found = await self.exact.look_up(tag, exact_digest(KEY, tag, exact), dependence)
        assert isinstance(found, Hit | Miss)
        question = find_question(body, ROUTE, 1)
        assert isinstance(question, Question)
        return found, lambda miss: Asked(question, dependence, miss, self.threshold)

    async def look(self, text: str, budget_seconds: float = 5.0, **how: Any) -> Hit | NoMatch:
        """Ask the semantic layer."""
        return await self.layer.look_up(await self.asked(text, **how), budget_seconds)

    async def fetch(self, text: str, answer: str = "Because.", **how: Any) -> SemanticRefusal | None:
        """Miss, and keep what the upstream answered."""
        looked = await self.look(text, **how)
        assert isinstance(looked, NoMatch)
        assert looked.draft is not None
        kept = KeptAnswer("application/json", answer.encode())
        return await self.keeping.keep(looked.draft, kept, 1.0, None)

    async def back_fill(self, text: str) -> RefusalReason | None:
        """Hit, and keep the answer as an exact one."""
        asked = await self.asked(text)
        hit = await self.layer.look_up(asked, 5.0)
        assert isinstance(hit, Hit)
        return await self.keeping.back_fill(self.exact, asked.place, hit)

    def switch(self) -> None:
        """Move both layers to new keyspaces."""
        record = self.known.best
        assert record is not None
        record = record.with_layer("Exact", "2" * 16, "binding", "t")
        self.known.offer(record.with_layer("Semantic", "6" * 16, "semantic binding", "t"))

    async def aclose(self) -> None:
        """Stop what runs."""
        for breaker in self.breakers:
            await breaker.aclose()
        await self.space.aclose()

    async def _check_vectors(self) -> None:
        await self.vectors.check()

    async def _check_embedder(self) -> None:
        await self.embedder.embed(["?"])
