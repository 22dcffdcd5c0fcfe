"""`cachewright local`: serves a manifest on one machine, without a cluster.

Called by `cli.main`. Reads and checks the files here, by the code of `cachewright validate`; everything else
is `cachewright.local`'s.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvloop

from cachewright.api.durations import DURATION_PATTERN, parse_duration_seconds
from cachewright.api.model import URL_PATTERN
from cachewright.cli.config_maps import config_map_texts
from cachewright.cli.manifests import Manifest
from cachewright.cli.options import add_files_argument, add_output_argument
from cachewright.cli.validate import STDIN, Report, files_in, findings, is_ours, manifests_in, shown
from cachewright.crd.validation import load
from cachewright.errors import InvalidDocument, InvalidInput, InvalidSpec, LocalError
from cachewright.gateway.main import configure_logs
from cachewright.local.declared import Declared, Source
from cachewright.local.keeper import modified
from cachewright.local.secret_options import SecretOption
from cachewright.local.session import FROM_MANIFEST, LocalOptions, LocalSession
from cachewright.local.store_choice import check_store
from cachewright.reconcile.explanation import template_source

EXAMPLES: Final = """\
examples:
  cachewright local -f examples/quickstart.yaml
  cachewright local -f cache.yaml --upstream http://localhost:8000/v1
  cachewright local -f cache.yaml --upstream manifest --secret openai/token=env:OPENAI_API_KEY
  cachewright local -f cache.yaml --port 0 --output json

Without --upstream a stand-in model answers. An edit of the file takes effect at once; a wrong one is told and
leaves the last good one in use.

exit code:
  0  stopped by Ctrl-C or SIGTERM
  1  the InferenceCache breaks a rule
  2  the command line is wrong, a file cannot be read, or a Secret is missing
  3  it cannot start: a port is in use, no such store, the state folder is in use
"""

_STARTING_FAILED: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_files_argument(
        parser, "file with the InferenceCache, and Secrets if you like; - for standard input; may be repeated"
    )
    parser.add_argument("--name", help="which InferenceCache, where the files have several")
    parser.add_argument(
        "--upstream",
        type=_upstream,
        metavar="URL|manifest",
        help="where misses go: an OpenAI-compatible base URL, or the manifest's own (default: a stand-in)",
    )
    parser.add_argument(
        "--latency",
        type=_seconds,
        default="600ms",
        metavar="DURATION",
        help="time of each of the stand-in's answers (default: %(default)s)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=8080, help="traffic port; 0: any (default: %(default)s)"
    )
    parser.add_argument(
        "--management-port", type=_port, default=0, help="health and metrics (default: any free one)"
    )
    parser.add_argument(
        "--store",
        type=_store,
        default="auto",
        metavar="auto|valkey|redis|memory|URL",
        help="where entries are kept (default: a private Valkey or Redis if one is found, else memory)",
    )
    parser.add_argument(
        "--secret",
        action="append",
        type=_secret,
        default=[],
        dest="secrets",
        metavar="NAME/KEY=VALUE",
        help="a Secret that the manifest refers to: @FILE, env:VARIABLE or the value; may be repeated",
    )
    state = parser.add_mutually_exclusive_group()
    state.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="where key and record are kept (default: $XDG_STATE_HOME/cachewright/local/NAME)",
    )
    state.add_argument("--ephemeral", action="store_true", help="keep nothing")
    add_output_argument(parser, told="json: one line when ready, for scripts")
    parser.add_argument("--plain", action="store_true", help="lines in place of the live view")
    parser.add_argument(
        "--interval",
        type=_seconds,
        default="10s",
        metavar="DURATION",
        help="between lines (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop, and return the exit code."""
    files = _Files(tuple(options.files), options.name)
    try:
        declared = files.read(None)
        source = Source(files.read, files.signature, ", ".join(shown(name) for name in files.names))
        configure_logs("console", "warning", sys.stderr)
        uvloop.run(LocalSession(source, declared, _local_options(options)).run())
    except InvalidSpec as e:
        return _failed(e, 1)
    except InvalidInput as e:
        return _failed(e, 2)
    except LocalError as e:
        return _failed(e, _STARTING_FAILED)
    except asyncio.CancelledError:  # a second Ctrl-C
        return 0
    return 0


