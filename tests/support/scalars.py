"""Plain YAML scalars and what kubectl makes of them; the API tier asks kubectl itself."""

from __future__ import annotations

from typing import Final

SCALARS: Final[dict[str, object]] = {
    "2026-11-28": "2026-11-28",
    "2026-11-28T10:00:00Z": "2026-11-28T10:00:00Z",
    "yes": True,
    "No": False,
    "on": True,
    "y": True,
    "~": None,
    "null": None,
    "nUll": "nUll",
    "1:30": "1:30",
    "12": 12,
    "-7": -7,
    "+7": 7,
    "1_000": 1000,
    "010": 8,
    "0o10": 8,
    "0x1F": 31,
    "-0b11": -3,
    "08": 8.0,
    "1.5": 1.5,
    "1e3": 1000.0,
    ".5": 0.5,
    "1.": 1.0,
    "1Gi": "1Gi",
    "v1": "v1",
    "18446744073709551615": 18446744073709551615,
    "18446744073709551616": 18446744073709551616.0,
    "1.2.3": "1.2.3",
}
