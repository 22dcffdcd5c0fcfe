"""The run: sends each pair to a gateway and tells by the upstream's answers whether they were mixed up.

It works on any gateway that speaks OpenAI's API and passes misses to `bench.upstream`: whose call answered is
written in the answer itself, so no header and no word of the gateway is trusted. Called by the tests of this
folder on our gateway, and by `python -m bench` on ours and on its peers.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import aiohttp
from yarl import URL

from tests.adversarial.cases import Case, Request

MOST_ASKED: Final = 8
"""How often a request is sent until its answer is one that was given before."""

PAUSE_SECONDS: Final = 0.02
AT_ONCE: Final = 8


class Verdict(StrEnum):
    """What became of a pair."""

    APART = "apart"
    """The first was cached; the second got an answer of its own, or none."""
    SHARED = "shared"
    """The first was cached, and the second got its answer."""
    NOT_CACHED = "not cached"
    """The first was never answered from a cache, so the pair proves nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """One case with its verdict."""

    case: Case
    verdict: Verdict

    @property
    def is_wrong(self) -> bool:
        """True for an answer that the second request must not have got."""
        return self.verdict is Verdict.SHARED and not self.case.share

    @property
    def is_lost(self) -> bool:
        """True where the two had to share an answer and did not."""
        return self.verdict is not Verdict.SHARED and self.case.share


async def run_cases(
    url: str,
    cases: Iterable[Case],
    headers: tuple[tuple[str, str], ...] = (),
    settle: Callable[[], Awaitable[None]] | None = None,
) -> list[Result]:
    """Send all cases to the gateway at `url` (no path), with `headers` added to each request.

    `settle` returns once the gateway has kept what it wants to keep of the first request of a pair.
    """
    places = asyncio.Semaphore(AT_ONCE)
    run = secrets.token_hex(4)
    async with aiohttp.ClientSession(auto_decompress=True) as session:

        async def judged(case: Case) -> Result:
            async with places:
                pair = _Pair(session, url, headers, f"{run} {case.id}", settle)
                return Result(case, await pair.judge(case))

        return list(await asyncio.gather(*(judged(case) for case in cases)))


def count_by_class(results: Iterable[Result]) -> dict[str, tuple[int, int, int]]:
    """Count cases, wrong hits and pairs that proved nothing, by class; `same` counts what was not shared."""
    cases, wrong, idle = Counter[str](), Counter[str](), Counter[str]()
    for result in results:
        cases[result.case.kind] += 1
        wrong[result.case.kind] += result.is_wrong or result.is_lost
        idle[result.case.kind] += result.verdict is Verdict.NOT_CACHED
    return {kind: (cases[kind], wrong[kind], idle[kind]) for kind in sorted(cases)}


@dataclass(frozen=True, slots=True)
class _Pair:
    session: aiohttp.ClientSession
    url: str
    headers: tuple[tuple[str, str], ...]
    mark: str
    settle: Callable[[], Awaitable[None]] | None

    async def judge(self, case: Case) -> Verdict:
        given: set[int] = set()
        cached = False
        for _ in range(MOST_ASKED):
            call = await self._ask(case.a)
            cached = call is not None and call in given
            if cached:
                break
            given |= {call} if call is not None else set()
            await asyncio.sleep(PAUSE_SECONDS)
        if not cached:
            return Verdict.NOT_CACHED
        if self.settle is not None:
            await self.settle()
        return Verdict.SHARED if await self._ask(case.b) in given else Verdict.APART

    async def _ask(self, request: Request) -> int | None:
        """Return the number of the upstream's call that answered; None where nothing was answered."""
        target = self.url + request.path + (f"?{request.query}" if request.query else "")
        sent = [("Content-Type", "application/json"), *self.headers, *request.headers]
        async with self.session.post(
            URL(target, encoded=True), data=request.marked(self.mark), headers=sent, allow_redirects=False
        ) as response:
            body = await response.read()
        return answered_call(body) if response.status == 200 else None


def answered_call(body: bytes) -> int | None:
    """Return the number of the call that an answer of `bench.upstream` was computed by, streamed or not."""
    told = told_by(body)
    return int(told["call"]) if told else None


def told_by(body: bytes) -> dict[str, Any] | None:
    """Return what the text of an answer tells; None where it is not whole."""
    try:
        text = _streamed_text(body) if body.lstrip().startswith((b"data:", b":")) else _text(json.loads(body))
        told = json.loads(text)
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return told if isinstance(told, dict) and "call" in told else None


def _text(document: dict[str, Any]) -> str:
    if "output" in document:
        return str(document["output"][0]["content"][0]["text"])
    choice = document["choices"][0]
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


def _streamed_text(body: bytes) -> str:
    pieces = []
    for line in body.splitlines():
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or data == b"[DONE]":
            continue
        pieces += [
            (choice.get("delta") or {}).get("content") or choice.get("text") or ""
            for choice in json.loads(data).get("choices", [])[:1]
        ]
    return "".join(pieces)
