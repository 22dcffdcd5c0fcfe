"""Random InferenceCaches, drawn from the structural schema: sound, or with one part replaced by junk."""

from __future__ import annotations

import re
from typing import Any, Final

from hypothesis import strategies as st

from cachewright.api.model import URL_PATTERN
from cachewright.crd.schema import INT_OR_STRING, PRESERVE_UNKNOWN, Schema, object_schema, properties_of
from cachewright.crd.validation import problems
from tests.api.documents import Document

JUNK: Final[tuple[Any, ...]] = (
    None,
    "",
    "0",
    "x",
    0,
    -1,
    1.5,
    10**9,
    True,
    [],
    {},
    [None],
    ["x", "x"],
    {"x": 1},
    {"name": "x"},
)

_DURATIONS: Final = ("1ms", "5ms", "30s", "1m30s", "2h", "0s")
_QUANTITIES: Final = ("1", "0", "64Ki", "1Mi", "1.5Gi", "500m", "3G")


def objects() -> st.SearchStrategy[Document]:
    """Draw objects that only a CEL rule can be against."""
    spec = _values(properties_of(object_schema())["spec"])
    return spec.map(
        lambda drawn: {
            "apiVersion": "cachewright.dev/v1alpha1",
            "kind": "InferenceCache",
            "metadata": {"name": "random", "namespace": "default"},
            "spec": drawn,
        }
    )


def valid_objects() -> st.SearchStrategy[Document]:
    """Draw objects that nothing is against."""
    return objects().map(mended).filter(lambda document: not problems(document))


def mended(document: Document) -> Document:
    """Change what rules across fields are most often against; a random object hardly ever meets them all."""
    spec = document["spec"]
    redis, upstream, tenancy = spec["stores"]["redis"], spec["upstream"], spec["tenancy"]
    redis.pop("external" if "managed" in redis else "managed", None)
    redis.setdefault(
        "external" if not redis else next(iter(redis)), {"urlSecretRef": {"name": "r", "key": "u"}}
    )
    redis.get("managed", {}).pop("resources", None)
    spec["layers"].setdefault("exact", {})
    upstream["url"] = upstream["url"] if len(upstream["url"]) % 2 else "https://engine:8000/v1"
    if not upstream["url"].startswith("https"):
        upstream.pop("caSecretRef", None)
    if len(tenancy.get("source", {})) != 1:
        tenancy["source"] = {"trustedHeader": {"name": "X-Tenant-Id"}}
    if "clientCredential" in tenancy["source"]:
        upstream.pop("apiKeySecretRef", None)
        tenancy.pop("role", None)
    spec["limits"] = {**spec.get("limits", {}), "maxBody": "9G"}
    spec["limits"]["budget"] = {**spec["limits"].get("budget", {}), "total": "2h"}
    spec["routes"] = [
        {**route, "name": f"{route['name'][:20]}-{number}"}
        for number, route in enumerate(spec.get("routes", ()))
    ]
    for route in spec["routes"]:
        for field in ("extractDocuments", "question"):
            marks = route.get(field, {}).get("between")
            if marks and marks["start"] in marks["end"]:
                marks["start"] += marks["end"]
    _mend_semantic(spec)
    return document


def _mend_semantic(spec: Document) -> None:
    """Give the semantic layer what it needs, or take away what needs it."""
    embedder, semantic = spec.get("embedder", {}), spec["layers"].get("semantic")
    if "url" in embedder or "builtin" not in embedder:
        spec["embedder"] = {"builtin": {}}
    else:
        spec["embedder"] = {"builtin": embedder["builtin"]}
    _mend_vector_stores(spec["stores"])
    if semantic is not None:
        semantic.update({"store": "Qdrant", "maxEntries": 100_000_000})
    for route in spec["routes"]:
        if semantic is None or "Semantic" not in route.get("layers", ()):
            route.pop("question", None)
            route.pop("threshold", None)
            route["layers"] = [layer for layer in route.get("layers", ["Exact"]) if layer != "Semantic"]
        elif "Exact" not in route["layers"]:
            route["layers"].append("Exact")


