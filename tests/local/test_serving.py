"""Serving a manifest on one machine, with the OpenAI SDK as the client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest

from tests.local.harness import QUESTION, QUICKSTART, Local, edited, eventually, fetch, running

HIT = "cachewright; hit; ttl="
MISS = "cachewright; fwd=miss"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One run for tests that leave it as it is; each asks questions of its own."""
    with running(tmp_path_factory.mktemp("local")) as started:
        yield started


def test_the_first_is_a_miss_and_the_second_a_hit(local: Local) -> None:
    """The README's promise, with the synchronous client; the stand-in numbers its answers, so a hit shows."""
    first, answer = local.ask("sync?")
    second, again = local.ask("sync?")
    assert first.startswith(MISS)
    assert second.startswith(HIT)
    assert again == answer
    assert answer.endswith("You asked: sync?")


async def test_the_asynchronous_client(local: Local) -> None:
    """The same with the asynchronous client, also with several at once."""
    async with openai.AsyncOpenAI(
        base_url=local.base_url, api_key="unused", default_headers={"X-Tenant-Id": "acme"}, max_retries=0
    ) as client:

        async def ask(question: str) -> tuple[str, str | None]:
            raw = await client.chat.completions.with_raw_response.create(
                model="demo-model", temperature=0, messages=[{"role": "user", "content": question}]
            )
            return raw.headers["cache-status"], raw.parse().choices[0].message.content

        questions = [f"async {number}?" for number in range(8)]
        first = await asyncio.gather(*map(ask, questions))
        second = await asyncio.gather(*map(ask, questions))
    assert all(status.startswith(MISS) for status, _ in first)
    assert all(status.startswith(HIT) for status, _ in second)
    assert [answer for _, answer in first] == [answer for _, answer in second]


