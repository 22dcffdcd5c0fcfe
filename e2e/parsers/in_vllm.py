"""Runs in vLLM's own environment: reads lists of words, tells what its parser makes of each.

Takes the names of nothing of this project, whose package is not installed there.
"""

import contextlib
import io
import json
import sys

import vllm.platforms
from vllm.platforms.cpu import CpuPlatform

# Without a GPU the package finds no device at all; the parser is the same on each.
vllm.platforms._current_platform = CpuPlatform()  # noqa: SLF001 - no other way without a GPU

from vllm.entrypoints.launchers.cli_args import make_arg_parser  # noqa: E402 - after the platform
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402

told: list[str | None] = []
for words in json.load(sys.stdin):
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            make_arg_parser(FlexibleArgumentParser()).parse_args(words)
        told.append(None)
    except SystemExit:
        told.append(complaint.getvalue().strip().splitlines()[-1])
print("\n" + json.dumps(told))
