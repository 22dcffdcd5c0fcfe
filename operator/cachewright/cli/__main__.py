"""`python -m cachewright.cli`: the same as the console script `cachewright`."""

from __future__ import annotations

import sys

from cachewright.cli.main import main

sys.exit(main())
