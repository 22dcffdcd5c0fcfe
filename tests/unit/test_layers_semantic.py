"""The semantic layer: what it serves, what never, and that no trouble is more than a reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cachewright.errors import (
    EmbedderMismatch,
    EmbedderOverloaded,
    EmbedderRefused,
    EmbedderUnavailable,
    StoreRefused,
    StoreUnavailable,
)
from cachewright.keys.context import Document
from cachewright.keys.digest import tenant_tag
from cachewright.keys.entry_link import unpack_links
from cachewright.keys.generations import tenant_counter
from cachewright.layers.admission import AdmissionSettings
from cachewright.layers.exact import Hit
from cachewright.layers.similar import NoMatch, Sample
from cachewright.layers.ticket import links_of
from cachewright.policy.answers import KeptAnswer
from cachewright.policy.guard import GuardReason
from cachewright.policy.reasons import SemanticReason, SemanticRefusal
from tests.support.embedders import one_direction
from tests.support.semantic_world import KEY, World
from tests.support.vectors import near, random_vector

QUESTION = "How do I reset the password of my account?"
PARAPHRASE = "How can I reset the password of my account?"
OTHER = "What is the capital of France?"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Layers over empty stores."""
    made = World()
    yield made
    await made.aclose()


def reason_of(looked: Hit | NoMatch) -> SemanticReason:
    """Return why nothing was found; fails for a hit."""
    assert isinstance(looked, NoMatch)
    return looked.reason


def same_words(world: World) -> None:
    """Let the embedder give one vector for the question and its paraphrase."""
    world.embedder.vector_of = lambda text: random_vector("q" if text in (QUESTION, PARAPHRASE) else text)


async def test_a_paraphrase_gets_the_answer(world: World) -> None:
    """With its age, what is left of its life, and how similar it was."""
    same_words(world)
    assert await world.fetch(QUESTION) is None
    world.now += 100
    hit = await world.look(PARAPHRASE)
    assert isinstance(hit, Hit)
    assert hit.entry.body == b"Because."
    assert (hit.age_seconds, hit.ttl_seconds) == (100, 3500)
    assert hit.similarity == pytest.approx(1)
    assert hit.entry.upstream_seconds == 1


async def test_an_unrelated_question_misses(world: World) -> None:
    """However few entries there are."""
    await world.fetch(QUESTION)
    assert reason_of(await world.look(OTHER)) is SemanticReason.BELOW


@pytest.mark.parametrize(("cosine", "hits"), [(0.94, True), (0.92, False)])
async def test_the_threshold_decides(world: World, cosine: float, hits: bool) -> None:
    """Just above it is served, just below it is not."""
    vector = random_vector("q")
    world.embedder.vector_of = lambda text: near(vector, cosine) if text == PARAPHRASE else vector
    await world.fetch(QUESTION)
    assert isinstance(await world.look(PARAPHRASE), Hit) is hits


async def test_nothing_is_embedded_for_an_empty_partition(world: World) -> None:
    """The first question of a partition costs the embedder nothing on the request's path."""
    assert reason_of(await world.look(QUESTION)) is SemanticReason.EMPTY
    assert world.embedder.texts == []
    await world.fetch(QUESTION)
    assert QUESTION in world.embedder.texts


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "globex"},
        {"system": "Answer in French."},
        {"role": "admin"},
        {"arm": "b"},
        {"template": "v2"},
        {"documents": (Document("a"),)},
    ],
)
async def test_all_but_the_question_is_exact(world: World, other: dict[str, Any]) -> None:
    """Even with an embedder that finds everything the same."""
    world.embedder.vector_of = one_direction
    await world.fetch(QUESTION)
    assert reason_of(await world.look(QUESTION + " Please.", **other)) is SemanticReason.EMPTY
    await world.fetch(OTHER, **other)
    hit = await world.look(QUESTION + " Please.", **other)
    assert not isinstance(hit, Hit) or hit.entry.body == b"Because."


