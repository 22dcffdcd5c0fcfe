"""What cannot change about a store with a volume: CEL rules on the spec, for each such store.

They stand on the spec, which is always there: a rule on the store itself would not see it taken out and put
back. Taken out, a managed store is removed with its volume, so what is put back is a new one.
"""

from __future__ import annotations

from typing import Final

from cachewright.api.base import Rule


def _stays(store: str) -> tuple[Rule, ...]:
    field = f"stores.{store}"
    both = f"has(self.{field}) && has(oldSelf.{field})"
    both_managed = f"{both} && has(self.{field}.managed) && has(oldSelf.{field}.managed)"
    size = f"{field}.managed.storage.size"
    storage_class = f"{field}.managed.storage.storageClassName"
    return (
        Rule(
            cel=f"!({both}) || has(self.{field}.managed) == has(oldSelf.{field}.managed)",
            message=(
                f"{field} cannot change between managed and external; create a new InferenceCache instead"
            ),
            field=f".{field}",
        ),
        Rule(
            cel=f"!({both_managed}) || quantity(self.{size}).compareTo(quantity(oldSelf.{size})) >= 0",
            message=f"{size} cannot shrink: volumes only grow",
            field=f".{size}",
        ),
        Rule(
            cel=(
                f"!({both_managed})"
                f" || (has(self.{storage_class}) ? self.{storage_class} : '')"
                f" == (has(oldSelf.{storage_class}) ? oldSelf.{storage_class} : '')"
            ),
            message=f"{storage_class} is immutable; create a new InferenceCache instead",
            field=f".{storage_class}",
        ),
    )


_POSTGRES: Final = "stores.postgres.managed"

_PROVIDER_STAYS: Final = Rule(
    cel=(
        "!(has(self.stores.postgres) && has(oldSelf.stores.postgres)"
        f" && has(self.{_POSTGRES}) && has(oldSelf.{_POSTGRES}))"
        f" || (has(self.{_POSTGRES}.provider) ? self.{_POSTGRES}.provider : 'StatefulSet')"
        f" == (has(oldSelf.{_POSTGRES}.provider) ? oldSelf.{_POSTGRES}.provider : 'StatefulSet')"
    ),
    message=f"{_POSTGRES}.provider is immutable; create a new InferenceCache instead",
    field=f".{_POSTGRES}.provider",
)

KEPT_STORES_STAY: Final = (*_stays("qdrant"), *_stays("postgres"), _PROVIDER_STAYS)
"""Rules for `InferenceCacheSpec`."""
