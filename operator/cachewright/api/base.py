"""The base of every API model: strict, frozen, camelCase, and CEL rules kept beside the fields they guard.

Field descriptions are the attribute docstrings, so that comment, CRD and API reference are one text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

VALIDATIONS_KEY: Final = "x-kubernetes-validations"
"""Where a schema carries its CEL rules, as the API server reads them."""


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

    def as_validation(self) -> dict[str, str]:
        """Return the rule as an entry of `x-kubernetes-validations`."""
        entry = {"rule": self.cel, "message": self.message}
        return entry | {"fieldPath": self.field} if self.field else entry

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Carry a rule that stands in `Annotated[...]` into the schema of that type."""
        return _with_rules(handler(core_schema), (self,), handler)


ABOVE_NOTHING: Final = Rule(cel="double(self) > 0.0", message="must be above 0 and at most 1")
"""For a share of 1, beside a minimum of 0. The API server compares whole numbers with a minimum's whole part,
so neither a minimum above 0 nor an exclusive one keeps 0 out."""


def _with_rules(
    schema: JsonSchemaValue, rules: tuple[Rule, ...], handler: GetJsonSchemaHandler
) -> JsonSchemaValue:
    if rules:
        target = handler.resolve_ref_schema(schema)
        target.setdefault(VALIDATIONS_KEY, []).extend(rule.as_validation() for rule in rules)
    return schema


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

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """Carry the rules of this object into its schema."""
        return _with_rules(handler(core_schema), cls.rules, handler)
