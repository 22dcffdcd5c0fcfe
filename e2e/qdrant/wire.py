"""Qdrant's JSON into the engine's values and back: filters, settings, points.

Pure. Called by `collection`. Whatever is not known here is refused, so that a test never passes because the
stand-in ignored what a real server would have obeyed.
"""

from collections.abc import Mapping
from typing import Any, Final

import qdrant_edge as edge

Json = dict[str, Any]

DISTANCES: Final = {
    "Cosine": edge.Distance.Cosine,
    "Dot": edge.Distance.Dot,
    "Euclid": edge.Distance.Euclid,
    "Manhattan": edge.Distance.Manhattan,
}

FULL_SCAN_THRESHOLD_KB: Final = 10_000
"""Qdrant's default."""


class WireError(ValueError):
    """The request is one that Qdrant would refuse with 400, or that the stand-in does not know."""


def config_of(body: Json) -> edge.EdgeConfig:
    """Read the body that creates a collection."""
    vectors = _only(body.get("vectors") or {}, {"size", "distance", "on_disk"})
    known = {"vectors", "hnsw_config", "quantization_config", "on_disk_payload", "optimizers_config"}
    ignorable = {"shard_number", "replication_factor", "write_consistency_factor", "metadata"}
    _only(body, known | ignorable)
    if vectors.get("distance") not in DISTANCES or not isinstance(vectors.get("size"), int):
        raise WireError("Format error in JSON body: vectors")
    return edge.EdgeConfig(
        vectors=edge.EdgeVectorParams(size=vectors["size"], distance=DISTANCES[vectors["distance"]]),
        hnsw_config=_hnsw(body.get("hnsw_config") or {}),
        quantization_config=_quantization(body.get("quantization_config")),
        on_disk_payload=body.get("on_disk_payload"),
    )


def schema_of(body: Json) -> Any:
    """Read the kind of a payload index."""
    schema = body.get("field_schema")
    if isinstance(schema, str):
        schema = {"type": schema}
    if not isinstance(schema, dict):
        raise WireError("Format error in JSON body: field_schema")
    options = {key: value for key, value in schema.items() if key != "type" and value is not None}
    match schema.get("type"):
        case "keyword":
            return edge.KeywordIndexParams(**_only(options, {"is_tenant", "on_disk", "enable_hnsw"}))
        case "integer":
            return edge.IntegerIndexParams(
                **_only(options, {"lookup", "range", "is_principal", "on_disk", "enable_hnsw"})
            )
        case "float":
            return edge.FloatIndexParams(**_only(options, {"is_principal", "on_disk", "enable_hnsw"}))
        case kind:
            raise WireError(f"the stand-in has no index of type {kind}")


def filter_of(body: Json | None) -> edge.Filter | None:
    """Read a filter; None where there is none."""
    if body is None:
        return None
    _only(body, {"must", "should", "must_not"})
    clauses: dict[str, Any] = {}
    for clause, conditions in body.items():
        if conditions is not None:
            listed = conditions if isinstance(conditions, list) else [conditions]
            clauses[clause] = [_condition(condition) for condition in listed]
    return edge.Filter(**clauses)


def points_of(body: Json) -> list[edge.Point]:
    """Read points to be stored, given one by one."""
    _only(body, {"points", "shard_key", "update_filter", "update_mode"})
    points = body.get("points")
    if not isinstance(points, list) or any(not isinstance(point.get("vector"), list) for point in points):
        raise WireError("Format error in JSON body: points")
    return [edge.Point(point["id"], point["vector"], point.get("payload") or {}) for point in points]


def query_of(body: Json) -> edge.QueryRequest:
    """Read a search for the nearest points."""
    _only(
        body,
        {"query", "filter", "params", "limit", "offset", "with_payload", "with_vector", "score_threshold"},
    )
    query = body.get("query")
    vector = query.get("nearest") if isinstance(query, dict) else query
    if not isinstance(vector, list) or not all(isinstance(value, int | float) for value in vector):
        raise WireError("the stand-in searches for the nearest points to a vector alone")
    return edge.QueryRequest(
        query=edge.Query.Nearest([float(value) for value in vector]),
        filter=filter_of(body.get("filter")),
        params=_search_params(body.get("params")),
        limit=body.get("limit", 10),
        offset=body.get("offset"),
        with_payload=body.get("with_payload", False),
        with_vector=body.get("with_vector", False),
        score_threshold=body.get("score_threshold"),
    )


