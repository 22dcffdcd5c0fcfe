"""A calibration's outcome: from judged pairs to what is printed, drawn and patched into an object. Pure.

Called by `cli.calibrate`, which prints it as text, as JSON or as a patch, and by the plot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.calibration.bounds import CONFIDENCE, Rate
from cachewright.calibration.measures import (
    NO_GUARD,
    ClassRow,
    Guard,
    Judged,
    Point,
    by_class,
    curve,
    point,
    recommended,
)

SHOWN: Final = (0.80, 0.85, 0.88, 0.90, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98)
"""Thresholds of the printed table; JSON and plot have all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks for."""

    checks: tuple[GuardCheck, ...] = DEFAULT_GUARD
    most_false_hits: float = 0.02
    """Upper bound of the false-hit rate."""
    threshold: float | None = None
    """Look at this threshold, whatever is recommended."""
    other_languages: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Everything there is to say of one embedder on one set of pairs."""

    embedder: str
    wanted: Wanted
    pairs: int
    same: int
    not_embeddable: int
    guarded: list[Point]
    bare: list[Point]
    chosen: Point | None
    """What is recommended; None where no threshold keeps the bound."""
    looked_at: float
    """Threshold of the tables below."""
    classes: list[ClassRow]
    guards: list[tuple[str, Point]]
    """What each check by itself does, and what is lost without it."""


def make_report(judged: Sequence[Judged], embedder: str, wanted: Wanted) -> Report:
    """Count everything."""
    guard = _guard(wanted, wanted.checks, "chosen")
    guarded = curve(judged, guard)
    chosen = recommended(guarded, wanted.most_false_hits)
    looked_at = wanted.threshold or (chosen.threshold if chosen else 0.95)
    return Report(
        embedder=embedder,
        wanted=wanted,
        pairs=len(judged),
        same=sum(each.pair.same for each in judged),
        not_embeddable=sum(each.similarity is None for each in judged),
        guarded=guarded,
        bare=curve(judged, NO_GUARD),
        chosen=chosen,
        looked_at=looked_at,
        classes=by_class(judged, looked_at, guard),
        guards=[(each.name, point(judged, looked_at, each)) for each in _guards(wanted)],
    )


def _guard(wanted: Wanted, checks: Collection[GuardCheck], name: str) -> Guard:
    return Guard.of(name, checks, other_languages=wanted.other_languages)


def _guards(wanted: Wanted) -> Iterator[Guard]:
    yield NO_GUARD
    for check in GuardCheck:
        yield _guard(wanted, (check,), f"{check} alone")
    for check in wanted.checks:
        yield _guard(wanted, [each for each in wanted.checks if each != check], f"chosen without {check}")
    yield _guard(wanted, wanted.checks, "chosen")
    yield _guard(wanted, tuple(GuardCheck), "all")


def patch(report: Report) -> dict[str, Any]:
    """Return a merge patch for an InferenceCache; only for a report that recommends something."""
    threshold = report.looked_at
    guard = [str(check) for check in report.wanted.checks]
    return {"spec": {"layers": {"semantic": {"threshold": threshold, "guard": guard}}}}


def as_json(report: Report) -> dict[str, Any]:
    """Return all of it as JSON values."""
    return {
        "embedder": report.embedder,
        "pairs": report.pairs,
        "same": report.same,
        "notEmbeddable": report.not_embeddable,
        "confidence": CONFIDENCE,
        "guard": [str(check) for check in report.wanted.checks],
        "mostFalseHits": report.wanted.most_false_hits,
        "recommended": _point_json(report.chosen) if report.chosen else None,
        "threshold": report.looked_at,
        "classes": [
            {
                "class": row.kind,
                "falseHitsWithoutGuard": _rate_json(row.without_guard),
                "falseHits": _rate_json(row.false_hits),
                "recall": _rate_json(row.recall),
            }
            for row in report.classes
        ],
        "guards": [{"guard": name, **_point_json(each)} for name, each in report.guards],
        "thresholds": [_point_json(each) for each in report.guarded],
        "thresholdsWithoutGuard": [_point_json(each) for each in report.bare],
    }


def _point_json(each: Point) -> dict[str, Any]:
    return {
        "threshold": each.threshold,
        "precision": _rate_json(each.precision),
        "recall": _rate_json(each.recall),
        "falseHits": _rate_json(each.false_hits),
    }


def _rate_json(rate: Rate) -> dict[str, Any]:
    value = None if rate.value is None else round(rate.value, 6)
    return {
        "count": rate.count,
        "of": rate.of,
        "rate": value,
        "low": round(rate.low, 6),
        "high": round(rate.high, 6),
    }


def as_text(report: Report) -> str:
    """Lay it out for a terminal."""
    return "\n".join(
        (*headline(report), "", *_thresholds(report), "", *_classes(report), "", *_checks(report))
    )


def headline(report: Report) -> Iterator[str]:
    """Say in a few sentences what came out."""
    different = report.pairs - report.same
    yield f"{report.pairs} pairs ({report.same} the same, {different} different), embedder {report.embedder}"
    if report.not_embeddable:
        yield f"{report.not_embeddable} pairs never hit: a question has an unknown token or is too long"
    bound = f"{report.wanted.most_false_hits:.1%}"
    if report.chosen is None:
        yield f"No threshold keeps the false-hit rate's upper bound within {bound} on these pairs."
        yield "More pairs narrow the bound; a stricter guard, such as Names, lowers the rate."
        return
    yield f"Recommended threshold: {report.chosen.threshold:.3f}"
    yield f"From it on, the false-hit rate's upper bound stays within {bound}."
    yield f"At it: false hits {_rate(report.chosen.false_hits)}, recall {_rate(report.chosen.recall)}"


def _row(first: str, *cells: str) -> str:
    return "  ".join((f"{first:<24}", *(f"{cell:>23}" for cell in cells)))


def _thresholds(report: Report) -> Iterator[str]:
    yield _row("threshold", "precision", "recall", "false hits", "without guard")
    for guarded, bare in zip(report.guarded, report.bare, strict=True):
        if guarded.threshold in (*SHOWN, report.looked_at):
            mark = " *" if guarded.threshold == report.looked_at else ""
            rates = (guarded.precision, guarded.recall, guarded.false_hits, bare.false_hits)
            yield _row(f"{guarded.threshold:.3f}{mark}", *map(_rate, rates))


def _classes(report: Report) -> Iterator[str]:
    yield f"By class, at {report.looked_at:.3f}:"
    yield _row("class", "false hits", "without guard", "recall")
    for row in report.classes:
        yield _row(row.kind, *map(_rate, (row.false_hits, row.without_guard, row.recall)))


def _checks(report: Report) -> Iterator[str]:
    chosen = ", ".join(report.wanted.checks) or "none"
    yield f"By guard, at {report.looked_at:.3f} (chosen: {chosen}):"
    yield _row("guard", "precision", "recall", "false hits")
    for name, each in report.guards:
        yield _row(name, *map(_rate, (each.precision, each.recall, each.false_hits)))


def _rate(rate: Rate) -> str:
    if rate.value is None:
        return "-"
    return f"{rate.value:.1%} ({rate.low:.1%}-{rate.high:.1%})"
