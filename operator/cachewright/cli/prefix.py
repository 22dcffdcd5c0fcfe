"""`cachewright prefix`: what prefix caching can bring, and how it is turned on.

Called by `cli.main`; each of its two actions has a module of its own.
"""

from __future__ import annotations

import argparse
from typing import Final

from cachewright.cli import prefix_analyze, prefix_flags

EXAMPLES: Final = """\
examples:
  cachewright prefix analyze requests.jsonl
  cachewright prefix flags --engine VLLM --engine-version 0.32.0
  cachewright prefix ACTION --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the two actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    for name, summary, module in (
        ("analyze", "tell from a chat log what is shared, and what breaks it", prefix_analyze),
        ("flags", "print an engine's arguments that turn it on", prefix_flags),
    ):
        action = actions.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(action)
        action.set_defaults(run_action=module.run)


def run(options: argparse.Namespace) -> int:
    """Run the action and return its exit code."""
    return int(options.run_action(options))