def _mend_vector_stores(stores: Document) -> None:
    """Leave one side of each choice."""
    stores.setdefault("qdrant", {})
    stores.setdefault("postgres", {})
    defaults = {
        "qdrant": {"url": "http://qdrant:6333"},
        "postgres": {"dsnSecretRef": {"name": "p", "key": "d"}},
    }
    for name, external in defaults.items():
        store = stores[name]
        store.pop("external" if "managed" in store else "managed", None)
        if not store:
            store["external"] = external
        store.get("managed", {}).pop("resources", None)
    if stores["postgres"].get("managed", {}).get("provider") != "CloudNativePG":
        stores["postgres"].get("managed", {}).pop("instances", None)
    qdrant = stores["qdrant"].get("external", {})
    if not qdrant.get("url", "").startswith("https"):
        qdrant.pop("caSecretRef", None)


@st.composite
def damaged_objects(draw: st.DrawFn) -> Document:
    """Draw objects of which one part, anywhere below `spec`, is replaced by something that may not fit."""
    document = mended(draw(objects()))
    holder: Any = document
    key: Any = "spec"
    while (
        isinstance(holder[key], dict | list) and holder[key] and draw(st.sampled_from([True] * 5 + [False]))
    ):
        holder = holder[key]
        key = draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
    holder[key] = draw(st.sampled_from(JUNK))
    return document


def _values(schema: Schema) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get(INT_OR_STRING):
        return st.integers(0, 64) | st.sampled_from(_QUANTITIES)
    if schema.get(PRESERVE_UNKNOWN):
        return st.sampled_from([{}, {"podAffinity": {"a": [1, None, 1.5, {"b": None}]}}])
    match schema["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            return st.floats(schema["minimum"], schema["maximum"])
        case "string":
            return _texts(schema)
        case "array":
            return _lists(schema)
    if "additionalProperties" in schema:
        keys = st.sampled_from(["cpu", "memory", "example.com/gpu", "kubernetes.io/os"])
        return st.dictionaries(keys, _values(schema["additionalProperties"]), max_size=3)
    return _fields(schema)


def _fields(schema: Schema) -> st.SearchStrategy[Document]:
    required = set(schema.get("required", ()))
    fields = {name: _values(child) for name, child in properties_of(schema).items()}
    return st.fixed_dictionaries(
        {name: drawn for name, drawn in fields.items() if name in required},
        optional={name: drawn for name, drawn in fields.items() if name not in required},
    )


def _lists(schema: Schema) -> st.SearchStrategy[list[Any]]:
    keys = schema.get("x-kubernetes-list-map-keys")

    def identity(item: Any) -> Any:
        # A key that is left out counts with its default.
        return tuple(item.get(key, schema["items"]["properties"][key].get("default")) for key in keys or ())

    unique: Any = identity if keys else repr if schema["x-kubernetes-list-type"] == "set" else None
    return st.lists(_values(schema["items"]), max_size=min(3, schema["maxItems"]), unique_by=unique)


def _texts(schema: Schema) -> st.SearchStrategy[str]:
    pattern = schema.get("pattern", "")
    if "(ms|s|m|h)" in pattern:
        return st.sampled_from(_DURATIONS)
    if "Ki|Mi" in pattern:
        return st.sampled_from(_QUANTITIES)
    low, high = schema.get("minLength", 0), min(schema["maxLength"], 24)
    if not pattern:
        return st.text("aZ0-._/ é", min_size=low, max_size=high)
    if pattern == URL_PATTERN:
        hosts = ("engine", "a.b", "[::1]", "[1:2]", "[::ffff:1.2.3.4]", "[1.2.3.4]")
        rests = ("", ":8000/v1", "/", ":99999", "/a%20b", "/%2", "/v1/~x;y")
        parts = st.tuples(st.sampled_from(("http", "https")), st.sampled_from(hosts), st.sampled_from(rests))
        return parts.map(lambda drawn: f"{drawn[0]}://{drawn[1]}{drawn[2]}") | _matching(pattern, low, high)
    return _matching(pattern, low, high)


def _matching(pattern: str, low: int, high: int) -> st.SearchStrategy[str]:
    return st.from_regex(re.compile(pattern), fullmatch=True).filter(
        # Python's `$` also stands before a last line break; the API server's does not.
        lambda text: low <= len(text) <= high and not text.endswith("\n")
    )
