"""The context hash: what one answer depended on beyond the text of its request.

Every field of the design is here from the first scheme version on; those that nothing fills yet are empty
tagged fields, so that filling one later changes no other key. Called by `keys.digest`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cachewright.keys.fields import encode_fields, encode_list


@dataclass(frozen=True, slots=True)
class Document:
    """A document that an answer may quote, at the generation it had."""

    id: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What one answer depended on beyond its text. A generation of 0 means never raised."""

    template: str = ""
    """Version or hash of the prompt template of the request's route."""
    documents: tuple[Document, ...] = ()
    """In the order the request named them."""
    arm: str = ""
    """Experiment arm."""
    guardrail_version: str = ""
    role: str = ""
    tenant_generation: int = 0
    role_generation: int = 0
    user_generation: int = 0
    layer_generations: tuple[int, ...] = ()
    """Of the layers that may have given the answer; hashed only where one was raised, as the first keys had
    none."""
    user: str = ""
    """End user whose answers are nobody else's; hashed only where there is one, as the first keys had none.
    """

    def hash(self) -> bytes:
        """Return the SHA-256 of all fields."""
        documents = b"".join(
            encode_fields(
                "document",
                [("id", document.id.encode()), ("generation", _generation(document.generation))],
            )
            for document in self.documents
        )
        fields = [
            ("template", self.template.encode()),
            ("documents", documents),
            ("arm", self.arm.encode()),
            ("guardrail_version", self.guardrail_version.encode()),
            ("role", self.role.encode()),
            ("tenant_generation", _generation(self.tenant_generation)),
            ("role_generation", _generation(self.role_generation)),
            ("user_generation", _generation(self.user_generation)),
        ]
        if self.user:
            fields.append(("user", self.user.encode()))
        if any(self.layer_generations):
            fields.append(("layer_generations", encode_list(map(str, self.layer_generations))))
        return hashlib.sha256(encode_fields("cachewright/context", fields)).digest()


def _generation(number: int) -> bytes:
    return str(number).encode() if number else b""
