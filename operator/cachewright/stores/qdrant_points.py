"""Entries and markers as Qdrant's points, and the filters and settings of a collection. Pure.

Used by `qdrant_vectors`. A point's id follows from tenant and digest, so that an entry put again replaces
itself; the marker is a point too, without a tenant, so that no search finds it and it goes with its
collection.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Mapping
from typing import Any, Final

from qdrant_client import models

from cachewright.errors import InvalidDocument, StoreRefused
from cachewright.keys.fields import encode_fields
from cachewright.keys.keyspaces import Keyspace
from cachewright.stores.vectors import (
    EntryId,
    Hit,
    Marker,
    Quantization,
    Vector,
    VectorEntry,
    VectorSpace,
    vector_of,
)

MARKER_POINT: Final = "00000000-0000-4000-8000-000000000000"

HIT_FIELDS: Final = [
    "tenant",
    "digest",
    "question",
    "nonce",
    "metadata",
    "stored_at_ms",
    "expires_at_ms",
]
BODY_FIELDS: Final = ["nonce", "body"]

_RANGE: Final = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True)

INDEXES: Final[Mapping[str, Any]] = {
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "partition": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
    "stored_at_ms": models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True),
    "expires_at_ms": models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=False, range=True
    ),
}
"""Of payload fields. Each is filtered or sorted by; the first is what points lie together by."""

RESCORE: Final = models.SearchParams(
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=3.0)
)
"""Scores come from exact vectors; without quantization it says nothing."""


def collection_settings(space: VectorSpace) -> dict[str, Any]:
    """Say how a collection is made: no graph over everything, only one for each tenant that is large."""
    quantization = None
    if space.quantization is Quantization.SCALAR:
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        quantization = models.ScalarQuantization(scalar=scalar)
    return {
        "vectors_config": models.VectorParams(size=space.dimensions, distance=models.Distance.COSINE),
        "hnsw_config": models.HnswConfigDiff(
            m=0, payload_m=space.hnsw.payload_m, ef_construct=space.hnsw.ef_construct
        ),
        "quantization_config": quantization,
        "on_disk_payload": True,
    }


def point_id(entry: EntryId) -> str:
    """Name an entry's point."""
    fields = [("tenant", entry.tenant_tag.encode()), ("digest", entry.digest.encode())]
    return str(uuid.UUID(bytes=hashlib.sha256(encode_fields("cachewright/point", fields)).digest()[:16]))


def entry_point(entry: VectorEntry) -> models.PointStruct:
    """Turn an entry into a point."""
    payload = {
        "tenant": entry.id.tenant_tag,
        "partition": entry.partition,
        "digest": entry.id.digest,
        "question": entry.question,
        "nonce": _text(entry.nonce),
        "metadata": entry.metadata,
        "stored_at_ms": _milliseconds(entry.stored_at),
        "expires_at_ms": _milliseconds(entry.expires_at),
        "body": _text(entry.body),
    }
    return models.PointStruct(id=point_id(entry.id), vector=entry.vector.tolist(), payload=payload)


def hit_of(point: models.ScoredPoint) -> Hit:
    """Read a hit; raises InvalidDocument where the point is not one of ours."""
    payload = point.payload or {}
    try:
        return Hit(
            id=EntryId(str(payload["tenant"]), str(payload["digest"])),
            score=float(point.score),
            question=str(payload["question"]),
            nonce=_bytes(payload["nonce"]),
            metadata=str(payload["metadata"]),
            stored_at=int(payload["stored_at_ms"]) / 1000,
            expires_at=int(payload["expires_at_ms"]) / 1000,
        )
    except (KeyError, TypeError, ValueError) as e:
        raise InvalidDocument("a point of the collection is not an entry of ours") from e


def body_of(point: models.Record, nonce: bytes) -> bytes | None:
    """Read an entry's body; None where the point carries another nonce or is not one of ours."""
    payload = point.payload or {}
    try:
        return _bytes(payload["body"]) if _bytes(payload["nonce"]) == nonce else None
    except (KeyError, TypeError, ValueError):
        return None


def marker_point(marker: Marker) -> models.PointStruct:
    """Turn a marker into a point."""
    payload = {
        "cache_id": marker.cache_id,
        "keyspace": str(marker.keyspace),
        "dimensions": marker.dimensions,
        "probe_text": marker.probe_text,
        "probe_vector": marker.probe_vector.tolist(),
    }
    return models.PointStruct(
        id=MARKER_POINT, vector=marker.probe_vector.tolist(), payload={"cachewright": payload}
    )


def marker_of(name: str, point: models.Record) -> Marker:
    """Read a marker; raises StoreRefused for a point that is not one."""
    try:
        said: Any = (point.payload or {})["cachewright"]
        return Marker(
            cache_id=str(said["cache_id"]),
            keyspace=Keyspace.parse(str(said["keyspace"])),
            dimensions=int(said["dimensions"]),
            probe_text=str(said["probe_text"]),
            probe_vector=_vector(said["probe_vector"]),
        )
    except (KeyError, TypeError, ValueError, InvalidDocument) as e:
        raise StoreRefused(f"{name} carries no marker of ours") from e


def search_filter(tenant_tag: str, partition: str, now: float) -> models.Filter:
    """Match a tenant's partition, what has expired left out."""
    alive = models.FieldCondition(key="expires_at_ms", range=models.Range(gt=_milliseconds(now)))
    return models.Filter(must=[_is("tenant", tenant_tag), _is("partition", partition), alive])


def count_filter(tenant_tag: str | None, partition: str | None) -> models.Filter | None:
    """Match a tenant, a partition, both, or everything."""
    wanted = {"tenant": tenant_tag, "partition": partition}
    conditions: list[models.Condition] = [
        _is(key, value) for key, value in wanted.items() if value is not None
    ]
    return models.Filter(must=conditions) if conditions else None


def expired_filter(now: float) -> models.Filter:
    """Match what has expired."""
    expired = models.FieldCondition(key="expires_at_ms", range=models.Range(lte=_milliseconds(now)))
    return models.Filter(must=[expired])


def _is(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error as e:
        raise ValueError("not base64") from e


def _vector(values: Any) -> Vector:  # noqa: ANN401 - JSON
    return vector_of(float(value) for value in values)
