"""`cachewright prefix flags`: from an engine and its version to the arguments that turn its prefix cache on.

Called by `cli.prefix`. With the arguments that the engine is started with today, it also names what in them
is in the way, and prints the whole line as it should be.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import Any, Final

from cachewright.api.quantities import parse_bytes
from cachewright.cli.options import add_output_argument
from cachewright.engines.arguments import merge
from cachewright.engines.configuration import EngineConfiguration
from cachewright.engines.configuring import configure, is_known_version
from cachewright.engines.settings import Connector, Engine, Eviction, HashAlgorithm, PrefixSettings
from cachewright.engines.tensorrt_llm import FILE_PATH
from cachewright.engines.triton import RESPONSE_CACHE
from cachewright.engines.versions import EngineVersion
from cachewright.errors import InvalidInput

EXAMPLES: Final = """\
examples:
  cachewright prefix flags --engine VLLM --engine-version 0.32.0 --block-size 32
  cachewright prefix flags --engine SGLang --engine-version 0.5.23 -- --model-path m --disable-radix-cache
  cachewright prefix flags --engine TensorRTLLM --engine-version 1.3.0 --host-memory 64Gi

Without "-- ARG ..." only what has to be added is printed; with it, the whole line as it should be.

exit code:
  0  done
  1  an argument is in the way; standard error names it, and the printed line has it no more
  2  the engine, or its version, cannot do what is asked
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--engine", required=True, choices=[str(engine) for engine in Engine])
    parser.add_argument("--engine-version", required=True, metavar="VERSION", help="such as 0.32.0")
    parser.add_argument("--block-size", type=int, metavar="TOKENS", help="tokens in a block")
    parser.add_argument("--hash-algorithm", choices=[str(name) for name in HashAlgorithm])
    parser.add_argument("--eviction", choices=[str(name) for name in Eviction])
    parser.add_argument("--gpu-memory-share", type=float, metavar="SHARE", help="above 0, up to 1")
    parser.add_argument(
        "--host-memory", metavar="QUANTITY", help="second tier in the host's memory, such as 64Gi"
    )
    parser.add_argument("--connector", choices=[str(name) for name in Connector])
    parser.add_argument("--disk-size", metavar="QUANTITY", help="third tier, TensorRT-LLM only")
    parser.add_argument("--disk-path", metavar="PATH")
    parser.add_argument("--events-endpoint", metavar="URL", help="publish block events, such as tcp://*:5557")
    parser.add_argument("--response-cache", metavar="QUANTITY", help="size of Triton's response cache")
    parser.add_argument(
        "--no-cached-tokens", action="store_true", help="do not report cached tokens in each answer's usage"
    )
    add_output_argument(parser)
    parser.add_argument(
        "arguments", nargs="*", metavar="-- ARG", help="the engine's arguments as they are today"
    )


def run(options: argparse.Namespace) -> int:
    """Print arguments, file and what is in the way; 0, 1 where something is, 2 where it cannot be done."""
    try:
        engine, version = Engine(options.engine), EngineVersion.parse(options.engine_version)
        configuration = configure(engine, version, _settings(options))
    except InvalidInput as e:
        print(f"cachewright prefix flags: {e}", file=sys.stderr)
        return 2
    if not is_known_version(engine, version):
        print(f"{engine} {version} is newer than what is known here; check its --help", file=sys.stderr)
    told = _told(configuration, options.arguments)
    if options.output == "json":
        print(json.dumps(told, indent=2))
    else:
        _print_text(engine, configuration, told)
    return 1 if told["contradictions"] else 0


def _settings(options: argparse.Namespace) -> PrefixSettings:
    share = options.gpu_memory_share
    if share is not None and not 0 < share <= 1:
        raise InvalidInput("--gpu-memory-share must be above 0 and at most 1")
    if options.block_size is not None and options.block_size < 1:
        raise InvalidInput("--block-size must be at least 1")
    return PrefixSettings(
        block_size=options.block_size,
        hash_algorithm=HashAlgorithm(options.hash_algorithm) if options.hash_algorithm else None,
        eviction=Eviction(options.eviction) if options.eviction else None,
        gpu_memory_share=share,
        host_memory_bytes=_bytes(options.host_memory),
        connector=Connector(options.connector) if options.connector else None,
        disk_bytes=_bytes(options.disk_size),
        disk_path=options.disk_path,
        events_endpoint=options.events_endpoint,
        report_cached_tokens=not options.no_cached_tokens,
        response_cache_bytes=_bytes(options.response_cache),
    )


def _bytes(quantity: str | None) -> int | None:
    return None if quantity is None else parse_bytes(quantity)


def _told(configuration: EngineConfiguration, arguments: list[str]) -> dict[str, Any]:
    merged = merge(arguments, configuration)
    return {
        "arguments": list(configuration.words),
        "commandLine": list(merged.words),
        "contradictions": [{"argument": c.word, "why": c.why} for c in merged.contradictions],
        "file": configuration.file,
    }


def _print_text(engine: Engine, configuration: EngineConfiguration, told: dict[str, Any]) -> None:
    for contradiction in told["contradictions"]:
        print(f"in the way: {contradiction['argument']}: {contradiction['why']}", file=sys.stderr)
    print(" ".join(shlex.quote(word) for word in told["commandLine"]))
    if configuration.file:
        print(f"\n# {FILE_PATH}\n{configuration.file_text()}", end="")
    if engine is Engine.TRITON:
        print(f"\n# in each stateless model's config.pbtxt\n{RESPONSE_CACHE}")
