"""From a spec to the layers it asks for, each with the keyspace it must use. Pure; one row a layer.

`wanted_record` and `cachewright explain` read the rows, so that both see the same rotations. A layer that is
added to the product is added here, and rotates, is fenced, retained and rolled back like all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.keys.embedding import EMBEDDING, embedding_binding, embedding_fingerprint
from cachewright.keys.embedding_identity import identity_of
from cachewright.keys.fingerprints import (
    exact_binding,
    exact_fingerprint,
    keyspace_id,
    semantic_binding,
    semantic_fingerprint,
)
from cachewright.keys.prefix import PREFIX, prefix_binding, prefix_fingerprint

EXACT: Final = "Exact"
SEMANTIC: Final = "Semantic"


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer that the spec asks for."""

    name: str
    keyspace_id: str
    """16 hex digits of the fingerprint; another id is another keyspace."""
    binding: str
    """What a gateway must enact to use the keyspace."""
    model_version: str | None
    """Version of the model that its answers come from; None where it depends on none, and is not fenced."""
    epoch: int = 0
    """The layer's own epoch."""

    @property
    def depends_on_model(self) -> bool:
        """Tell whether the layer rotates with the model, and so is fenced."""
        return self.model_version is not None


Builder = Callable[[InferenceCacheSpec, str], LayerRow | None]


def layer_rows(spec: InferenceCacheSpec, key_id: str) -> tuple[LayerRow, ...]:
    """Return a row for each layer that `spec` asks for; `key_id` names the cache's digest key."""
    rows = (build(spec, key_id) for build in BUILDERS)
    return tuple(row for row in rows if row is not None)


def _exact(spec: InferenceCacheSpec, key_id: str) -> LayerRow | None:
    if spec.layers.exact is None:
        return None
    return LayerRow(
        name=EXACT,
        keyspace_id=keyspace_id(exact_fingerprint(spec, key_id)),
        binding=exact_binding(spec, key_id),
        model_version=spec.model.version,
        epoch=spec.layers.exact.epoch,
    )


def _embedding(spec: InferenceCacheSpec, key_id: str) -> LayerRow | None:
    layer, embedder = spec.layers.embedding, spec.embedder
    if layer is None or embedder is None:
        return None
    identity, shared = identity_of(embedder), layer.share_across_tenants
    return LayerRow(
        name=EMBEDDING,
        keyspace_id=keyspace_id(embedding_fingerprint(identity, key_id, shared)),
        binding=embedding_binding(identity, key_id, shared),
        model_version=None,
        epoch=layer.epoch,
    )


def _semantic(spec: InferenceCacheSpec, key_id: str) -> LayerRow | None:
    if spec.layers.semantic is None:
        return None
    return LayerRow(
        name=SEMANTIC,
        keyspace_id=keyspace_id(semantic_fingerprint(spec, key_id)),
        binding=semantic_binding(spec, key_id),
        model_version=spec.model.version,
        epoch=spec.layers.semantic.epoch,
    )


def _prefix(spec: InferenceCacheSpec, key_id: str) -> LayerRow | None:
    if spec.layers.prefix is None or not spec.layers.prefix.tenant_salt:
        return None
    return LayerRow(
        name=PREFIX,
        keyspace_id=keyspace_id(prefix_fingerprint(spec, key_id)),
        binding=prefix_binding(spec, key_id),
        model_version=spec.model.version,
    )


BUILDERS: Final[tuple[Builder, ...]] = (_exact, _semantic, _embedding, _prefix)
"""Each gives the row of one layer, or None where the spec leaves the layer out."""
