"""Command line of the image builder: `python -m e2e.cluster.images build|list|clean`."""

import argparse
import shutil
import sys
from typing import get_args

from e2e.cluster import cache
from e2e.cluster.errors import ClusterError
from e2e.cluster.images.builders import run_root
from e2e.cluster.images.recipes import RECIPES, Builder, target
from e2e.cluster.images.store import archive_of, default_builder, ensure

EXAMPLES = """examples:
  python -m e2e.cluster.images build                      build every image that is missing
  python -m e2e.cluster.images build cachewright engine   these two, and the base below them
  python -m e2e.cluster.images list                       reference, size and archive of each
  python -m e2e.cluster.images clean                      remove all archives, logs and layers
"""


def main() -> int:
    """Parse the command line and run it; 1 means that a build failed."""
    parser = argparse.ArgumentParser(
        prog="python -m e2e.cluster.images",
        description="Builds the test cluster's images without a registry.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--builder", choices=get_args(Builder), help="default: docker if its daemon answers")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build what is missing")
    build.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(RECIPES)}")
    commands.add_parser("list", help="show each image")
    commands.add_parser("clean", help="remove everything built")
    arguments = parser.parse_args()
    builder: Builder = arguments.builder or default_builder()
    if arguments.command == "clean":
        for folder in (cache.images(), run_root(cache.images())):
            shutil.rmtree(folder, ignore_errors=True)
        return 0
    if arguments.command == "list":
        show(builder)
        return 0
    try:
        images = ensure(arguments.names or RECIPES, builder)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for image in images.values():
        print(f"{image.reference}\t{image.archive}")
    return 0


def show(builder: Builder) -> None:
    """Print one line per recipe."""
    for name in RECIPES:
        wanted = target(name, builder)
        archive = archive_of(wanted)
        size = f"{archive.stat().st_size / 1e6:.0f} MB" if archive.exists() else "not built"
        print(f"{wanted.reference:40} {size:>10}  {archive}")


if __name__ == "__main__":
    sys.exit(main())
