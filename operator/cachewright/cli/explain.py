"""`cachewright explain`: from two editions of a manifest to which layers lose their entries, and why.

Called by `cli.main`, before anybody applies the new edition. What happens is told by `reconcile.explanation`,
what is at stake in a running cache by `cli.explain_live`.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cachewright.cli.config_maps import Texts, config_map_texts
from cachewright.cli.explain_live import CLUSTER, LOCAL, LayerNumbers, Live, read_cluster, read_local
from cachewright.cli.manifests import Manifest
from cachewright.cli.options import add_files_argument, add_output_argument
from cachewright.cli.validate import STDIN, Report, findings, is_ours, manifests_in
from cachewright.errors import InvalidDocument, InvalidInput, InvalidSpec
from cachewright.reconcile.explanation import (
    ABSENT,
    UNKNOWN_KEY,
    Change,
    Explanation,
    Fate,
    LayerFate,
    explain,
    template_source,
    with_template_text,
)

EXAMPLES: Final = """\
examples:
  cachewright explain -f old.yaml -f new.yaml
  git show main:cache.yaml | cachewright explain -f - -f cache.yaml --output json
  cachewright explain --live -f cache.yaml
  cachewright explain --live --context production -n ml -f cache.yaml
  cachewright explain --live local -f cache.yaml

Two files (or directories) are compared object by object. With --live the one file is compared with what runs:
in the cluster that kubectl reaches, or in a running `cachewright local`; then entries and hit rates are told,
and whether a retained keyspace comes back. Nothing is changed.

exit code:
  0  no layer loses its entries
  2  a file cannot be read or breaks a rule, or what runs cannot be asked
  3  at least one layer loses its entries
