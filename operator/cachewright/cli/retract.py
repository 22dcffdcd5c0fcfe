"""`cachewright retract`: from what answers have in common to their end, or to how many would go."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from cachewright.cli.admin_client import add_connection_arguments, ask, complain, show
from cachewright.errors import InvalidInput

EXAMPLES: Final = """\
examples:
  cachewright retract --document manual-7 --token-file token
  cachewright retract --document manual-7 --token-file token --yes
  cachewright retract --tenant acme --token-file token --yes
  cachewright retract --layer Exact --token-file token --yes

One gateway does it for all of a cache, at once and whatever the number of answers.
It takes two seconds, after which no gateway serves any of them from its memory either.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--tenant", metavar="NAME", help="all answers of a tenant, as its requests name it")
    what.add_argument("--document", metavar="ID", help="all answers that may quote a document, of any tenant")
    what.add_argument("--role", metavar="NAME", help="all answers for a role, of any tenant")
    what.add_argument(
        "--user", metavar="NAME", help="all answers for an end user, of any tenant; needs tenancy.user"
    )
    what.add_argument("--layer", metavar="NAME", help="all answers of a layer, such as Exact")
    what.add_argument("--all", action="store_true", help="all answers of the cache")
    what.add_argument("--id", metavar="ID", help="one answer, by the `key` of its Cache-Status header")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="only count what would go; the default")
    how.add_argument("--yes", action="store_true", help="retract")
    add_connection_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Count what would go, and with --yes retract it; the exit code is 1 where that failed."""
    wanted = {
        name: value
        for name in ("tenant", "document", "role", "user", "layer", "all", "id")
        if (value := getattr(options, name))
    }
    try:
        told = ask(options, "/retract", {**wanted, "dryRun": not options.yes})
    except InvalidInput as e:
        return complain(e)
    show(told)
    if not options.yes:
        print("nothing was retracted: say --yes", file=sys.stderr)
    return 0
