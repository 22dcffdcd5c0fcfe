"""Runs in SGLang's own environment: reads lists of words, tells what its parser makes of each."""

import argparse
import contextlib
import io
import json
import sys

from sglang.srt.server_args import ServerArgs

told: list[str | None] = []
for words in json.load(sys.stdin):
    complaint = io.StringIO()
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    try:
        with contextlib.redirect_stderr(complaint):
            parser.parse_args(["--model-path", "m", *words])
        told.append(None)
    except SystemExit:
        told.append(complaint.getvalue().strip().splitlines()[-1])
print("\n" + json.dumps(told))
