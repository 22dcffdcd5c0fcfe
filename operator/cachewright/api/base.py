"""The base of every API model: strict, frozen, camelCase, and CEL rules kept beside the fields they guard.

Field descriptions are the attribute docstrings, so that comment, CRD and API reference are one text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


@dataclass(frozen=True, slots=True)
class Rule:
    """One validation rule in CEL; the API server and `cachewright validate` evaluate the same text.

    `cel` sees the value as `self`, and the former value as `oldSelf` where it is a transition rule.
    `message` is a sentence that names the field and says what to write. `field` is a JSON path below
    the guarded object (such as `.threshold`) for the error's location.
    """

    cel: str
    message: str
    field: str = ""

    @property
    def is_transition(self) -> bool:
        """Tell whether the rule compares with the former value and so runs on updates only."""
        return "oldSelf" in self.cel


class ApiModel(BaseModel):
    """A part of the object: unknown fields are refused, values never change after parsing."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules on this object; the generator writes them as `x-kubernetes-validations`."""