async def test_the_guard_refuses_and_the_next_best_is_served(world: World) -> None:
    """Every refusal is named."""
    world.embedder.vector_of = one_direction
    await world.fetch("What does a plan with 2 GB of memory cost?", "ten")
    looked = await world.look("What does a plan with 4 GB of memory cost?")
    assert isinstance(looked, NoMatch)
    assert (looked.reason, looked.refused) == (SemanticReason.GUARD, (GuardReason.NUMBERS,))
    assert await world.fetch("What does a plan with 4 GB of memory cost?", "twenty") is None
    hit = await world.look("What does the plan with 4 GB of memory cost?")
    assert isinstance(hit, Hit)
    assert hit.entry.body == b"twenty"


async def test_a_language_without_words_is_left_to_the_exact_layer(world: World) -> None:
    """Unless the policy says otherwise, and then the rest of the guard still holds."""
    question = "Wachtwoord opnieuw instellen alstublieft"
    looked = await world.look(question)
    assert reason_of(looked) is SemanticReason.LANGUAGE
    assert isinstance(looked, NoMatch)
    assert looked.draft is None
    world.settings = replace(world.settings, other_languages=True)
    world.build()
    world.embedder.vector_of = one_direction
    await world.fetch(question)
    hit = await world.look(question.replace("alstublieft", "svp"))
    assert isinstance(hit, Hit)


async def test_a_question_that_cannot_be_embedded_is_not_kept(world: World) -> None:
    """Neither when it is looked up nor when it is to be stored."""
    world.embedder.unembeddable = lambda text: text == OTHER
    assert await world.fetch(OTHER) is SemanticRefusal.NOT_EMBEDDABLE
    await world.fetch(QUESTION)
    looked = await world.look(OTHER)
    assert reason_of(looked) is SemanticReason.NOT_EMBEDDABLE
    assert isinstance(looked, NoMatch)
    assert looked.draft is None


async def test_no_entry_outlives_its_ttl(world: World) -> None:
    """It never slides, however often it hits; a shorter wish of the client's holds."""
    same_words(world)
    await world.fetch(QUESTION)
    for _ in range(3):
        world.now += 1199
        assert isinstance(await world.look(PARAPHRASE), Hit)
    world.now += 4
    assert not isinstance(await world.look(PARAPHRASE), Hit)


async def test_a_switch_ends_all_entries(world: World) -> None:
    """The next look-up is in another space."""
    same_words(world)
    await world.fetch(QUESTION)
    world.switch()
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.EMPTY


async def test_a_retraction_ends_entries_at_once(world: World) -> None:
    """A raised generation is another partition, and older answers are not brought back by it."""
    same_words(world)
    late = await world.look(QUESTION)
    await world.fetch(QUESTION)
    await world.store.raise_generations("c" * 16, [tenant_counter(tenant_tag(KEY, b"acme"))])
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.EMPTY
    assert isinstance(late, NoMatch)
    assert late.draft is not None
    assert await world.keeping.keep(late.draft, _kept(b"late"), 1.0, None) is SemanticRefusal.CHANGED
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.EMPTY


async def test_a_retraction_between_search_and_answer_is_heeded(world: World) -> None:
    """The ticket is read last."""
    same_words(world)
    await world.fetch(QUESTION)

    async def retract() -> None:
        await world.store.raise_generations("c" * 16, [tenant_counter(tenant_tag(KEY, b"acme"))])

    world.vectors.before_body = retract
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.GONE


async def test_an_emptied_redis_empties_this_layer(world: World) -> None:
    """Whatever the vector store still holds."""
    same_words(world)
    await world.fetch(QUESTION)
    world.store.forget_all()
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.EMPTY
    await world.fetch(OTHER)
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.GONE


async def test_a_removed_ticket_ends_one_entry(world: World) -> None:
    """Others stay."""
    same_words(world)
    await world.fetch(QUESTION)
    await world.fetch(OTHER, "Paris.")
    hit = await world.look(PARAPHRASE)
    assert isinstance(hit, Hit)
    await world.store.remove(hit.place.name)
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.GONE
    assert isinstance(await world.look(OTHER), Hit)


async def test_a_body_that_was_moved_or_damaged_is_not_served(world: World) -> None:
    """It is sealed under its own name."""
    same_words(world)
    await world.fetch(QUESTION)

    world.vectors.damage = lambda body: body[:-1] + b"!"
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.GONE