def scroll_of(body: Json) -> edge.ScrollRequest:
    """Read a walk through points."""
    _only(body, {"filter", "limit", "offset", "with_payload", "with_vector", "order_by"})
    order = body.get("order_by")
    if isinstance(order, str):
        order = {"key": order}
    direction = edge.Direction.Desc if (order or {}).get("direction") == "desc" else edge.Direction.Asc
    return edge.ScrollRequest(
        filter=filter_of(body.get("filter")),
        limit=body.get("limit", 10),
        offset=body.get("offset"),
        with_payload=body.get("with_payload", True),
        with_vector=body.get("with_vector", False),
        order_by=edge.OrderBy(order["key"], direction) if order else None,
    )


def record_json(record: edge.Record | edge.ScoredPoint) -> Json:
    """Write a point that was found."""
    point: Json = {"id": _id(record.id), "payload": record.payload}
    if record.vector is not None:
        point["vector"] = record.vector
    if isinstance(record, edge.ScoredPoint):
        point |= {"version": record.version, "score": record.score}
    return point


def page_json(records: list[edge.Record], following: Any) -> Json:
    """Write one page of a walk."""
    return {
        "points": [record_json(record) for record in records],
        "next_page_offset": None if following is None else _id(following),
    }


def _id(value: object) -> int | str:
    return value if isinstance(value, int) else str(value)


def _condition(body: Json) -> Any:
    if "has_id" in body:
        return edge.HasIdCondition(set(_only(body, {"has_id"})["has_id"]))
    if not {"key"} < body.keys():
        return filter_of(body)
    _only(body, {"key", "match", "range"})
    matched, bounds = body.get("match"), body.get("range")
    if matched is not None:
        return edge.FieldCondition(body["key"], match=_match(matched))
    if bounds is None:
        raise WireError("Format error in JSON body: a condition without match and range")
    return edge.FieldCondition(
        body["key"], range=edge.RangeFloat(**_only(_given(bounds), {"gt", "gte", "lt", "lte"}))
    )


def _match(body: Json) -> Any:
    given = _only(_given(body), {"value", "any"})
    return edge.MatchValue(given["value"]) if "value" in given else edge.MatchAny(given["any"])


def _hnsw(body: Json) -> edge.HnswIndexConfig:
    given = _only(_given(body), {"m", "payload_m", "ef_construct", "full_scan_threshold", "on_disk"})
    return edge.HnswIndexConfig(
        m=given.get("m", 16),
        ef_construct=given.get("ef_construct", 100),
        full_scan_threshold=given.get("full_scan_threshold", FULL_SCAN_THRESHOLD_KB),
        payload_m=given.get("payload_m"),
    )


def _quantization(body: Json | None) -> Any:
    if not body:
        return None
    scalar = _given(_only(body, {"scalar"})["scalar"])
    _only(scalar, {"type", "quantile", "always_ram"})
    return edge.ScalarQuantizationConfig(
        edge.ScalarType.Int8, quantile=scalar.get("quantile"), always_ram=scalar.get("always_ram")
    )


def _search_params(body: Json | None) -> edge.SearchParams | None:
    if not body:
        return None
    given = _only(_given(body), {"hnsw_ef", "exact", "quantization", "indexed_only"})
    quantization = _given(given.pop("quantization", None) or {})
    if quantization:
        _only(quantization, {"ignore", "rescore", "oversampling"})
        given["quantization"] = edge.QuantizationSearchParams(**quantization)
    return edge.SearchParams(**given)


def _given(body: Json) -> Json:
    """Leave out what is null, which means not given."""
    return {key: value for key, value in body.items() if value is not None}


def _only(body: Json, known: set[str]) -> Json:
    unknown = sorted(body.keys() - known)
    if unknown:
        raise WireError(f"the stand-in does not know {', '.join(unknown)}")
    return body


def without_nulls(body: Mapping[str, Any]) -> Json:
    """Return what a client gave, without the nulls that say nothing."""
    return _given(dict(body))
