"""Options that several commands have, so that each is called and told alike."""

from __future__ import annotations

import argparse


def add_files_argument(parser: argparse.ArgumentParser, told: str) -> None:
    """Declare the option that names the files of every command that reads objects; `told` is its help."""
    parser.add_argument(
        "-f", "--filename", action="append", required=True, dest="files", metavar="FILE", help=told
    )


def add_output_argument(
    parser: argparse.ArgumentParser, *further: str, told: str = "form of the result (default: text)"
) -> None:
    """Declare the option that chooses text, JSON, or one of the further forms that a command has."""
    parser.add_argument("-o", "--output", choices=["text", "json", *further], default="text", help=told)
