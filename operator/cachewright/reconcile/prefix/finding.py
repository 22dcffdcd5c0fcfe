"""What is to be said of an engine's prefix cache. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cachewright.api.conditions import Reason


@dataclass(frozen=True, slots=True)
class PrefixFinding:
    """A status of PrefixCachingReady, with its reason and sentence."""

    reason: Reason
    message: str
    status: Literal["True", "False", "Unknown"] = "False"
