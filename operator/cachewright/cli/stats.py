"""`cachewright stats`: from a gateway's admin port to JSON on stdout."""

from __future__ import annotations

import argparse
from typing import Final

from cachewright.cli.admin_client import add_connection_arguments, ask, complain, show
from cachewright.errors import InvalidInput

EXAMPLES: Final = """\
examples:
  kubectl get secret NAME-admin -o jsonpath='{.data.token}' | base64 -d > token
  cachewright stats --token-file token
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_connection_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print what one gateway did since it started."""
    try:
        show(ask(options, "/stats"))
    except InvalidInput as e:
        return complain(e)
    return 0