def _local_options(options: argparse.Namespace) -> LocalOptions:
    return LocalOptions(
        host=options.host,
        port=options.port,
        management_port=options.management_port,
        state_dir=options.state_dir,
        ephemeral=options.ephemeral,
        store=options.store,
        upstream=options.upstream,
        latency_seconds=options.latency,
        secrets=tuple(options.secrets),
        output=options.output,
        plain=options.plain,
        interval_seconds=options.interval,
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """The manifest's files."""

    names: tuple[str, ...]
    cache_name: str | None

    def signature(self) -> tuple[object, ...]:
        """Return what changes when a file does; standard input never does."""
        files = [file for name in self.names for file in files_in(name) if file != STDIN]
        return tuple((file, modified(Path(file))) for file in files)

    def read(self, in_use: Declared | None) -> Declared:
        """Read and check everything; raises InvalidSpec with each problem's line, and InvalidDocument."""
        report = Report()
        manifests = list(manifests_in(list(self.names), report))
        if report.unreadable:
            raise InvalidDocument("\n".join(f"{each.file}: {each.message}" for each in report.unreadable))
        file, manifest = self._chosen([each for each in manifests if is_ours(each[1].value)])
        report.checked = 1
        report.problems += findings(file, manifest, in_use.document if in_use else None)
        if report.problems:
            raise InvalidSpec("\n".join([*map(str, report.problems), report.summary]))
        cache = load(manifest.value)
        texts = config_map_texts((file, each.value) for file, each in manifests)
        source = template_source(manifest.value)
        template = texts.get(source) if source else None
        return Declared(cache, manifest.value, dict(_secrets(manifests)), template)

    def _chosen(self, caches: list[tuple[str, Manifest]]) -> tuple[str, Manifest]:
        where = ", ".join(shown(name) for name in self.names)
        found = [each for each in caches if self.cache_name in (None, _name(each[1].value))]
        if len(found) == 1:
            return found[0]
        names = ", ".join(sorted(_name(manifest.value) for _, manifest in caches))
        if not caches:
            raise InvalidDocument(f"{where}: there is no InferenceCache")
        if not found:
            raise InvalidDocument(f"{where}: there is no InferenceCache {self.cache_name}; there is {names}")
        raise InvalidDocument(
            f"{where}: there are {len(found)} InferenceCaches; choose one with --name: {names}"
        )


def _name(document: Any) -> str:  # noqa: ANN401 - whatever a person wrote
    metadata = document.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else "?"


def _secrets(manifests: list[tuple[str, Manifest]]) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Give the values of Secret objects, as the API server would hold them."""
    for file, manifest in manifests:
        value = manifest.value
        if not isinstance(value, dict) or (value.get("apiVersion"), value.get("kind")) != ("v1", "Secret"):
            continue
        name = _name(value)
        for part, decode in (("data", _from_base64), ("stringData", str.encode)):
            entries = value.get(part) or {}
            try:
                yield from (((name, str(key)), decode(text)) for key, text in entries.items())
            except (AttributeError, TypeError, binascii.Error):
                raise InvalidDocument(f"{shown(file)}: Secret {name}: {part} does not parse") from None


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _failed(error: Exception, code: int) -> int:
    print(error, file=sys.stderr)
    return code


def _upstream(text: str) -> str:
    if text == FROM_MANIFEST or re.fullmatch(URL_PATTERN, text):
        return text
    raise argparse.ArgumentTypeError("must be a URL such as http://localhost:8000/v1, or manifest")


def _seconds(text: str) -> float:
    if not re.fullmatch(DURATION_PATTERN, text):
        raise argparse.ArgumentTypeError("must be a duration such as 600ms, 2s or 1m")
    return parse_duration_seconds(text)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a port from 0 to 65535")
    return int(text)


def _store(text: str) -> str:
    try:
        check_store(text)
    except InvalidInput as e:
        raise argparse.ArgumentTypeError(str(e)) from e
    return text


def _secret(text: str) -> SecretOption:
    try:
        return SecretOption.parse(text)
    except InvalidInput as e:
        raise argparse.ArgumentTypeError(str(e)) from e
