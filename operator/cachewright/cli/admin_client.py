"""A client of a gateway's admin port, for `stats`, `purge` and `retract`. Standard library only."""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from cachewright.errors import InvalidInput

TIMEOUT_SECONDS: Final = 15.0
"""A purge answers after two seconds, since it waits for every replica; a count takes eight at most."""


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the admin port is and what opens it."""
    parser.add_argument(
        "--url",
        default="http://127.0.0.1:9091",
        help="address of the admin port, through `kubectl port-forward` for one (default: %(default)s)",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        required=True,
        metavar="FILE",
        help="file with the token of the Secret NAME-admin; /dev/stdin to pipe it in",
    )


def ask(options: argparse.Namespace, path: str, document: Any = None) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Ask the admin port, by POST where there is a document; raises InvalidInput with what went wrong."""
    try:
        token = options.token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise InvalidInput(f"the token cannot be read: {e}") from e
    url = options.url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("--url must begin with http:// or https://")
    request = urllib.request.Request(  # noqa: S310 - checked above
        url + path,
        data=None if document is None else json.dumps(document).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - checked above
            answer: dict[str, Any] = json.load(response)
            return answer
    except urllib.error.HTTPError as e:
        raise InvalidInput(_told(e)) from e
    except (OSError, ValueError) as e:
        raise InvalidInput(f"{options.url} gives no answer: {e}") from e


def show(document: Any) -> None:  # noqa: ANN401 - JSON
    """Print a document as JSON."""
    json.dump(document, sys.stdout, indent=2)
    print()


def complain(error: InvalidInput) -> int:
    """Say on stderr what went wrong; returns the exit code."""
    print(error, file=sys.stderr)
    return 1


def _told(error: urllib.error.HTTPError) -> str:
    try:
        return f"{error.code}: {json.load(error)['error']['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{error.code}: {error.reason}"
