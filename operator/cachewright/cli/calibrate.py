"""`cachewright calibrate`: from labelled pairs and an embedder to a threshold and a guard, with their bounds.

Called by `cli.main`. Embeds every question once, asks the guard about every pair, and leaves the counting to
the package `calibration`.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final, TextIO

import yaml

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.calibration.measures import Judged
from cachewright.calibration.pairs import COLUMNS, LabelledPair, read_pairs, read_samples, to_label
from cachewright.calibration.report import Report, Wanted, as_json, as_text, make_report, patch
from cachewright.cli.calibrate_embedding import add_embedder_arguments, embedder_of, similarities
from cachewright.cli.calibrate_plot import ENDINGS, write_plot
from cachewright.cli.options import add_output_argument
from cachewright.errors import CachewrightError, InvalidDocument, InvalidInput
from cachewright.policy.guard import refusals

SHIPPED: Final = "pairs.csv"
"""The project's own pairs, in the package `calibration`."""

EXAMPLES: Final = """\
examples:
  cachewright calibrate
      the built-in embedder on the pairs that ship with cachewright
  cachewright calibrate ours.csv --max-false-hits 0.5%
  cachewright calibrate ours.csv --plot calibration.html --plot calibration.png
  cachewright calibrate ours.jsonl --embedder http://tei.ml:8080/v1 --model bge-m3 \\
      --dimensions 1024 --max-tokens 8192 --api-key-file key.txt
  cachewright calibrate ours.csv --guard Numbers,Negation,Order,Antonyms,Names --output patch > patch.yaml
  kubectl patch icache support-bot --type merge --patch-file patch.yaml
  cachewright calibrate --from-shadow samples.json --label pairs.csv
      what Shadow mode sampled, as pairs for a person to label

A file of pairs is CSV with the columns text_a, text_b, same and, if you like, class and language, or JSONL
with these names. Same is yes where one answer serves both questions.

exit code:
  0  a threshold is recommended, or --label wrote its file
  1  no threshold keeps the wanted bound on these pairs
  2  a file, an option or the embedder is of no use
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cachewright calibrate`."""
    parser.add_argument(
        "pairs", nargs="*", metavar="PAIRS", help="files of labelled pairs (default: the shipped ones)"
    )
    add_embedder_arguments(parser)
    parser.add_argument(
        "--guard",
        type=_checks,
        default=DEFAULT_GUARD,
        metavar="CHECKS",
        help=f"checks, separated by commas, or none (default: {','.join(DEFAULT_GUARD)})",
    )
    parser.add_argument(
        "--other-languages", action="store_true", help="let questions hit whose language has no word lists"
    )
    parser.add_argument(
        "--max-false-hits",
        type=_share,
        default=0.02,
        metavar="RATE",
        help="upper bound wanted for the false-hit rate, such as 0.02 or 2%% (default: 2%%)",
    )
    parser.add_argument(
        "--threshold", type=_share, metavar="COSINE", help="show classes and guards at this threshold instead"
    )
    parser.add_argument(
        "--plot",
        type=_plot_file,
        action="append",
        default=[],
        metavar="FILE",
        help=f"draw into FILE, which ends with {', '.join(f'.{each}' for each in ENDINGS)}; may be repeated",
    )
    add_output_argument(parser, "patch")
    parser.add_argument("--from-shadow", metavar="FILE", help="read samples of Shadow mode in place of pairs")
    parser.add_argument(
        "--label",
        metavar="FILE",
        help="with --from-shadow: write its pairs to FILE, to be labelled; - for stdout",
    )


def _checks(text: str) -> tuple[GuardCheck, ...]:
    if text.lower() == "none":
        return ()
    by_name = {check.lower(): check for check in GuardCheck}
    names = [name.strip().lower() for name in text.split(",")]
    if unknown := [name for name in names if name not in by_name]:
        raise argparse.ArgumentTypeError(f"no check {unknown[0]!r}; there are {', '.join(GuardCheck)}")
    return tuple(dict.fromkeys(by_name[name] for name in names))


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and up to 1, or 100%")
    return value


