"""Quality of the semantic layer: from labelled pairs to the tables and plots of docs/semantic.md.

`python -m bench.quality` measures the built-in embedder with the default guard and threshold on the pairs
that ship; with `--qqp FILE` also on Quora question pairs, which are no part of this project.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.calibration.bounds import Rate
from cachewright.calibration.measures import NO_GUARD, Guard, Judged, by_class, curve, point
from cachewright.calibration.pairs import LabelledPair, read_pairs
from cachewright.calibration.report import SHOWN, Wanted, make_report
from cachewright.cli.calibrate_embedding import similarities
from cachewright.cli.calibrate_plot import write_plot
from cachewright.embedders.builtin import BuiltinEmbedder
from cachewright.keys.embedding_identity import BUILTIN
from cachewright.policy.guard import refusals

ROOT: Final = Path(__file__).parents[1]
PAIRS: Final = ROOT / "operator/cachewright/calibration"
DOCUMENT: Final = ROOT / "docs/semantic.md"
PLOT: Final = ROOT / "docs/semantic/calibration.png"
SAME_SAMPLE: Final = 3000
DIFFERENT_SAMPLE: Final = 5000
GUARD: Final = Guard.of("default", DEFAULT_GUARD)
GUARD_WITH_NAMES: Final = Guard.of("with Names", tuple(GuardCheck))
THRESHOLD: Final = 0.95
"""The built-in embedder's default."""


def main() -> None:
    """Measure, and write between the markers of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qqp", type=Path, metavar="FILE", help="JSON list of text_a, text_b, label")
    options = parser.parse_args()
    shipped, held_out = (asyncio.run(judge(pairs_of(PAIRS / name))) for name in ("pairs.csv", "held_out.csv"))
    PLOT.parent.mkdir(exist_ok=True)
    write_plot(make_report(shipped, f"built-in {BUILTIN.model}", Wanted(threshold=THRESHOLD)), PLOT)
    put("quality", "\n".join(own_tables(shipped, held_out)))
    if options.qqp:
        judged = asyncio.run(judge(qqp_sample(options.qqp)))
        put("qqp", "\n".join(qqp_table(judged)))


def pairs_of(file: Path) -> list[LabelledPair]:
    """Read a file of pairs."""
    return read_pairs(file.read_text(encoding="utf-8"), file.name).pairs


def qqp_sample(file: Path) -> list[LabelledPair]:
    """Draw the same 8,000 pairs each time."""
    pairs = pairs_of(file)
    dice = random.Random(0)  # noqa: S311 - a sample, not a secret
    same = dice.sample([pair for pair in pairs if pair.same], SAME_SAMPLE)
    return [*same, *dice.sample([pair for pair in pairs if not pair.same], DIFFERENT_SAMPLE)]


async def judge(pairs: Sequence[LabelledPair]) -> list[Judged]:
    """Ask the built-in embedder and every check of the guard about each pair."""
    embedder = BuiltinEmbedder()
    try:
        found = await similarities(embedder, [(pair.text_a, pair.text_b) for pair in pairs], lambda *_: None)
    finally:
        await embedder.aclose()
    return [
        Judged(pair, similarity, frozenset(refusals(pair.text_a, pair.text_b, tuple(GuardCheck))))
        for pair, similarity in zip(pairs, found, strict=True)
    ]


def own_tables(shipped: Sequence[Judged], held_out: Sequence[Judged]) -> Iterator[str]:
    """Lay out what the shipped pairs say."""
    yield f"Measured on {datetime.now(UTC):%Y-%m-%d} with the built-in embedder and the default guard."
    yield ""
    yield f"### By class, at the default threshold {THRESHOLD:.2f}\n"
    yield "| class | pairs | false hits | without the guard | held out: pairs | held out: false hits |"
    yield "|---|---|---|---|---|---|"
    unseen = {row.kind: row for row in by_class(held_out, THRESHOLD, GUARD)}
    for row in by_class(shipped, THRESHOLD, GUARD):
        if row.false_hits.of:
            other = unseen[row.kind].false_hits if row.kind in unseen else Rate(0, 0)
            yield (
                f"| {row.kind.replace('_', ' ')} | {row.false_hits.of} | {cell(row.false_hits)} "
                f"| {cell(row.without_guard)} | {other.of or '-'} | {cell(other)} |"
            )
    whole, unseen_whole = point(shipped, THRESHOLD, GUARD), point(held_out, THRESHOLD, GUARD)
    bare = point(shipped, THRESHOLD, NO_GUARD)
    yield (
        f"| **all** | {whole.false_hits.of} | {cell(whole.false_hits)} | {cell(bare.false_hits)} "
        f"| {unseen_whole.false_hits.of} | {cell(unseen_whole.false_hits)} |"
    )
    yield "\n### By threshold\n"
    yield "| threshold | precision | recall | false hits | false hits without the guard |"
    yield "|---|---|---|---|---|"
    for guarded, plain in zip(curve(shipped, GUARD), curve(shipped, NO_GUARD), strict=True):
        if guarded.threshold in SHOWN:
            yield (
                f"| {guarded.threshold:.2f} | {cell(guarded.precision)} | {cell(guarded.recall)} "
                f"| {cell(guarded.false_hits)} | {cell(plain.false_hits)} |"
            )
    yield "\n### By language, at the default threshold\n"
    yield "| language | pairs | false hits | recall |"
    yield "|---|---|---|---|"
    for name, languages in (
        ("English", "en"),
        ("German, French, Spanish", "de fr es"),
        ("without word lists", ""),
    ):
        told = languages.split()
        of = [
            each
            for each in (*shipped, *held_out)
            if (each.pair.language in told if told else each.pair.language not in ("en", "de", "fr", "es"))
        ]
        found = point(of, THRESHOLD, GUARD)
        yield f"| {name} | {len(of)} | {cell(found.false_hits)} | {cell(found.recall)} |"


def qqp_table(judged: Sequence[Judged]) -> Iterator[str]:
    """Lay out what the sample of Quora question pairs says."""
    yield "| threshold | guard | precision | recall | false hits |"
    yield "|---|---|---|---|---|"
    for threshold in (0.92, 0.93, THRESHOLD, 0.97):
        for guard in (NO_GUARD, GUARD, GUARD_WITH_NAMES):
            found = point(judged, threshold, guard)
            yield (
                f"| {threshold:.2f} | {guard.name} | {cell(found.precision)} | {cell(found.recall)} "
                f"| {cell(found.false_hits)} |"
            )


def cell(rate: Rate) -> str:
    """Show a rate with its bounds."""
    if rate.value is None:
        return "-"
    return f"{100 * rate.value:.1f} % ({100 * rate.low:.1f}-{100 * rate.high:.1f})"


def put(name: str, text: str) -> None:
    """Replace what stands between two markers of the page."""
    page = DOCUMENT.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (begun and ended):
        raise RuntimeError(f"{DOCUMENT} lacks the markers {begin} and {end}")
    DOCUMENT.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