"""

COSTS: Final = 3
FAILED: Final = 2

_SENTENCES: Final = {
    Fate.SURVIVES: "keeps its entries",
    Fate.ROTATES: "starts empty; what it has is retained and comes back if the change is undone in time",
    Fate.RETURNS: "takes back the entries that it had before",
    Fate.REVOKED: "starts empty; what it has is deleted at once, and undoing the change brings nothing back",
    Fate.STARTS: "is new and starts empty",
    Fate.ENDS: "ends, and what it has is no longer used",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """One object, and what the change does to it."""

    cache: str
    """namespace/name."""
    explanation: Explanation
    live: Live | None = None

    def numbers(self, layer: str) -> LayerNumbers:
        """What is known of a layer as it runs."""
        return self.live.numbers.get(layer, LayerNumbers()) if self.live else LayerNumbers()


@dataclass(slots=True)
class _Editions:
    """The objects of one side, by namespace/name."""

    file: str
    found: dict[str, tuple[str, Manifest]] = field(default_factory=dict)
    templates: Texts = field(default_factory=dict)
    """Texts of ConfigMaps in the same files."""

    def template(self, document: dict[str, Any]) -> str | None:
        """Return the text of an object's prompt template; None where it stands in none of the files."""
        source = template_source(document)
        return self.templates.get(source) if source else None

    def with_template(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return an object with its prompt template's text filled in."""
        return with_template_text(document, self.template(document))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_files_argument(
        parser, "old and new edition, in this order; with --live the new one alone; - for standard input"
    )
    parser.add_argument(
        "--live",
        nargs="?",
        const=CLUSTER,
        choices=[CLUSTER, LOCAL],
        help="compare with what runs, in the cluster (the default) or in `cachewright local`",
    )
    parser.add_argument("-n", "--namespace", help="with --live: where the file names none")
    parser.add_argument("--context", help="with --live: kubectl's context")
    parser.add_argument("--kubectl", default="kubectl", metavar="PATH", help="with --live: which kubectl")
    parser.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="with --live local: as `cachewright local` was told"
    )
    add_output_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Compare, print what was found, and return the exit code."""
    try:
        explained = _against_live(options) if options.live else _against_file(options)
    except InvalidInput as e:
        print(e, file=sys.stderr)
        return FAILED
    _print_json(explained) if options.output == "json" else _print_text(explained)
    return COSTS if any(each.explanation.costs for each in explained) else 0


def _against_file(options: argparse.Namespace) -> list[Explained]:
    if len(options.files) != 2:
        raise InvalidInput("explain takes two -f, the old edition and the new one, or --live and one -f")
    old_file, new_file = options.files
    if old_file == new_file == STDIN:
        raise InvalidInput("standard input can be read once only: give one of the two -f a file")
    old, new = _read(old_file), _read(new_file)
    shared = sorted(old.found.keys() & new.found.keys())
    if not shared:
        raise InvalidInput(
            f"no InferenceCache is in both: {old_file} has {_names(old)}, {new_file} has {_names(new)}"
        )
    explained = []
    for name in shared:
        file, manifest = new.found[name]
        former = old.found[name][1].value
        _refuse_broken(file, manifest, former)
        before, after = old.with_template(former), new.with_template(manifest.value)
        explained.append(Explained(name, explain(before, after)))
    return explained


def _against_live(options: argparse.Namespace) -> list[Explained]:
    if len(options.files) != 1:
        raise InvalidInput("explain --live takes one -f, the new edition")
    new = _read(options.files[0])
    if not new.found:
        raise InvalidInput(f"{options.files[0]}: there is no InferenceCache")
    explained = []
    for _, (file, manifest) in sorted(new.found.items()):
        name, namespace = _identity(manifest)
        if options.live == LOCAL:
            live = read_local(name, options.state_dir)
        else:
            live = read_cluster(
                name, namespace or options.namespace, kubectl=options.kubectl, context=options.context
            )
        _refuse_broken(file, manifest, live.document)
        old = live.enacted(with_template_text(live.document, live.template(live.document)))
        text = new.template(manifest.value) or live.template(manifest.value)
        wanted = live.enacted(with_template_text(manifest.value, text))
        told = explain(old, wanted, live.record, live.key_id or UNKNOWN_KEY, live.now)
        explained.append(Explained(live.cache, told, live))
    return explained


def _read(name: str) -> _Editions:
    """Read the valid InferenceCaches of a file or directory; raises InvalidInput."""
    report = Report()
    editions = _Editions(name)
    others: list[tuple[str, Any]] = []
    for file, manifest in manifests_in([name], report):
        others.append((file, manifest.value))
        if is_ours(manifest.value):
            _refuse_broken(file, manifest, None)
            own, namespace = _identity(manifest)
            editions.found[f"{namespace or 'default'}/{own}"] = file, manifest
    if report.unreadable:
        raise InvalidDocument("\n".join(f"{each.file}: {each.message}" for each in report.unreadable))
    editions.templates = config_map_texts(others)
    return editions


def _refuse_broken(file: str, manifest: Manifest, former: Any) -> None:  # noqa: ANN401 - JSON
    if problems := list(findings(file, manifest, former)):
        raise InvalidSpec("\n".join(map(str, problems)))


def _identity(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest.value["metadata"]
    return str(metadata["name"]), str(metadata.get("namespace") or "")


def _names(editions: _Editions) -> str:
    return ", ".join(sorted(editions.found)) or "none"


def _print_text(explained: list[Explained]) -> None:
    for each in explained:
        print(f"{each.cache}: {_count(len(each.explanation.changes), 'field')} changed")
        for layer in each.explanation.layers:
            print(f"  {layer.layer} {_SENTENCES[layer.fate]}")
            for line in _details(each, layer):
                print(f"    {line}")
        if each.explanation.waits_for:
            print(f"  the switch waits until all pods of {each.explanation.waits_for} run the new version")
        harmless = _harmless(each.explanation)
        if harmless:
            print(f"  no matter to any entry: {', '.join(change.path for change in harmless)}")
    losing = sum(layer.fate.costs for each in explained for layer in each.explanation.layers)
    print(f"{_count(losing, 'layer')} would lose entries in use" if losing else "no layer loses its entries")


def _details(each: Explained, layer: LayerFate) -> list[str]:
    lines = [f"because of {change}" for change in layer.causes]
    if each.live is None:
        return lines
    if each.live.record and layer.before and layer.fate.costs:
        into = f" → {layer.after}" if layer.after else ""
        lines.append(f"keyspace {layer.before}{into}")
    numbers = each.numbers(layer.layer)
    if numbers.entries is not None:
        lines.append(f"entries at the last sweep: {numbers.entries:,}")
    if numbers.hit_rate is not None:
        lines.append(f"hit rate: {numbers.hit_rate:.0%} of {numbers.lookups:,} look-ups")
    return lines


def _harmless(explanation: Explanation) -> list[Change]:
    causes = [change for layer in explanation.layers for change in layer.causes]
    return [change for change in explanation.changes if change not in causes]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print_json(explained: list[Explained]) -> None:
    document = {
        "rotates": any(each.explanation.costs for each in explained),
        "caches": [_cache_json(each) for each in explained],
    }
    print(json.dumps(document, indent=2, ensure_ascii=False))


def _cache_json(each: Explained) -> dict[str, Any]:
    return {
        "cache": each.cache,
        "changes": [
            {"path": change.path, "before": _plain(change.before), "after": _plain(change.after)}
            for change in each.explanation.changes
        ],
        "layers": [_layer_json(each, layer) for layer in each.explanation.layers],
        "waitsFor": each.explanation.waits_for or None,
    }


def _layer_json(each: Explained, layer: LayerFate) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": layer.layer,
        "fate": str(layer.fate),
        "losesEntries": layer.fate.costs,
        "causes": [change.path for change in layer.causes],
    }
    if each.live:
        numbers = each.numbers(layer.layer)
        is_named = each.live.record is not None
        told["keyspace"] = {
            "before": str(layer.before) if is_named and layer.before else None,
            "after": str(layer.after) if is_named and layer.after else None,
        }
        told |= {"entries": numbers.entries, "hitRate": numbers.hit_rate, "lookups": numbers.lookups}
    return told


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return None if value is ABSENT else value