def streamed(local: Local, question: str) -> tuple[str, list[str]]:
    """Ask for a stream; returns what the cache said, and the words as they came."""
    with local.client() as client:
        raw = client.chat.completions.with_raw_response.create(
            model="demo-model",
            temperature=0,
            messages=[{"role": "user", "content": question}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(raw.parse())
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0
    assert chunks[-2].choices[0].finish_reason == "stop"
    return raw.headers["cache-status"], [
        each.choices[0].delta.content or "" for each in chunks if each.choices
    ]


def test_a_stream_is_a_miss_and_then_a_hit(local: Local) -> None:
    """Words arrive one by one both times, and whoever asks without a stream gets the same answer."""
    first, words = streamed(local, "streamed?")
    assert first.startswith(MISS)
    assert len([word for word in words if word]) > 3
    assert "".join(words).endswith("You asked: streamed?")
    second, again = streamed(local, "streamed?")
    assert second.startswith(HIT)
    assert again == words
    assert local.ask("streamed?")[1] == "".join(words)


def test_a_whole_answer_is_replayed_as_a_stream(local: Local) -> None:
    """The other way round: stored whole, asked for as a stream."""
    _, answer = local.ask("whole?")
    status, words = streamed(local, "whole?")
    assert status.startswith(HIT)
    assert "".join(words) == answer


def test_two_tenants_share_nothing(local: Local) -> None:
    """The same question of another tenant is a miss, and answered anew."""
    _, ours = local.ask("tenants?", tenant="acme")
    status, theirs = local.ask("tenants?", tenant="globex")
    assert status.startswith(MISS)
    assert theirs != ours


def test_a_bypass_names_its_reason(local: Local) -> None:
    """A sampled request is answered and not cached."""
    status, _ = local.ask("sampled?", temperature=0.7)
    assert status == "cachewright; fwd=bypass; detail=sampling"


def test_the_stand_in_speaks_the_rest_of_the_api(local: Local) -> None:
    """Completions, embeddings (as lists and as base64) and models, through the gateway."""
    with local.client() as client:
        assert client.models.list().data[0].id == "stand-in"
        completion = client.completions.create(model="demo-model", prompt="Once", temperature=0)
        assert completion.choices[0].text.endswith("You asked: Once")
        packed = client.embeddings.create(model="e", input=["one", "two"])
        plain = client.embeddings.create(model="e", input=["one", "two"], encoding_format="float")
    assert [len(each.embedding) for each in packed.data] == [64, 64]
    assert packed.data[1].embedding == pytest.approx(plain.data[1].embedding, abs=1e-6)
    assert packed.data[0].embedding != packed.data[1].embedding


@pytest.mark.parametrize(
    ("path", "body"),
    [("/chat/completions", "[]"), ("/chat/completions", "{}"), ("/completions", "no json")],
)
def test_the_stand_in_refuses_what_openai_would(local: Local, path: str, body: str) -> None:
    """A body of the wrong shape is answered by 400 with an error that clients can read."""
    status, text = fetch(f"{local.base_url}{path}", body)
    assert status == 400
    assert json.loads(text)["error"]["type"] == "invalid_request_error"


def test_what_is_printed_for_scripts(local: Local) -> None:
    """One line of JSON with every address, once it serves."""
    assert fetch(local.ready["ready_url"]) == (200, "ok\n")
    assert "cachewright_requests_total" in fetch(local.ready["metrics_url"])[1]
    assert local.ready["event"] == "ready"
    assert local.ready["store"].startswith("Valkey")
    assert local.ready["upstream"].startswith("STAND-IN")
    assert local.ready["keyspace"].endswith("-1")


def test_the_store_can_be_reached_by_nobody_else(local: Local) -> None:
    """It listens on no port, its socket is the user's own, and its password is in no argument."""
    server = psutil.Process(local.store_pid)
    assert not [each for each in server.net_connections("inet") if each.status == psutil.CONN_LISTEN]
    (path,) = {Path(str(each.laddr)) for each in server.net_connections("unix") if each.laddr}
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    assert "gateway:" not in " ".join(server.cmdline())


@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_other_stores(tmp_path: Path, kind: str) -> None:
    """Process memory, and a redis-server from PATH, serve as Valkey does."""
    with running(tmp_path, "--store", kind, "--ephemeral") as local:
        assert local.ask()[0].startswith(MISS)
        assert local.ask()[0].startswith(HIT)
        children = psutil.Process(local.process.pid).children()
        assert [child.name() for child in children] == ([] if kind == "memory" else ["redis-server"])
    assert not (tmp_path / "state").exists()


def test_a_given_upstream_is_asked_and_no_stand_in(tmp_path: Path, local: Local) -> None:
    """`--upstream URL` sends misses there: here to the other run, which is a cache in front of a stand-in."""
    with running(tmp_path, "--upstream", local.base_url) as front:
        assert front.ready["upstream"] == local.base_url
        status, answer = front.ask(QUESTION)
        assert status.count(MISS) == 2
        assert local.ask(QUESTION)[1] == answer
        assert front.ask(QUESTION)[0].count("cachewright;") == 1


def test_the_manifests_own_upstream(tmp_path: Path, local: Local) -> None:
    """`--upstream manifest` asks where the manifest says, follows an edit of it, and listens on IPv6 too."""
    manifest = edited(tmp_path, upstream__url="http://127.0.0.1:9/v1")
    words = ("--upstream", "manifest", "--host", "::1", "--store", "memory")
    with running(tmp_path, *words, manifest=manifest) as front:
        assert front.base_url.startswith("http://[::1]:")
        assert front.ready["upstream"] == "http://127.0.0.1:9/v1"
        with pytest.raises(openai.InternalServerError, match="cannot be reached"):
            front.ask()
        edited(tmp_path, upstream__url=local.base_url)
        eventually(lambda: "starts with the empty keyspace" in front.said())
        assert "You asked" in front.ask()[1]


def test_the_laptop_example_answers_similar_questions(tmp_path: Path) -> None:
    """With the built-in embedder and vectors in memory; another number is another question."""
    with running(tmp_path, manifest=QUICKSTART.parent / "laptop.yaml") as laptop:
        first, answer = laptop.ask("How do I reset my password?")
        eventually(lambda: laptop.counted("cachewright_semantic_stored_total") == 1)  # behind the answer
        again, same = laptop.ask("How can I reset my password?")
        assert first.startswith(MISS)
        assert again.startswith(HIT)
        assert same == answer
        assert laptop.ask("How do I export 10 files?")[0].startswith(MISS)
        eventually(lambda: laptop.counted("cachewright_semantic_stored_total") == 2)
        assert laptop.ask("How do I export 20 files?")[0].startswith(MISS)
        with laptop.client() as client:
            vectors = [
                client.embeddings.with_raw_response.create(model="all-MiniLM-L6-v2", input="a text")
                for _ in range(2)
            ]
        assert [each.headers["cache-status"].partition(";")[2].split("=")[0].strip() for each in vectors] == [
            "fwd",
            "hit; ttl",
        ]