async def test_shadow_serves_nothing_and_tells_what_it_would_have(world: World) -> None:
    """Would-be hits and refusals come with both questions."""
    world.settings = replace(world.settings, serves=False)
    world.build()
    world.embedder.vector_of = one_direction
    await world.fetch("How do I enable 2 factors?")
    looked = await world.look("How do I really enable 2 factors?")
    assert isinstance(looked, NoMatch)
    assert looked.reason is SemanticReason.SHADOW
    (sample,) = looked.samples
    assert (sample.asked, sample.stored) == (
        "How do I really enable 2 factors?",
        "How do I enable 2 factors?",
    )
    refused = await world.look("How do I enable 3 factors?")
    assert isinstance(refused, NoMatch)
    assert [sample.refused for sample in refused.samples] == [(GuardReason.NUMBERS,)]
    assert "factors" not in repr(Sample("factors", "factors", 1.0))


async def test_a_hit_back_fills_the_exact_layer_for_what_remains(world: World) -> None:
    """The exact entry ends with the one it was copied from, shows its age, and each knows of the other."""
    same_words(world)
    await world.fetch(QUESTION)
    world.now += 3000
    assert await world.back_fill(PARAPHRASE) is None
    world.now += 10
    found, _ = await world.exactly(PARAPHRASE)
    assert isinstance(found, Hit)
    assert (found.age_seconds, found.ttl_seconds) == (3010, 590)
    (source,) = unpack_links(found.entry.source, "c" * 16, found.place.name.tenant_tag)
    ticket = (await world.store.find(source)).value
    assert ticket is not None
    assert unpack_links(links_of(ticket), "c" * 16, source.tenant_tag) == [found.place.name]
    world.now += 600
    found, _ = await world.exactly(PARAPHRASE)
    assert not isinstance(found, Hit)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (EmbedderUnavailable("gone"), SemanticReason.EMBEDDER),
        (EmbedderRefused("NaN"), SemanticReason.EMBEDDER),
        (EmbedderOverloaded("busy"), SemanticReason.EMBEDDER),
        (EmbedderMismatch("another"), SemanticReason.EMBEDDER_MISMATCH),
    ],
)
async def test_a_failing_embedder_is_a_reason(world: World, error: Exception, reason: SemanticReason) -> None:
    """Nothing is stored either, and all is well once it is back."""
    same_words(world)
    await world.fetch(QUESTION)
    world.embedder.error = error
    assert reason_of(await world.look(PARAPHRASE)) is reason
    assert await world.fetch(OTHER) is not None
    world.embedder.error = None
    for breaker in world.breakers:
        await breaker.closed()
    assert isinstance(await world.look(PARAPHRASE), Hit)


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), StoreRefused("disk full")])
async def test_a_failing_vector_store_is_a_reason(world: World, error: Exception) -> None:
    """Look-ups miss, writes are given up, and all is well once it is back."""
    same_words(world)
    await world.fetch(QUESTION)
    world.vectors.error = error
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.VECTOR_STORE
    assert await world.fetch(OTHER) is SemanticRefusal.VECTOR_STORE
    world.vectors.error = None
    for breaker in world.breakers:
        await breaker.closed()
    assert isinstance(await world.look(PARAPHRASE), Hit)


async def test_a_frozen_embedder_costs_the_budget_once(world: World) -> None:
    """Then it is left alone until it answers a probe."""
    same_words(world)
    await world.fetch(QUESTION)
    world.embedder.frozen = True
    assert reason_of(await world.look(PARAPHRASE, 0.01)) is SemanticReason.BUDGET
    assert reason_of(await world.look(PARAPHRASE, 3600)) is SemanticReason.EMBEDDER


async def test_a_frozen_vector_store_costs_the_budget_once(world: World) -> None:
    """And the embedder is not blamed for it."""
    same_words(world)
    await world.fetch(QUESTION)
    world.vectors.frozen = True
    assert reason_of(await world.look(PARAPHRASE, 0.01)) is SemanticReason.BUDGET
    assert reason_of(await world.look(PARAPHRASE, 3600)) is SemanticReason.VECTOR_STORE
    assert not world.breakers[1].is_open


