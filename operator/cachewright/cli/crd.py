"""`cachewright crd`: prints the CustomResourceDefinition, for `kubectl apply -f -`. Called by `cli.main`."""

from __future__ import annotations

import argparse
import sys

from cachewright.crd.manifest import crd_yaml


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the CRD has no options."""
    del parser


def run(options: argparse.Namespace) -> int:
    """Print the CRD."""
    del options
    sys.stdout.write(crd_yaml())
    return 0
