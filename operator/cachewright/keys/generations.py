"""Generations: from what an answer depends on to counters in a store, and from their values to its digest.

A counter stands for a tenant, a document, a role, a user or a layer. Raising it gives every answer that
depends on it another digest, so that all older ones are out of reach at once. The digest at which no counter
was raised chooses the hash tag under which the counters are read, and the entry lies under the same tag.

Called by the gateway for every look-up and by what retracts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from cachewright.keys.context import Document
from cachewright.keys.digest import ExactQuestion, exact_digest
from cachewright.keys.fields import encode_fields
from cachewright.keys.partition import partition_digest

_COUNTER_BYTES: Final = 12
"""Of the keyed digest in a counter's name: two names that meet would only retract more than was asked."""


class Subject(StrEnum):
    """What a counter may stand for beside a tenant; the value is part of its name."""

    DOCUMENT = "d"
    ROLE = "r"
    USER = "u"
    TEMPLATE = "p"
    """Of the prompts of a route: counted by nothing, but told by entries."""


_DROPPABLE: Final = frozenset({"t:", *(f"{one}:" for one in Subject)})


def tenant_counter(tenant_tag: str) -> str:
    """Name the counter of a tenant."""
    return f"t:{tenant_tag}"


def subject_counter(key: bytes, subject: Subject, name: str) -> str:
    """Name the counter of a document, role or user of all tenants, without telling what `name` is."""
    fields = encode_fields(
        "cachewright/counter",
        [("subject", subject.encode()), ("name", name.encode("utf-8", "surrogatepass"))],
    )
    digest = hashlib.blake2b(fields, digest_size=_COUNTER_BYTES, key=key).digest()
    return f"{subject}:{base64.urlsafe_b64encode(digest).decode()}"


def is_droppable(name: str) -> bool:
    """Tell whether a name is that of a counter that can become needless: any but a layer's."""
    return name[:2] in _DROPPABLE


def template_mark(key: bytes, template: str) -> str:
    """Name what an entry says of the prompt template that it was made with; no counter is ever raised for it.

    Empty where there is none.
    """
    return subject_counter(key, Subject.TEMPLATE, template) if template else ""


def layer_counter(layer: str) -> str:
    """Name the counter of everything that one layer keeps; `layer` as in the record."""
    return f"l:{layer}"


@dataclass(frozen=True, slots=True)
class Dependence:
    """One tenant's question, and the counters that the digest of its answer depends on."""

    key: bytes = field(repr=False)
    """The cache's digest key."""
    tenant_tag: str
    question: ExactQuestion
    """With all generations 0."""
    counters: tuple[str, ...]
    """Tenant, role where there is one, user where there is one, documents in their order, then layers."""

    @property
    def template(self) -> str:
        """Mark of the prompt template of the question's route."""
        return template_mark(self.key, self.question.context.template)

    @classmethod
    def of(
        cls,
        key: bytes,
        tenant_tag: str,
        question: ExactQuestion,
        layers: tuple[str, ...] = ("Exact",),
    ) -> Self:
        """Name the counters of a question.

        `layers` are those that may answer it. They hand answers on to each other, so what one of them has to
        give up no other keeps.
        """
        context = question.context
        counters = [tenant_counter(tenant_tag)]
        if context.role:
            counters.append(subject_counter(key, Subject.ROLE, context.role))
        if context.user:
            counters.append(subject_counter(key, Subject.USER, context.user))
        counters += (subject_counter(key, Subject.DOCUMENT, document.id) for document in context.documents)
        counters += map(layer_counter, sorted(layers))
        return cls(key, tenant_tag, question, tuple(counters))

    def digest_at(self, generations: tuple[int, ...]) -> str:
        """Digest the question with the counters at these values."""
        return exact_digest(self.key, self.tenant_tag, self._at(iter(generations)))

    def partition_at(self, generations: tuple[int, ...], body: Mapping[str, Any], where: str) -> str:
        """Digest all but the question, with the counters at these values; see `keys.partition`."""
        rest = replace(self._at(iter(generations)), body=body)
        return partition_digest(self.key, self.tenant_tag, rest, where)

    def _at(self, generations: Iterator[int]) -> ExactQuestion:
        context = self.question.context
        raised = replace(
            context,
            tenant_generation=next(generations),
            role_generation=next(generations) if context.role else 0,
            user_generation=next(generations) if context.user else 0,
            documents=tuple(Document(document.id, next(generations)) for document in context.documents),
            layer_generations=tuple(generations),
        )
        return replace(self.question, context=raised)
