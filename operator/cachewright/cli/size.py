"""`cachewright size`: from a manifest and what it is to hold to the memory and disk of its stores.

Called by `cli.main`. The arithmetic is in the package `sizing`.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

import yaml

from cachewright.cli.manifests import Manifest
from cachewright.cli.options import add_files_argument, add_output_argument
from cachewright.cli.validate import Report, findings, is_ours, manifests_in
from cachewright.crd.validation import load
from cachewright.errors import InvalidDocument, InvalidInput, InvalidSpec
from cachewright.sizing.estimate import Estimate, estimate
from cachewright.sizing.load import Load
from cachewright.sizing.report import Prices, as_json, as_text, patch

EXAMPLES: Final = """\
examples:
  cachewright size -f cache.yaml --entries 500k --answer-bytes 2000
  cachewright size -f cache.yaml --entries 500k --answer-bytes 2000 --embeddings 2M
  cachewright size -f cache.yaml --entries 500k --answer-bytes 2000 --prices memory=3.50,disk=0.10
  cachewright size -f cache.yaml --entries 500k --answer-bytes 2000 --output patch > patch.yaml
  kubectl patch icache support-bot --type merge --patch-file patch.yaml

Entries are answers that are alive at one time: new questions in an hour, times the hours of the ttl.
An answer is stored as the client got it: some 4 to 5 bytes a token for a whole one; a stream is kept as its
events, 150 to 250 bytes a token. `cachewright stats` tells the entries of a running cache.
What is retained beside the keyspace in use is counted as full; --retained 0 is for a cache that is never
rotated. Figures are within a quarter of what real servers need; see docs/stores.md.

exit code:
  0  every managed store is declared large enough
  2  a file or an option is of no use
  3  a managed store is declared too small
"""

TOO_SMALL: Final = 3
FAILED: Final = 2

_FACTORS: Final = {"k": 1000, "M": 1_000_000}
_MOST: Final = 10_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_files_argument(
        parser, "file or directory with InferenceCaches, - for standard input; may be repeated"
    )
    parser.add_argument(
        "--entries", type=_count, required=True, metavar="N", help="answers alive at one time, such as 500k"
    )
    parser.add_argument(
        "--answer-bytes",
        type=_count,
        default=2000,
        metavar="N",
        help="mean size of an answer as it is stored (default: 2000)",
    )
    parser.add_argument(
        "--question-bytes",
        type=_count,
        default=200,
        metavar="N",
        help="mean size of a question that is compared (default: 200)",
    )
    parser.add_argument(
        "--dimensions",
        type=_count,
        default=0,
        metavar="N",
        help="of the embedder's vectors; checked against the object, which says it",
    )
    parser.add_argument(
        "--embeddings",
        type=_count,
        metavar="N",
        help="texts whose vectors are kept for clients, with layers.embedding (default: as many as entries)",
    )
    parser.add_argument(
        "--retained",
        type=_count,
        metavar="N",
        help="keyspaces kept for a rollback (default: 1, or 0 where rotation.maxRetained is 0)",
    )
    parser.add_argument(
        "--prices",
        type=_prices,
        metavar="memory=P,disk=P",
        help="of a GiB in a month; costs are told in the same money",
    )
    add_output_argument(parser, "patch")


def run(options: argparse.Namespace) -> int:
    """Work out every object of the files, print what it needs, and return the exit code."""
    try:
        told = [_estimated(file, manifest, options) for file, manifest in _caches(options)]
    except InvalidInput as e:
        print(e, file=sys.stderr)
        return FAILED
    _print(told, options)
    return 0 if all(each.is_enough for _, each in told) else TOO_SMALL


def _caches(options: argparse.Namespace) -> list[tuple[str, Manifest]]:
    report = Report()
    read = manifests_in(options.files, report)
    found = [(file, manifest) for file, manifest in read if is_ours(manifest.value)]
    if report.unreadable:
        raise InvalidDocument("\n".join(f"{each.file}: {each.message}" for each in report.unreadable))
    if not found:
        raise InvalidInput("there is no InferenceCache in what was given")
    if options.output == "patch" and len(found) > 1:
        raise InvalidInput("--output patch takes files with one InferenceCache")
    return found


def _estimated(file: str, manifest: Manifest, options: argparse.Namespace) -> tuple[str, Estimate]:
    if problems := list(findings(file, manifest, None)):
        raise InvalidSpec("\n".join(map(str, problems)))
    cache = load(manifest.value)
    retained = min(1, cache.spec.rotation.max_retained) if options.retained is None else options.retained
    wanted = Load(
        entries=options.entries,
        answer_bytes=options.answer_bytes,
        question_bytes=options.question_bytes,
        dimensions=options.dimensions,
        embeddings=options.entries if options.embeddings is None else options.embeddings,
        retained=retained,
    )
    namespace = manifest.value["metadata"].get("namespace") or "default"
    return f"{namespace}/{cache.metadata.name}", estimate(cache.spec, wanted)


def _print(told: list[tuple[str, Estimate]], options: argparse.Namespace) -> None:
    match options.output:
        case "patch":
            print(yaml.safe_dump(patch(told[0][1]), sort_keys=False), end="")
        case "json":
            caches = [as_json(name, each, options.prices) for name, each in told]
            print(json.dumps({"caches": caches}, indent=2))
        case _:
            print("\n\n".join(as_text(name, each, options.prices) for name, each in told))


def _count(text: str) -> int:
    """Read a number such as 500000, 500k or 2M."""
    number, factor = text.replace("_", "").replace(",", ""), 1
    if number[-1:] in _FACTORS:
        number, factor = number[:-1], _FACTORS[number[-1]]
    try:
        count = round(float(number) * factor)
    except (ValueError, OverflowError):
        count = -1
    if not 0 <= count <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 500000, 500k or 2M")
    return count


def _prices(text: str) -> Prices:
    """Read prices such as `memory=3.50,disk=0.10`."""
    try:
        given = {
            name.strip(): float(price) for name, _, price in (pair.partition("=") for pair in text.split(","))
        }
    except ValueError:
        given = {}
    if given.keys() != {"memory", "disk"} or not all(0 <= price < float("inf") for price in given.values()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form memory=3.50,disk=0.10")
    return Prices(given["memory"], given["disk"])
