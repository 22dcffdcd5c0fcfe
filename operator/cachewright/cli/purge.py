"""`cachewright purge`: from the id of an entry to its end, or to what would go."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from cachewright.cli.admin_client import add_connection_arguments, ask, complain, show
from cachewright.errors import InvalidInput

EXAMPLES: Final = """\
examples:
  cachewright purge ID --token-file token
  cachewright purge ID --token-file token --yes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("id", help="`key` of an answer's Cache-Status header")
    parser.add_argument("--yes", action="store_true", help="remove it; without this, only tell what would go")
    add_connection_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Tell what would go, and with --yes remove it; the exit code is 1 where there is no such entry."""
    try:
        told = ask(options, "/purge", {"id": options.id, "dryRun": not options.yes})
    except InvalidInput as e:
        return complain(e)
    show(told)
    if not options.yes and told["found"]:
        print("nothing was removed: say --yes", file=sys.stderr)
    return 0 if told["found"] else 1
