"""Right and wrong answers to similar questions beside the peers: `python -m bench.questions`.

Each contender keeps the answer to the first request of a pair and is asked the second. Pairs of questions are
those that ship for calibration; pairs of structure are those of the adversarial set. Our gateway runs whole,
with the built-in embedder as its sidecar runs; peers run as libraries (`bench.vector_peer`) on that embedder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from bench.contenders import OURS
from bench.processes import free_port, running
from bench.quality import PAIRS, THRESHOLD, pairs_of
from bench.question_report import Score, render, write
from bench.upstream import Upstream
from bench.vector_peers import PEERS, ask_peer, run_search_redis
from cachewright.calibration.pairs import LabelledPair
from cachewright.keys.embedding_identity import BUILTIN
from cachewright.policy.document import EmbedderPolicy
from tests.adversarial.cases import ALIAS, ARM_HEADER, CHAT, MARK, ROLE_HEADER, VARY_HEADER, Case, load_cases
from tests.adversarial.runner import run_cases
from tests.gateway.harness import UNHURRIED_SECONDS
from tests.gateway.harness import running as running_gateway
from tests.gateway.semantic import SemanticGateway
from tests.support.redis_servers import run_redis
from tests.support.waiting import until

FUZZY: Final = frozenset({"question", "unicode"})
"""Classes of the adversarial set that differ in the question alone, so that it is no matter of structure."""

AT_ONCE: Final = 8

EXAMPLES = """\
examples:
  python -m bench.questions                 # everything, into docs/benchmarks.md; some minutes
  python -m bench.questions --quick         # every tenth pair, printed only
  python -m bench.questions --only litellm  # one peer, printed only
"""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What everybody is asked."""

    questions: Sequence[LabelledPair]
    structures: Sequence[Case]

    def conversations(self) -> list[list[Any]]:
        """Return both as pairs of messages."""
        asked = [[_said(pair.text_a), _said(pair.text_b)] for pair in self.questions]
        return asked + [
            [_messages(case.a.body, case), _messages(case.b.body, case)] for case in self.structures
        ]

    def score(self, title: str, threshold: float | None, shared: Sequence[bool | None]) -> Score:
        """Count what was shared, in the order of `conversations`."""
        asked: list[LabelledPair | Case] = [*self.questions, *self.structures]
        score = Score(title, threshold, failed=sum(one is None for one in shared))
        for pair, was_shared in zip(asked, shared, strict=True):
            if isinstance(pair, Case):
                score.structure.count(pair.kind, bool(was_shared))
            elif pair.same:
                score.right.count(pair.kind, bool(was_shared))
            else:
                score.wrong.count(pair.kind, bool(was_shared))
        return score


def collect(step: int) -> Pairs:
    """Read every `step`th pair."""
    questions = [*pairs_of(PAIRS / "pairs.csv"), *pairs_of(PAIRS / "held_out.csv")]
    structures = [
        case for case in load_cases() if not case.share and case.kind not in FUZZY and _is_chat(case)
    ]
    return Pairs(questions[::step], structures[::step])


def _is_chat(case: Case) -> bool:
    """Tell whether both requests are something that a library can be given."""
    try:
        bodies = [json.loads(request.body) for request in (case.a, case.b)]
        is_asked = all(body["messages"][-1].get("content") for body in bodies)
    except (ValueError, KeyError, TypeError, IndexError):
        return False
    return is_asked and {case.a.path, case.b.path} == {CHAT}


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _messages(body: str, case: Case) -> object:
    messages: object = json.loads(body.replace(MARK, case.id))["messages"]
    return messages


