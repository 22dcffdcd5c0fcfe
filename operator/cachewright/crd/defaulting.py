"""From an object as written to the object as the API server keeps it: nulls pruned, defaults filled in.

Called by `validation`, because rules see the object after this step, on the API server as well.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from cachewright.crd.schema import Schema, below, properties_of


def with_defaults(value: Any, schema: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy as the API server would store it; what the schema does not know stays as it is."""
    if isinstance(value, dict):
        kept = {name: (child, below(schema, name)) for name, child in value.items()}
        filled = {
            name: with_defaults(child, known or {})
            for name, (child, known) in kept.items()
            if child is not None or known is None
        }
        for name, known in properties_of(schema).items():
            if name not in filled and "default" in known:
                filled[name] = with_defaults(deepcopy(known["default"]), known)
        return filled
    if isinstance(value, list):
        return [with_defaults(item, below(schema, 0) or {}) for item in value]
    if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)  # JSON has one kind of number: 2.0 is a whole one
    return value
