"""Good and bad objects for every bound and every rule of the schema, as data.

The unit tier runs them through offline validation and checks that no bound or rule is left out; the API tier
sends the same objects to a real API server, which must agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cachewright.crd.schema import INT_OR_STRING, Schema, below, object_schema, properties_of

Document = dict[str, Any]


class _Gone:
    """Marks a field that a case takes away."""

    def __repr__(self) -> str:
        return "GONE"


GONE: Final = _Gone()


@dataclass(frozen=True, slots=True)
class Case:
    """One object; `broken` is the path of a problem that it must have, None where it must have none.

    With `old`, the object replaces that one.
    """

    name: str
    document: Document
    broken: str | None = None
    old: Document | None = None


_RESOURCES: Final = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": 1, "memory": "1Gi"}}
_PLACEMENT: Final = {
    "image": "example/image:1",
    "imagePullPolicy": "IfNotPresent",
    "imagePullSecrets": [{"name": "pull"}],
    "resources": _RESOURCES,
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}
    ],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    },
    "topologySpreadConstraints": [
        {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": "host", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
    ],
    "priorityClassName": "serving",
}

FULL: Final[Document] = {
    "apiVersion": "cachewright.dev/v1alpha1",
    "kind": "InferenceCache",
    "metadata": {"name": "full", "namespace": "default"},
    "spec": {
        "model": {"name": "m", "aliases": ["m-1", "m-2"], "version": "1"},
        "upstream": {
            "url": "https://engine:8000/v1",
            "timeout": "120s",
            "apiKeySecretRef": {"name": "upstream", "key": "token"},
            "caSecretRef": {"name": "authority", "key": "ca.crt"},
            "allowedPaths": ["/v1/files", "/v1/models"],
            "varyHeaders": ["X-A", "X-B"],
        },
        "tenancy": {
            "mode": "Required",
            "source": {"trustedHeader": {"name": "X-Tenant-Id"}},
            "role": {"header": "X-Role"},
            "onMissing": "Bypass",
        },
        "routes": [
            {
                "name": "chat",
                "match": {"path": "/v1/chat/completions"},
                "layers": ["Exact"],
                "sampling": "Strict",
                "sideEffects": False,
            },
            {"name": "other", "match": {"path": "/v1/completions"}},
        ],
        "stores": {"redis": {"managed": {"flavor": "Redis", "maxMemory": "256Mi", **_PLACEMENT}}},
        "layers": {"exact": {"ttl": "30m"}},
        "limits": {"budget": {"exact": "5ms", "total": "50ms"}, "maxCacheableBody": "1Mi", "maxBody": "64Mi"},
        "gateway": {"replicas": 2, **_PLACEMENT},
        "deletionPolicy": "Retain",
        "suspend": False,
    },
}
"""Every field is given but those that exclude one that is."""


def changed(base: Document, **changes: Any) -> Document:
    """Return a copy with paths (`__` for `.`) set, or taken away where the value is GONE."""
    document = _copy(base)
    for path, value in changes.items():
        put(document, path.replace("__", "."), value)
    return document


def _copy(value: Document) -> Document:
    """Copy without keeping what is shared within: one placement stands in two components."""
    copied: Document = json.loads(json.dumps(value))
    return copied


def put(document: Document, path: str, value: Any) -> None:
    """Set the value at a path such as `spec.routes[0].name`, making objects on the way."""
    *parents, last = steps(path)
    target: Any = document
    for step in parents:
        target = target[step] if isinstance(step, int) else target.setdefault(step, {})
    if value is GONE:
        del target[last]
    else:
        target[last] = value


def steps(path: str) -> list[str | int]:
    """Split a path into field names and indices."""
    found = re.findall(r"\[(\d+)\]|\[([^\]]+)\]|([^.\[]+)", path)
    return [int(index) if index else key or name for index, key, name in found]


MINIMAL: Final = {
    **FULL,
    "spec": {
        "model": {"name": "m", "version": "1"},
        "upstream": {"url": "http://engine:8000/v1"},
        "tenancy": {"mode": "Single"},
        "stores": {"redis": {"managed": {}}},
        "layers": {"exact": {}},
    },
}
"""Nothing is given that has a default."""

EXTERNAL: Final = changed(
    FULL,
    spec__stores__redis={"external": {"urlSecretRef": {"name": "redis", "key": "url"}}},
    spec__tenancy__source={"apiKeys": {"secretRef": {"name": "keys", "key": "keys.yaml"}}},
)
"""The other side of each choice: a store that exists already, tenants known by API keys."""

_DURATIONS: Final = (
    ["1ms", "999999h999999h9h", "1h30m", "0s1ms"],
    ["0s", "0h0m0ms", "", "5", "-5m", "7d", "1.5h", "1234567s", "1s2s3s4s5s6s7s8s9s", " 5m", "5m\n"],
)
_QUANTITIES: Final = (
    ["128Mi", "65000000", "100.5M", "0.125Gi", "0064Mi"],
    ["0", "0Mi", "0.000", "", "-1Mi", "1mi", "1e3", "1.2345Gi", "1" + "0" * 20, "1 Mi"],
)
_SECRET_NAMES: Final = (["a", "a.b-c", "0", "a" * 253], ["", "A", "-a", "a-", "a_b", "a/b", "a" * 254, "a\n"])
_SECRET_KEYS: Final = (["a", ".A_b-c", "x" * 253], ["", "a/b", "a b", "x" * 254, "ä"])
_HEADERS: Final = (
    ["X-Tenant-Id", "x", "!#$%&'*+.^_`|~0", "h" * 128],
    ["", "a b", "a:", "ä", "h" * 129, "a\n"],
)
_PATHS: Final = (
    ["/", "/v1/files", "/" + "p" * 255, '/a!"~@'],
    ["", "v1", "/a b", "/a?b", "/a#b", "/ä", "/" + "p" * 256, "/a\n"],
)
_VISIBLE: Final = (["m", "org/model:7b@x"], ["", "a b", "ä", "a\n", "a\u00a0b", "\u2003"])
_AMOUNTS: Final = (
    ["250m", "1", 0, 3, "0.5", "0"],
    ["", "abc", -1, "-1", True, 1.5, "1" + "0" * 20, "1e3", [], {}],
)

Values = tuple[list[Any], list[Any]]


def _placement(prefix: str) -> dict[str, Values]:
    key, long_key = "a" * 316, "a" * 317
    return {
        f"{prefix}.image": (_VISIBLE[0] + ["i" * 512], _VISIBLE[1] + ["i" * 513]),
        f"{prefix}.imagePullPolicy": (["Always", "IfNotPresent", "Never"], ["always", ""]),
        f"{prefix}.imagePullSecrets": ([[], _named(8)], [_named(9), [{"name": "a"}, {}]]),
        f"{prefix}.imagePullSecrets[0].name": _SECRET_NAMES,
        f"{prefix}.resources.requests": ([{}, _amounts(16)], [_amounts(17), {"": 1}, {"r" * 254: 1}]),
        f"{prefix}.resources.limits": (
            [_amounts(16), {"r" * 253: 1}],
            [_amounts(17), {"": 1}, {"r" * 254: 1}],
        ),
        f"{prefix}.resources.requests.cpu": _AMOUNTS,
        f"{prefix}.resources.limits.cpu": _AMOUNTS,
        f"{prefix}.nodeSelector": ([{}, _labels(32), {key: ""}], [_labels(33), {"": "a"}, {long_key: "a"}]),
        f"{prefix}.nodeSelector[kubernetes.io/os]": (["", "v" * 63], ["v" * 64, True]),
        f"{prefix}.tolerations": ([[], [{}], [{}] * 32], [[{}] * 33]),
        f"{prefix}.tolerations[0].key": (["", key], [long_key]),
        f"{prefix}.tolerations[0].operator": (["Exists", "Equal"], ["Is"]),
        f"{prefix}.tolerations[0].value": (["", "v" * 63], ["v" * 64]),
        f"{prefix}.tolerations[0].effect": (["NoSchedule", "PreferNoSchedule", "NoExecute"], ["None"]),
        f"{prefix}.tolerations[0].tolerationSeconds": ([0, 2**31 - 1, 2.0], [-1, 2**31, 1.5]),
        f"{prefix}.affinity": ([{}, {"any": [None, {"thing": None}]}], []),
        f"{prefix}.topologySpreadConstraints": ([[], _spreads(8)], [_spreads(9)]),
        f"{prefix}.topologySpreadConstraints[0].maxSkew": ([1, 100], [0, 101]),
        f"{prefix}.topologySpreadConstraints[0].topologyKey": (["z", key], ["", long_key]),
        f"{prefix}.topologySpreadConstraints[0].whenUnsatisfiable": (
            ["DoNotSchedule", "ScheduleAnyway"],
            ["no"],
        ),
        f"{prefix}.priorityClassName": _SECRET_NAMES,
    }


def _named(count: int) -> list[Document]:
    return [{"name": f"n{number}"} for number in range(count)]


def _amounts(count: int) -> Document:
    return {f"example.com/r{number}": number for number in range(count)}


def _labels(count: int) -> dict[str, str]:
    return {f"l{number}": "v" for number in range(count)}


def _spreads(count: int) -> list[Document]:
    return [{"topologyKey": f"k{number}"} for number in range(count)]


def _secret(prefix: str) -> dict[str, Values]:
    return {f"{prefix}.name": _SECRET_NAMES, f"{prefix}.key": _SECRET_KEYS}


FULL_VALUES: Final[dict[str, Values]] = {
    "spec.model.name": (_VISIBLE[0] + ["m" * 256], _VISIBLE[1] + ["m" * 257]),
    "spec.model.aliases": ([[], [f"a{n}" for n in range(32)]], [[f"a{n}" for n in range(33)]]),
    "spec.model.aliases[0]": (_VISIBLE[0] + ["m" * 256], _VISIBLE[1] + ["m" * 257]),
    "spec.model.version": (["2026-11-28", "Auto", "v" * 128], ["", "a b", "ä", "v" * 129]),
    "spec.upstream.url": (
        [
            "https://a",
            "https://a.b:8443/v1/x?y"[:-2],
            "https://[::1]:80/",
            "https://a/%20",
            "https://" + "h" * 2040,
        ],
        [
            *(
                "",
                "https",
                "ftp://engine/v1",
                "https://",
                "https:///v1",
                "https://user@engine",
                "https://a b",
            ),
            *(
                "https://a/v1?x=1",
                "https://a/#b",
                "https://a:port/v1",
                "https://a/%zz",
                "https://[::1",
                "https://ä",
            ),
            *(
                "https://a:80:80/",
                "https://a]",
                "https://[1:2]",
                "https://[1.2.3.4]",
                "https://a:",
                "https://a:123456",
                "https://" + "h" * 2041,
            ),
        ],
    ),
    "spec.upstream.timeout": _DURATIONS,
    **_secret("spec.upstream.apiKeySecretRef"),
    **_secret("spec.upstream.caSecretRef"),
    "spec.upstream.allowedPaths": ([[], [f"/{n}" for n in range(64)]], [[f"/{n}" for n in range(65)]]),
    "spec.upstream.allowedPaths[0]": _PATHS,
    "spec.upstream.varyHeaders": ([[], [f"h{n}" for n in range(16)]], [[f"h{n}" for n in range(17)]]),
    "spec.upstream.varyHeaders[0]": _HEADERS,
    "spec.tenancy.mode": (["Required", "Single"], ["Optional", "required", ""]),
    "spec.tenancy.source.trustedHeader.name": _HEADERS,
    "spec.tenancy.role.header": _HEADERS,
    "spec.tenancy.onMissing": (["Bypass", "Reject"], ["Allow"]),
    "spec.routes": ([[], _named(32)], [_named(33), [{"name": "a"}, {"name": "a"}]]),
    "spec.routes[0].name": (["a", "0-a", "n" * 63], ["", "A", "-a", "a-", "a.b", "n" * 64]),
    "spec.routes[0].match.path": _PATHS,
    "spec.routes[0].layers": ([[], ["Exact"]], [["Exact"] * 9]),
    "spec.routes[0].layers[0]": (["Exact"], ["Semantic", ""]),
    "spec.routes[0].sampling": (["Strict"], ["ForceZero"]),
    "spec.routes[0].sideEffects": ([True, False], ["yes", 1]),
    "spec.stores.redis.managed.maxMemory": _QUANTITIES,
    **_placement("spec.stores.redis.managed"),
    "spec.layers.exact.ttl": _DURATIONS,
    "spec.limits.budget.exact": (["1ms", "50ms", "0s50ms"], ["51ms", *_DURATIONS[1]]),
    "spec.limits.budget.total": (["5ms", "1h"], _DURATIONS[1]),
    "spec.limits.maxCacheableBody": (["64Mi", "1"], ["65Mi", "1Ti", *_QUANTITIES[1]]),
    "spec.limits.maxBody": (["1Mi", "1048576"], _QUANTITIES[1]),
    "spec.gateway.replicas": ([0, 100, 3.0], [-1, 101, 1.5, "2"]),
    **_placement("spec.gateway"),
    "spec.deletionPolicy": (["Retain"], ["Delete"]),
    "spec.suspend": ([True], ["true"]),
    "metadata.name": (["a", "a-0", "n" * 40], ["n" * 41, "0a", "a.b"]),
}
"""By path: values that the full object may have there, and values that it may not."""

EXTERNAL_VALUES: Final = {
    **_secret("spec.stores.redis.external.urlSecretRef"),
    **_secret("spec.tenancy.source.apiKeys.secretRef"),
}
"""The same for the parts that only the other object has."""

_HTTP: Final = {"spec__upstream__url": "http://engine:8000/v1"}
_SOURCELESS: Final = {"spec__tenancy__mode": "Single", "spec__tenancy__source": GONE}

SINGLE: Final = (
    Case("minimal", MINIMAL),
    Case("full", FULL),
    Case("external", EXTERNAL),
    Case("nulls-are-as-if-left-out", changed(FULL, spec__routes=None, spec__gateway__image=None)),
    Case("a-null-takes-the-default", changed(MINIMAL, spec__limits=None, spec__layers__exact__ttl=None)),
    Case("a-null-is-no-value-for-a-required-field", changed(FULL, spec__model__name=None), "spec.model.name"),
    Case("a-null-map-value-is-dropped", changed(FULL, spec__gateway__nodeSelector={"a": None})),
    Case("no-layer", changed(FULL, spec__layers={}), "spec.layers"),
    Case("unknown-layer", changed(FULL, spec__layers={"exact": {}, "exakt": {}}), "spec.layers.exakt"),
    Case("unknown-field", changed(FULL, spec__gateway__replica=2), "spec.gateway.replica"),
    Case("python-name", changed(FULL, spec__deletion_policy="Retain"), "spec.deletion_policy"),
    Case("unknown-top-level", changed(FULL, specs={}), "specs"),
    Case("unknown-metadata", changed(FULL, metadata__label={}), "metadata.label"),
    Case("no-spec", changed(FULL, spec=GONE), "spec"),
    Case("alias-twice", changed(FULL, spec__model__aliases=["a", "b", "a"]), "spec.model.aliases[2]"),
    Case(
        "path-twice",
        changed(FULL, spec__upstream__allowedPaths=["/a", "/a"]),
        "spec.upstream.allowedPaths[1]",
    ),
    Case(
        "header-twice", changed(FULL, spec__upstream__varyHeaders=["a", "a"]), "spec.upstream.varyHeaders[1]"
    ),
    Case(
        "layer-twice",
        changed(FULL, spec__routes=[{"name": "a", "layers": ["Exact", "Exact"]}]),
        "spec.routes[0].layers[1]",
    ),
    Case("authority-without-https", changed(FULL, **_HTTP), "spec.upstream.caSecretRef"),
    Case("http-without-authority", changed(FULL, **_HTTP, spec__upstream__caSecretRef=GONE)),
    Case(
        "required-without-source",
        changed(FULL, spec__tenancy__source=GONE, spec__upstream__apiKeySecretRef=GONE),
        "spec.tenancy.source",
    ),
    Case(
        "both-sources",
        changed(EXTERNAL, spec__tenancy__source__trustedHeader={"name": "a"}),
        "spec.tenancy.source",
    ),
    Case("empty-source", changed(FULL, spec__tenancy__source={}), "spec.tenancy.source"),
    Case("key-for-anybody", changed(FULL, **_SOURCELESS), "spec.tenancy"),
    Case("no-key-no-source", changed(FULL, **_SOURCELESS, spec__upstream__apiKeySecretRef=GONE)),
    Case("single-with-source", changed(FULL, spec__tenancy__mode="Single")),
    Case("neither-redis", changed(FULL, spec__stores__redis={}), "spec.stores.redis"),
    Case("both-redis", changed(EXTERNAL, spec__stores__redis__managed={}), "spec.stores.redis"),
    *(
        Case(
            f"{list_name}-twice-in-{component}",
            changed(FULL, **{f"{component}.{list_name}": [item, item]}),
            f"{component}.{list_name}[1]",
        )
        for component in ("spec.gateway", "spec.stores.redis.managed")
        for list_name, item in (
            ("imagePullSecrets", {"name": "a"}),
            ("topologySpreadConstraints", {"topologyKey": "a"}),
        )
    ),
    Case(
        "memory-for-data-only",
        changed(FULL, spec__stores__redis__managed__resources__limits__memory="256Mi"),
        "spec.stores.redis.managed.resources",
    ),
    Case(
        "memory-in-bytes",
        changed(FULL, spec__stores__redis__managed__resources__limits__memory=268435457),
    ),
    Case(
        "too-few-bytes",
        changed(FULL, spec__stores__redis__managed__resources__limits__memory=268435456),
        "spec.stores.redis.managed.resources",
    ),
)
"""Rules that span fields, and what no table of values can say."""

_VALKEY: Final = changed(FULL, spec__stores__redis__managed__flavor="Valkey")
_TO_EXTERNAL: Final = changed(FULL, spec__stores=EXTERNAL["spec"]["stores"])

TRANSITIONS: Final = (
    Case("stay", FULL, old=FULL),
    Case("larger", changed(FULL, spec__stores__redis__managed__maxMemory="512Mi"), old=FULL),
    Case("other-model", changed(FULL, spec__model={"name": "n", "version": "2"}), old=FULL),
    Case("flavor", _VALKEY, "spec.stores.redis.managed.flavor", FULL),
    Case("managed-to-external", _TO_EXTERNAL, "spec.stores.redis", FULL),
    Case("external-to-managed", FULL, "spec.stores.redis", _TO_EXTERNAL),
    Case(
        "other-secret", changed(EXTERNAL, spec__stores__redis__external__urlSecretRef__name="b"), old=EXTERNAL
    ),
    # Each way to remove first and add again afterwards must end at its first step.
    Case(
        "remove-flavor",
        changed(FULL, spec__stores__redis__managed__flavor=GONE),
        "spec.stores.redis.managed.flavor",
        FULL,
    ),
    Case(
        "null-flavor",
        changed(FULL, spec__stores__redis__managed__flavor=None),
        "spec.stores.redis.managed.flavor",
        FULL,
    ),
    Case(
        "empty-managed",
        changed(FULL, spec__stores__redis__managed={}),
        "spec.stores.redis.managed.flavor",
        FULL,
    ),
    Case("remove-managed", changed(FULL, spec__stores__redis__managed=GONE), "spec.stores.redis", FULL),
    Case(
        "remove-external",
        changed(EXTERNAL, spec__stores__redis__external=GONE),
        "spec.stores.redis",
        EXTERNAL,
    ),
    Case("remove-redis", changed(FULL, spec__stores__redis=GONE), "spec.stores.redis", FULL),
    Case("remove-stores", changed(FULL, spec__stores=GONE), "spec.stores", FULL),
    Case(
        "remove-the-default-flavor", changed(_VALKEY, spec__stores__redis__managed__flavor=GONE), old=_VALKEY
    ),
)


def template(path: str) -> str:
    """Return a path without its indices: `spec.routes[].name`."""
    return re.sub(r"\[\d+\]", "[]", path)


def schema_at(path: str) -> Schema:
    """Return the schema of a path."""
    schema: Schema = object_schema()
    for step in steps(path):
        schema = below(schema, step) or {}
    return schema


def every_case() -> list[Case]:
    """Return all cases, each under a name of its own."""
    tables = [*_value_cases(FULL, FULL_VALUES), *_value_cases(EXTERNAL, EXTERNAL_VALUES)]
    return [*SINGLE, *TRANSITIONS, *tables, *_wrong_types(), *_missing_fields()]


def _value_cases(base: Document, table: dict[str, Values]) -> Iterator[Case]:
    for path, (good, bad) in table.items():
        for number, value in enumerate(good):
            yield Case(f"{path}-good-{number}", _with(base, path, value))
        for number, value in enumerate(bad):
            yield Case(f"{path}-bad-{number}", _with(base, path, value), _place(path, value))


def _place(path: str, value: Any) -> str:
    """Return where the problem of a bad value is: of a list's items, where the last of them is."""
    if path.endswith("imagePullSecrets") and {} in value:
        return f"{path}[{len(value) - 1}].name"
    return path


