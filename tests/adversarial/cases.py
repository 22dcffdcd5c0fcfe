"""The adversarial set: from the YAML files in `cases/` to pairs of whole requests.

Each case is a pair (a, b) of one structural class. Below `share: true` the two must share an answer,
everywhere else they must not. Used by `runner`, which sends them to a gateway, and by the tests of the set.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parent / "cases"
CHAT: Final = "/v1/chat/completions"
MODEL: Final = "llama"
ALIAS: Final = "llama-8b"
TENANT: Final = "acme"
ROLE: Final = "admin"
TENANT_HEADER: Final = "X-Tenant-Id"
ROLE_HEADER: Final = "X-User-Role"
ARM: Final = "control"
ARM_HEADER: Final = "X-Experiment-Arm"
VARY_HEADER: Final = "X-Prompt-Variant"

MARK: Final = "{case}"
"""Stands for a text of its own in each run and case, so that no case meets the answers of another."""

_FIELDS: Final = frozenset(
    {"tenant", "role", "arm", "headers", "path", "query", "set", "unset", "messages", "raw"}
)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it goes over the wire, but for the mark."""

    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: str

    def marked(self, mark: str) -> bytes:
        """Return the body with the mark of a run and case."""
        return self.body.replace(MARK, mark).encode()


@dataclass(frozen=True, slots=True)
class Case:
    """Two requests, and whether they must share an answer."""

    kind: str
    """Its structural class."""
    name: str
    a: Request
    b: Request
    share: bool

    @property
    def id(self) -> str:
        """Class and name."""
        return f"{self.kind}/{self.name}"


def load_cases(folder: Path = FOLDER) -> list[Case]:
    """Read all files of a folder; raises ValueError for a case that cannot be understood."""
    return [case for path in sorted(folder.glob("*.yaml")) for case in _read(path)]


def _read(path: Path) -> list[Case]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Case(
            kind=document["class"],
            name=case["name"],
            a=_request(case["a"]),
            b=_request(case["b"]),
            share=document.get("share", False),
        )
        for case in document["cases"]
    ]


def _request(told: Mapping[str, Any]) -> Request:
    if unknown := set(told) - _FIELDS:
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    named = [
        (TENANT_HEADER, told.get("tenant", TENANT)),
        (ROLE_HEADER, told.get("role", ROLE)),
        (ARM_HEADER, told.get("arm", ARM)),
    ]
    headers = [(name, value) for name, value in named if value is not None]
    headers += [(name, value) for name, value in told.get("headers", [])]
    return Request(told.get("path", CHAT), told.get("query", ""), tuple(headers), _body(told))


def _body(told: Mapping[str, Any]) -> str:
    if "raw" in told:
        return str(told["raw"])
    opening = {"role": "system", "content": f"This is {MARK}."}
    messages = told.get("messages", [{"role": "user", "content": "Why is the sky blue?"}])
    body = {"model": MODEL, "messages": [opening, *messages], "temperature": 0, **told.get("set", {})}
    return json.dumps({name: value for name, value in body.items() if name not in told.get("unset", ())})