async def test_a_late_embedding_still_warms_the_layer(world: World) -> None:
    """What was begun for the look-up is used for keeping the answer."""
    await world.fetch(QUESTION)
    release = asyncio.Event()
    embed = world.embedder.embed

    async def slowly(texts: list[str]) -> object:
        await release.wait()
        return await embed(texts)

    world.embedder.embed = slowly  # type: ignore[method-assign, assignment]
    looked = await world.look(OTHER, 0.01)
    assert reason_of(looked) is SemanticReason.BUDGET
    assert isinstance(looked, NoMatch)
    assert looked.draft is not None
    release.set()
    assert await world.keeping.keep(looked.draft, _kept(b"Paris."), 1.0, None) is None
    assert world.embedder.texts.count(OTHER) == 1


async def test_who_asks_the_same_meanwhile_shares_the_look_up(world: World) -> None:
    """Fifty at once embed the question once."""
    same_words(world)
    await world.fetch(QUESTION)
    world.embedder.texts.clear()
    asked = await world.asked(PARAPHRASE)
    hits = await asyncio.gather(*(world.layer.look_up(asked, 5.0) for _ in range(50)))
    assert all(isinstance(hit, Hit) for hit in hits)
    assert world.embedder.texts == [PARAPHRASE]


async def test_another_embedder_behind_the_same_name_is_noticed(world: World) -> None:
    """At the next check nothing is looked up or stored any more, until the old one is back."""
    same_words(world)
    await world.fetch(QUESTION)
    world.embedder.vector_of = lambda text: random_vector(("another", text))
    await world.space.check()
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.EMBEDDER_MISMATCH
    assert await world.fetch(OTHER) is SemanticRefusal.EMBEDDER_MISMATCH
    same_words(world)
    await world.space.check()
    assert isinstance(await world.look(PARAPHRASE), Hit)
    assert world.mismatches == [True, False]


async def test_another_embedder_is_noticed_on_connect(world: World) -> None:
    """A gateway that starts with it compares with the marker before it looks anything up."""
    same_words(world)
    await world.fetch(QUESTION)
    world.embedder.vector_of = lambda text: random_vector(("another", text))
    world.build()
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.EMBEDDER_MISMATCH


async def test_a_space_that_was_dropped_is_made_again(world: World) -> None:
    """One look-up fails at most."""
    same_words(world)
    await world.fetch(QUESTION)
    record = world.known.best
    assert record is not None
    await world.vectors.drop("c" * 16, record.layers["Semantic"].keyspace)
    assert reason_of(await world.look(PARAPHRASE)) is SemanticReason.VECTOR_STORE
    assert await world.fetch(OTHER) is None
    assert isinstance(await world.look(OTHER), Hit)


async def test_a_record_without_this_layer_is_a_reason(world: World) -> None:
    """So is one that is bound to another policy."""
    world.settings = replace(world.settings, binding="another")
    world.build()
    assert reason_of(await world.look(QUESTION)) is SemanticReason.NO_KEYSPACE


async def test_seldom_questions_are_not_kept(world: World) -> None:
    """Until the model has answered them often enough, in whatever case they were written."""
    world.admission = AdmissionSettings(1000, min_seen=3)
    world.build()
    asked = [QUESTION, QUESTION.upper(), QUESTION.replace(" ", "  ")]
    assert [await world.fetch(text) for text in asked] == [
        SemanticRefusal.SELDOM,
        SemanticRefusal.SELDOM,
        None,
    ]


async def test_the_oldest_make_room(world: World) -> None:
    """The layer never holds more than 105 % of its bound, and a tenant no more than its own."""
    world.admission = AdmissionSettings(20, max_entries_per_tenant=5)
    world.build()
    for number in range(40):
        world.now += 1
        tenant = "acme" if number % 2 else f"tenant-{number}"
        assert await world.fetch(f"What is the meaning of number {number}?", tenant=tenant) is None
    record = world.known.best
    assert record is not None
    space = await world.space.of(record.layers["Semantic"].keyspace)
    assert 10 <= await world.vectors.count(space) <= 21
    assert await world.vectors.count(space, tenant_tag(KEY, b"acme")) <= 6
    newest = await world.look("What is the meaning of number 39?")
    assert isinstance(newest, Hit)


def _kept(body: bytes) -> KeptAnswer:
    return KeptAnswer("application/json", body)