def _plot_file(text: str) -> Path:
    file = Path(text)
    if file.suffix.removeprefix(".") not in ENDINGS:
        raise argparse.ArgumentTypeError(f"{text!r} does not end with .{', .'.join(ENDINGS)}")
    return file


def run(options: argparse.Namespace) -> int:
    """Calibrate, print the result, and return the exit code."""
    try:
        if options.from_shadow or options.label:
            return _write_to_label(options)
        return _calibrate(options)
    except (CachewrightError, OSError, UnicodeDecodeError) as error:
        print(f"cachewright calibrate: {error}", file=sys.stderr)
        return 2


def _write_to_label(options: argparse.Namespace) -> int:
    if not (options.from_shadow and options.label) or options.pairs:
        raise InvalidInput("--from-shadow SAMPLES and --label FILE go together, without PAIRS")
    rows = to_label(read_samples(Path(options.from_shadow).read_text("utf-8"), options.from_shadow))
    if options.label == "-":
        _write_rows(rows, sys.stdout)
    else:
        with Path(options.label).open("x", encoding="utf-8", newline="") as file:
            _write_rows(rows, file)
        print(f"{len(rows)} pairs in {options.label}: write yes or no into the column `same`")
    return 0


def _write_rows(rows: Sequence[tuple[str, ...]], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)


def _calibrate(options: argparse.Namespace) -> int:
    pairs = _pairs(options.pairs)
    if not any(pair.same for pair in pairs) or all(pair.same for pair in pairs):
        raise InvalidDocument("pairs of both kinds are needed: some that are the same, and some that are not")
    name, judged = asyncio.run(_judge(pairs, options))
    wanted = Wanted(options.guard, options.max_false_hits, options.threshold, options.other_languages)
    report = make_report(judged, name, wanted)
    for file in options.plot:
        write_plot(report, file)
    _print(report, options.output)
    return 0 if report.chosen else 1


def _pairs(files: Sequence[str]) -> list[LabelledPair]:
    if not files:
        return shipped_pairs()
    pairs: list[LabelledPair] = []
    for name in files:
        found = read_pairs(Path(name).read_text("utf-8"), name)
        if found.unlabelled:
            print(f"{name}: {found.unlabelled} rows without a label are left out", file=sys.stderr)
        pairs += found.pairs
    return pairs


def shipped_pairs() -> list[LabelledPair]:
    """Read the pairs that ship with the project."""
    text = (resources.files("cachewright.calibration") / SHIPPED).read_text("utf-8")
    return read_pairs(text, SHIPPED).pairs


async def _judge(pairs: Sequence[LabelledPair], options: argparse.Namespace) -> tuple[str, list[Judged]]:
    embedder = embedder_of(options)
    try:
        found = await similarities(embedder, [(pair.text_a, pair.text_b) for pair in pairs], _progress)
    finally:
        await embedder.aclose()
    every = tuple(GuardCheck)
    judged = [
        Judged(
            pair,
            similarity,
            frozenset(refusals(pair.text_a, pair.text_b, every, other_languages=options.other_languages)),
        )
        for pair, similarity in zip(pairs, found, strict=True)
    ]
    return f"{embedder.identity.provider} {embedder.identity.model}", judged


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(
            f"\rembedding: {done} of {of} texts", end="\n" if done == of else "", file=sys.stderr, flush=True
        )


def _print(report: Report, form: str) -> None:
    match form:
        case "json":
            print(json.dumps(as_json(report), indent=2))
        case "patch":
            if report.chosen is None and report.wanted.threshold is None:
                print(as_text(report), file=sys.stderr)
            else:
                print(yaml.safe_dump(patch(report), sort_keys=False), end="")
        case _:
            print(as_text(report))
