"""What may be retracted: from a kind and a name to the counters that have to be raised.

Pure. Used by the gateway's admin port.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cachewright.errors import InvalidInput
from cachewright.keys.digest import tenant_tag
from cachewright.keys.generations import Subject, layer_counter, subject_counter, tenant_counter


class TargetKind(StrEnum):
    """What answers may have in common that are retracted together."""

    TENANT = "tenant"
    DOCUMENT = "document"
    ROLE = "role"
    USER = "user"
    LAYER = "layer"
    ALL = "all"


_SUBJECTS = {
    TargetKind.DOCUMENT: Subject.DOCUMENT,
    TargetKind.ROLE: Subject.ROLE,
    TargetKind.USER: Subject.USER,
}


@dataclass(frozen=True, slots=True)
class Target:
    """All answers of a tenant, from a document, for a role or a user, of a layer, or simply all."""

    kind: TargetKind
    name: str = field(default="", repr=False)
    """As clients name it; empty where the kind is ALL."""

    def counters(self, key: bytes, layers: Sequence[str]) -> tuple[str, ...]:
        """Name what has to be raised; `key` is the cache's digest key, `layers` are those it has.

        Raises InvalidInput for a layer that it has not.
        """
        if self.kind is TargetKind.TENANT:
            return (tenant_counter(tenant_tag(key, self.name.encode("utf-8", "surrogatepass"))),)
        if self.kind is TargetKind.ALL:
            return tuple(map(layer_counter, layers))
        if self.kind is TargetKind.LAYER:
            if self.name not in layers:
                raise InvalidInput(f"this cache has the layers {', '.join(layers) or 'none'}")
            return (layer_counter(self.name),)
        names = [self.name]
        if self.kind in (TargetKind.ROLE, TargetKind.USER):
            # One that came in a header is kept as its bytes, one a character.
            names.append(self.name.encode("utf-8", "surrogatepass").decode("latin-1"))
        subject = _SUBJECTS[self.kind]
        return tuple(dict.fromkeys(subject_counter(key, subject, name) for name in names))