@contextmanager
def embedder(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Serve the built-in model until the block ends; gives its URL and its process."""
    port, health = free_port(), free_port()
    command = [sys.executable, "-m", "cachewright.cli", "embedder", "--port", str(port)]
    ready = f"http://127.0.0.1:{health}/readyz"
    with running([*command, "--health-port", str(health)], folder / "embedder.log", ready) as process:
        yield f"http://127.0.0.1:{port}/v1", process


async def ask_ours(folder: Path, embedder_url: str, pairs: Pairs) -> list[bool]:
    """Tell for each pair whether our gateway answered the second with the first one's answer."""
    with run_redis("valkey") as redis:
        async with Upstream() as upstream:
            gateway = SemanticGateway(folder / "ours", redis, upstream.url, embedder_url)
            gateway.enact(
                tenancy={"role_header": ROLE_HEADER.lower()},
                upstream={"vary_headers": (*gateway.policy.upstream.vary_headers, VARY_HEADER.lower())},
                model_aliases=(ALIAS,),
                routes=(gateway.policy.routes[0].model_copy(update={"arm_header": ARM_HEADER.lower()}),),
                embedder=EmbedderPolicy(
                    url=embedder_url, identity=BUILTIN, timeout_seconds=UNHURRIED_SECONDS
                ),
                semantic={"threshold": THRESHOLD, "max_entries": 100_000},
            )
            async with running_gateway(gateway):
                questions = await _ask_questions(gateway, pairs.questions)
                results = await run_cases(gateway.url, pairs.structures, settle=lambda: _settled(gateway))
                return [*questions, *(result.is_wrong for result in results)]


async def _ask_questions(gateway: SemanticGateway, pairs: Sequence[LabelledPair]) -> list[bool]:
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(number: int, text: str) -> bool:
        async with places:  # each pair under a tenant of its own, so that no pair meets another
            headers = {"X-Tenant-Id": f"pair-{number}", ROLE_HEADER: "reader", ARM_HEADER: "control"}
            return (await gateway.call(messages=_said(text), headers=headers)).is_hit

    await asyncio.gather(*(ask(number, pair.text_a) for number, pair in enumerate(pairs)))
    await _settled(gateway)
    return list(await asyncio.gather(*(ask(number, pair.text_b) for number, pair in enumerate(pairs))))


async def _settled(gateway: SemanticGateway) -> None:
    async def is_idle() -> bool:
        return await gateway.metric("cachewright_semantic_write_queue_depth") == 0

    await until(is_idle)


def ask_peers(
    names: Sequence[str], folder: Path, embedder_url: str, pairs: Pairs, failed: list[str]
) -> Iterator[Score]:
    """Ask each peer twice: with its own threshold, and with ours."""
    server = {"url": embedder_url, "model": BUILTIN.model, "dimensions": BUILTIN.dimensions}
    for name in names:
        title, _ = PEERS[name]
        for threshold in (None, THRESHOLD):
            say(f"{title}, {'its own threshold' if threshold is None else threshold}")
            document = folder / f"{name}.json"
            asked = {"embedder": server, "threshold": threshold, "pairs": pairs.conversations()}
            document.write_text(json.dumps(asked), encoding="utf-8")
            try:
                with run_search_redis(folder) as redis:
                    yield pairs.score(title, threshold, ask_peer(name, redis, document))
            except Exception:  # noqa: BLE001 - the process edge: one that fails must not cost the others' figures
                traceback.print_exc()
                failed.append(title)


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Parse the command line, measure, and report."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.questions",
        description="Count right and wrong answers to similar questions beside other semantic caches.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few pairs, and no change of the document")
    parser.add_argument("--only", choices=PEERS, help="one peer, printed")
    options = parser.parse_args()
    pairs, failed = collect(10 if options.quick else 1), list[str]()
    with tempfile.TemporaryDirectory(prefix="cachewright-questions-") as name:
        folder = Path(name)
        with embedder(folder) as (url, _):
            say(f"{OURS}: {len(pairs.questions)} pairs of questions, {len(pairs.structures)} of structure")
            ours = pairs.score(OURS, THRESHOLD, asyncio.run(ask_ours(folder, url, pairs)))
            chosen = [options.only] if options.only else list(PEERS)
            scores = [ours, *ask_peers(chosen, folder, url, pairs, failed)]
    text = render(scores, failed)
    if options.quick or options.only:
        print(text)
    else:
        write(text, scores)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
