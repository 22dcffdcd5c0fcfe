"""Whether labels match a label selector; `kube.memory` calls it, the API server has its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_TERM: Final = re.compile(
    r"\s*(?P<key>!?[\w./-]+)\s*(?:(?P<operator>==|=|!=|\bin\b|\bnotin\b)\s*(?P<value>\([^)]*\)|[\w./-]*))?\s*(?:,|$)"
)


def matches(labels: Mapping[str, str], selector: str) -> bool:
    """Return whether labels match a selector such as `a=b,c in (d, e),!f`; an empty one matches all."""
    position = 0
    while position < len(selector):
        term = _TERM.match(selector, position)
        if term is None:
            raise ValueError(f"not a label selector: {selector!r}")
        if not _term_matches(labels, term["key"], term["operator"], term["value"] or ""):
            return False
        position = term.end()
    return True


def _term_matches(labels: Mapping[str, str], key: str, operator: str | None, value: str) -> bool:
    if operator is None:
        return key[1:] not in labels if key.startswith("!") else key in labels
    values = {each.strip() for each in value.strip("()").split(",")}
    if operator in ("!=", "notin"):
        return labels.get(key) not in values
    return labels.get(key) in values