def _with(base: Document, path: str, value: Any) -> Document:
    document = _copy(base)
    put(document, path, value)
    return document


def _fields(document: Document) -> Iterator[str]:
    """Yield every path of `spec` that the document fills and the schema names."""

    def walk(value: Any, schema: Schema, path: str) -> Iterator[str]:
        yield path
        if isinstance(value, dict):
            for name, child in value.items():
                if name in properties_of(schema):
                    yield from walk(child, properties_of(schema)[name], f"{path}.{name}")
        elif isinstance(value, list):
            yield from walk(value[0], schema["items"], f"{path}[0]")

    yield from walk(document["spec"], object_schema()["properties"]["spec"], "spec")


def _every_field() -> dict[str, Document]:
    """Return every path with an object that fills it."""
    return dict.fromkeys(_fields(EXTERNAL), EXTERNAL) | dict.fromkeys(_fields(FULL), FULL)


def _wrong_types() -> Iterator[Case]:
    wrong = {"string": 5, "integer": "5", "boolean": "true", "array": {}, "object": []}
    for path, base in _every_field().items():
        schema = schema_at(path)
        if not schema.get(INT_OR_STRING):
            yield Case(f"{path}-type", _with(base, path, wrong[schema["type"]]), path)


def _missing_fields() -> Iterator[Case]:
    for path, base in _every_field().items():
        for name in schema_at(path).get("required", ()):
            yield Case(f"{path}.{name}-missing", _with(base, f"{path}.{name}", GONE), f"{path}.{name}")
