"""One request's inputs on their way to vectors: which are the same, which are held, which are missing. Pure.

Made and filled by `gateway.embeddings`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cachewright.keys.embedding import normal_input
from cachewright.layers.embedding import Computed, Held, Looked, Place
from cachewright.policy.embeddings import EmbeddingRequest, Input
from cachewright.policy.reasons import BypassReason


@dataclass(slots=True)
class Batch:
    """The distinct inputs of a request; each is looked up and computed once."""

    request: EmbeddingRequest
    inputs: list[Input]
    """The distinct ones, in the order of their first appearance."""
    order: list[int]
    """For each input of the request: which of the distinct ones it is."""
    places: list[Place] = field(default_factory=list)
    """Of the distinct inputs, once they were looked up."""
    vectors: dict[int, Held | Computed] = field(default_factory=dict)
    """By distinct input."""

    @classmethod
    def of(cls, request: EmbeddingRequest) -> Batch:
        """Tell a request's inputs apart; raises AmbiguousJson where one has no canonical form."""
        numbers: dict[bytes, int] = {}
        inputs: list[Input] = []
        order = []
        for given in request.inputs:
            number = numbers.setdefault(normal_input(given), len(inputs))
            if number == len(inputs):
                inputs.append(given)
            order.append(number)
        return cls(request, inputs, order)

    def take(self, looked: list[Looked]) -> BypassReason | None:
        """Take in what a look-up found; returns why it found nothing, where it did not look everywhere."""
        for number, each in enumerate(looked):
            if isinstance(each, BypassReason):
                return each
            self.places.append(each.place if isinstance(each, Held) else each)
            if isinstance(each, Held):
                self.vectors[number] = each
        return None

    def drop_unless(self, keep: dict[int, bool]) -> None:
        """Forget the vectors that are not to be given out."""
        self.vectors = {number: held for number, held in self.vectors.items() if keep[number]}

    @property
    def held(self) -> list[Held]:
        """The distinct vectors that were stored before."""
        return [vector for vector in self.vectors.values() if isinstance(vector, Held)]

    @property
    def missing(self) -> list[int]:
        """The distinct inputs without a vector."""
        return [number for number in range(len(self.inputs)) if number not in self.vectors]

    @property
    def is_all_missing(self) -> bool:
        """True: the request, as it was sent, asks for just what is missing."""
        return not self.vectors and len(self.inputs) == len(self.order)

    @property
    def n_found(self) -> int:
        """How many of the request's inputs are held, each as often as it was asked for."""
        return sum(isinstance(self.vectors.get(number), Held) for number in self.order)

    def in_order(self) -> list[Held | Computed]:
        """Return a vector for each input of the request; none may be missing."""
        return [self.vectors[number] for number in self.order]
