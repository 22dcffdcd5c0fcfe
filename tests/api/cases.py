"""Good and bad objects for every bound and every rule of the schema, as data.

The unit tier runs them through offline validation and checks that no bound or rule is left out; the API tier
sends the same objects to a real API server, which must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cachewright.crd.schema import INT_OR_STRING, Schema, below, object_schema, properties_of
from tests.api.documents import (
    CREDENTIAL,
    EXTERNAL,
    FULL,
    GONE,
    MANAGED,
    MINIMAL,
    Document,
    changed,
    put,
    steps,
)
from tests.api.values import CREDENTIAL_VALUES, EXTERNAL_VALUES, FULL_VALUES, MANAGED_VALUES, Values


@dataclass(frozen=True, slots=True)
class Case:
    """One object; `broken` is the path of a problem that it must have, None where it must have none.

    With `old`, the object replaces that one.
    """

    name: str
    document: Document
    broken: str | None = None
    old: Document | None = None


_HTTP: Final = {"spec__upstream__url": "http://engine:8000/v1"}
_SOURCELESS: Final = {"spec__tenancy__mode": "Single", "spec__tenancy__source": GONE}

SINGLE: Final = (
    Case("minimal", MINIMAL),
    Case("full", FULL),
    Case("external", EXTERNAL),
    Case("managed", MANAGED),
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
    Case(
        "guard-twice",
        changed(FULL, spec__layers__semantic__guard=["Names", "Names"]),
        "spec.layers.semantic.guard[1]",
    ),
    Case("semantic-alone", changed(FULL, spec__layers__exact=GONE), "spec.layers.semantic"),
    Case("semantic-without-embedder", changed(FULL, spec__embedder=GONE), "spec.embedder"),
    Case("semantic-without-qdrant", changed(FULL, spec__stores__qdrant=GONE), "spec.layers.semantic.store"),
    Case(
        "semantic-without-postgres",
        changed(FULL, spec__stores__postgres=GONE, spec__layers__semantic__store="Postgres"),
        "spec.layers.semantic.store",
    ),
    Case("semantic-in-postgres", changed(FULL, spec__layers__semantic__store="Postgres")),
    Case(
        "semantic-in-qdrant-alone",
        changed(FULL, spec__stores__postgres=GONE, spec__layers__embedding=GONE),
    ),
    Case("semantic-routes-without-the-layer", changed(FULL, spec__layers__semantic=GONE), "spec.routes"),
    Case("exact-routes-without-the-layer", changed(FULL, spec__layers__semantic=GONE, spec__routes=GONE)),
    Case(
        "prefix-without-workload",
        changed(
            FULL,
            spec__model__workloadRef=GONE,
            spec__rotation__fence="None",
            spec__layers__prefix__workloadRef=GONE,
        ),
        "spec.layers.prefix.workloadRef",
    ),
    Case(
        "shared-salt-without-salt",
        changed(FULL, spec__layers__prefix__tenantSalt=False, spec__layers__prefix__sharedSaltFor=["chat"]),
        "spec.layers.prefix.sharedSaltFor",
    ),
    Case(
        "salt-with-lmcache",
        changed(FULL, spec__layers__prefix__connector="LMCache"),
        "spec.layers.prefix.tenantSalt",
    ),
    Case(
        "lmcache-without-salt",
        changed(FULL, spec__layers__prefix__connector="LMCache", spec__layers__prefix__tenantSalt=False),
    ),
    Case("shared-salt", changed(FULL, spec__layers__prefix__sharedSaltFor=["other", "chat"])),
    Case(
        "shared-salt-for-no-route",
        changed(FULL, spec__layers__prefix__sharedSaltFor=["chat", "faq"]),
        "spec.layers.prefix.sharedSaltFor",
    ),
    Case(
        "shared-salt-for-the-default-route",
        changed(FULL, spec__routes=GONE, spec__layers__prefix__sharedSaltFor=["default"]),
    ),
    Case(
        "shared-salt-twice",
        changed(FULL, spec__layers__prefix__sharedSaltFor=["chat", "chat"]),
        "spec.layers.prefix.sharedSaltFor[1]",
    ),
    Case(
        "shared-salt-no-list",
        changed(FULL, spec__layers__prefix__sharedSaltFor="chat"),
        "spec.layers.prefix.sharedSaltFor",
    ),
    *(
        Case(
            f"shared-salt-name-{number}",
            changed(FULL, spec__layers__prefix__sharedSaltFor=[name]),
            "spec.layers.prefix.sharedSaltFor[0]",
        )
        for number, name in enumerate(["", "A", "n" * 64, 1])
    ),
    Case(
        "prefix-of-other-pods-without-selector",
        changed(
            FULL,
            spec__layers__prefix__workloadRef__kind="RayCluster",
            spec__layers__prefix__workloadRef__podSelector=GONE,
        ),
        "spec.layers.prefix.workloadRef.podSelector",
    ),
    Case("prefix-of-the-models-workload", changed(FULL, spec__layers__prefix__workloadRef=GONE)),
    Case(
        "prefix-triton-by-file",
        changed(
            FULL,
            spec__layers__prefix__engine="Triton",
            spec__layers__prefix__responseCache="1Gi",
            spec__layers__prefix__delivery="ConfigMap",
        ),
        "spec.layers.prefix.delivery",
    ),
    Case(
        "prefix-patched",
        changed(FULL, spec__layers__prefix__delivery="Patch", spec__layers__prefix__rollout="Immediate"),
    ),
    Case(
        "prefix-patched-without-a-word-on-rolling",
        changed(FULL, spec__layers__prefix__delivery="Patch"),
        "spec.layers.prefix.rollout",
    ),
    Case(
        "prefix-patched-with-a-file",
        changed(
            FULL,
            spec__layers__prefix__engine="TensorRTLLM",
            spec__layers__prefix__delivery="Patch",
            spec__layers__prefix__rollout="Immediate",
        ),
        "spec.layers.prefix.delivery",
    ),
    Case(
        "prefix-patched-of-another-kind",
        changed(
            FULL,
            spec__layers__prefix__delivery="Patch",
            spec__layers__prefix__rollout="Immediate",
            spec__layers__prefix__workloadRef__kind="RayCluster",
        ),
        "spec.layers.prefix.delivery",
    ),
    Case(
        "prefix-patched-of-the-models-workload",
        changed(
            FULL,
            spec__layers__prefix__delivery="Patch",
            spec__layers__prefix__rollout="Immediate",
            spec__layers__prefix__workloadRef=GONE,
        ),
    ),
    *(
        Case(
            f"prefix-patched-{kind}-{version.rpartition('/')[2]}-{engine}",
            changed(
                FULL,
                spec__layers__prefix__engine=engine,
                spec__layers__prefix__delivery="Patch",
                spec__layers__prefix__rollout="Immediate",
                spec__layers__prefix__workloadRef__apiVersion=version,
                spec__layers__prefix__workloadRef__kind=kind,
            ),
            broken,
        )
        for kind, version, engine, broken in (
            ("VLLMRuntime", "production-stack.vllm.ai/v1alpha1", "VLLM", None),
            ("VLLMRuntime", "production-stack.vllm.ai/v1alpha1", "SGLang", "spec.layers.prefix.engine"),
            ("LLMInferenceService", "serving.kserve.io/v1alpha1", "VLLM", None),
            ("LLMInferenceService", "serving.kserve.io/v1alpha2", "VLLM", None),
            ("LLMInferenceService", "serving.kserve.io/v1", "VLLM", "spec.layers.prefix.delivery"),
        )
    ),
    Case(
        "prefix-triton-without-size",
        changed(FULL, spec__layers__prefix__engine="Triton"),
        "spec.layers.prefix.responseCache",
    ),
    Case(
        "prefix-response-cache-elsewhere",
        changed(FULL, spec__layers__prefix__responseCache="1Gi"),
        "spec.layers.prefix.responseCache",
    ),
    Case(
        "prefix-flush-without-endpoint",
        changed(FULL, spec__layers__prefix__engine="TensorRTLLM", spec__layers__prefix__flush="AfterSwitch"),
        "spec.layers.prefix.flush",
    ),
    Case(
        "prefix-flush-without-a-switch",
        changed(
            FULL,
            spec__routes=GONE,
            spec__layers__exact=GONE,
            spec__layers__semantic=GONE,
            spec__layers__prefix__tenantSalt=False,
            spec__layers__prefix__flush="AfterSwitch",
        ),
        "spec.layers.prefix.flush",
    ),
    Case(
        "prefix-flush-after-switches-of-the-exact-layer",
        changed(FULL, spec__layers__prefix__tenantSalt=False, spec__layers__prefix__flush="AfterSwitch"),
    ),
    Case(
        "prefix-flag-twice",
        changed(FULL, spec__layers__prefix__suppressArgs=["--a", "--b", "--a"]),
        "spec.layers.prefix.suppressArgs[2]",
    ),
    *(
        Case(f"route-{name}", changed(FULL, spec__routes=[{"name": "a", **route}]), broken)
        for name, route, broken in (
            ("semantic-alone", {"layers": ["Semantic"]}, "spec.routes[0].layers"),
            ("both-layers", {"layers": ["Semantic", "Exact"]}, None),
            ("threshold-without-semantic", {"threshold": 0.9}, "spec.routes[0].threshold"),
            (
                "question-without-semantic",
                {"question": {"between": {"start": "<q>", "end": "</q>"}}},
                "spec.routes[0].question",
            ),
        )
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
    Case("credential", CREDENTIAL),
    Case(
        "credential-and-upstream-key",
        changed(CREDENTIAL, spec__upstream__apiKeySecretRef={"name": "upstream", "key": "token"}),
        "spec.upstream.apiKeySecretRef",
    ),
    Case(
        "credential-and-header",
        changed(CREDENTIAL, spec__tenancy__source__trustedHeader={"name": "a"}),
        "spec.tenancy.source",
    ),
    Case(
        "credential-and-claimed-role",
        changed(CREDENTIAL, spec__tenancy__mode="Single", spec__tenancy__user=GONE),
        "spec.tenancy.role",
    ),
    Case(
        "credential-and-claimed-user",
        changed(CREDENTIAL, spec__tenancy__mode="Single", spec__tenancy__role=GONE),
        "spec.tenancy.user",
    ),
    Case(
        "shared-credentials",
        changed(CREDENTIAL, spec__tenancy__mode="Single", spec__tenancy__role=GONE, spec__tenancy__user=GONE),
    ),
    Case("empty-user", changed(FULL, spec__tenancy__user={}), "spec.tenancy.user"),
    Case("both-users", changed(EXTERNAL, spec__tenancy__user__header="X-User"), "spec.tenancy.user"),
    Case("empty-source", changed(FULL, spec__tenancy__source={}), "spec.tenancy.source"),
    Case("key-for-anybody", changed(FULL, **_SOURCELESS), "spec.tenancy"),
    Case(
        "no-key-no-source",
        changed(
            FULL,
            **_SOURCELESS,
            spec__upstream__apiKeySecretRef=GONE,
            spec__embedder__apiKeySecretRef=GONE,
        ),
    ),
    Case("single-with-source", changed(FULL, spec__tenancy__mode="Single")),
    *(
        Case(
            f"authority-without-https-of-{store}",
            changed(FULL, **{f"{path}.url": "http://a:1"}),
            f"{path}.caSecretRef",
        )
        for store, path in (("embedder", "spec.embedder"), ("qdrant", "spec.stores.qdrant.external"))
    ),
    Case("http-embedder", changed(FULL, spec__embedder__url="http://a", spec__embedder__caSecretRef=GONE)),
    Case("neither-embedder", changed(FULL, spec__embedder={}), "spec.embedder"),
    Case("both-embedders", changed(EXTERNAL, spec__embedder__url="http://a/v1"), "spec.embedder"),
    *(
        Case(
            f"embedder-without-{field}",
            changed(FULL, **{f"spec.embedder.{field}": GONE}),
            "spec.embedder.url",
        )
        for field in ("model", "dimensions", "maxTokens")
    ),
    *(
        Case(
            f"builtin-with-{field}",
            changed(EXTERNAL, **{f"spec.embedder.{field}": value}),
            "spec.embedder.builtin",
        )
        for field, value in FULL["spec"]["embedder"].items()
        if field != "url"
    ),
    Case("embedding-without-embedder", changed(FULL, spec__embedder=GONE), "spec.layers.embedding"),
    Case(
        "cold-without-postgres",
        changed(FULL, spec__stores__postgres=GONE),
        "spec.layers.embedding.cold",
    ),
    Case(
        "hot-without-postgres",
        changed(FULL, spec__stores__postgres=GONE, spec__layers__embedding__cold=GONE),
    ),
    Case(
        "embedder-key-for-anybody",
        changed(FULL, **_SOURCELESS, spec__upstream__apiKeySecretRef=GONE),
        "spec.tenancy",
    ),
    Case(
        "embedder-key-for-the-cache-alone",
        changed(FULL, **_SOURCELESS, spec__upstream__apiKeySecretRef=GONE, spec__layers__embedding=GONE),
    ),
    Case(
        "credential-and-embeddings",
        changed(CREDENTIAL, spec__layers__embedding={}),
        "spec.layers.embedding",
    ),
    Case("embeddings-alone", changed(FULL, spec__routes=GONE, spec__layers={"embedding": {}})),
    Case("builtin", changed(FULL, spec__embedder={"builtin": {}})),
    Case("embedder-without-revision", changed(FULL, spec__embedder__revision=GONE)),
    Case("no-template", changed(FULL, spec__promptTemplate={}), "spec.promptTemplate"),
    Case("both-templates", changed(EXTERNAL, spec__promptTemplate__version="v1"), "spec.promptTemplate"),
    Case("fence-without-workload", changed(FULL, spec__model__workloadRef=GONE), "spec.model.workloadRef"),
    Case("no-fence-no-workload", changed(FULL, spec__model__workloadRef=GONE, spec__rotation__fence="None")),
    Case("neither-fence-nor-workload", changed(FULL, spec__model__workloadRef=GONE, spec__rotation=GONE)),
    Case(
        "auto-by-workload",
        changed(MINIMAL, spec__model={"name": "m", "version": "Auto", "workloadRef": {"name": "a"}}),
    ),
    Case("auto-without-workload", changed(MINIMAL, spec__model__version="Auto"), "spec.model.version"),
    Case(
        "auto-without-fence",
        changed(FULL, spec__model__version="Auto", spec__rotation__fence="None"),
        "spec.model.version",
    ),
    Case(
        "stateful-set",
        changed(FULL, spec__model__workloadRef={"kind": "StatefulSet", "name": "a"}),
    ),
    Case(
        "other-kind-without-labels",
        changed(
            FULL, spec__model__workloadRef__kind="RayCluster", spec__model__workloadRef__podSelector=GONE
        ),
        "spec.model.workloadRef.podSelector",
    ),
    Case(
        "other-group-without-labels",
        changed(
            FULL,
            spec__model__workloadRef__apiVersion="example.com/v1",
            spec__model__workloadRef__podSelector=GONE,
        ),
        "spec.model.workloadRef.podSelector",
    ),
    Case("neither-redis", changed(FULL, spec__stores__redis={}), "spec.stores.redis"),
    Case("both-redis", changed(EXTERNAL, spec__stores__redis__managed={}), "spec.stores.redis"),
    *(
        Case(f"{name}-{store}", changed(MANAGED, **{f"spec.stores.{store}": value}), broken)
        for store in ("qdrant", "postgres")
        for name, value, broken in (
            ("neither", {}, f"spec.stores.{store}"),
            ("both", {**FULL["spec"]["stores"][store], "managed": {}}, f"spec.stores.{store}"),
            ("default", {"managed": {}}, None),
        )
    ),
    *(
        Case(
            f"memory-over-the-limit-of-{store}",
            changed(MANAGED, **{f"spec.stores.{store}.managed.memory": "1025Mi"}),
            f"spec.stores.{store}.managed.resources",
        )
        for store in ("qdrant", "postgres")
    ),
    *(
        Case(
            f"{list_name}-twice-in-{component}",
            changed(MANAGED, **{f"{component}.{list_name}": [item, item]}),
            f"{component}.{list_name}[1]",
        )
        for component in (
            "spec.gateway",
            "spec.stores.redis.managed",
            "spec.stores.qdrant.managed",
            "spec.stores.postgres.managed",
        )
        for list_name, item in (
            ("imagePullSecrets", {"name": "a"}),
            ("topologySpreadConstraints", {"topologyKey": "a"}),
        )
    ),
    Case(
        "more-instances-than-one-pod",
        changed(MANAGED, spec__stores__postgres__managed__provider="StatefulSet"),
        "spec.stores.postgres.managed.instances",
    ),
    Case(
        "instances-of-nobody",
        changed(MANAGED, spec__stores__postgres__managed__provider=GONE),
        "spec.stores.postgres.managed.instances",
    ),
    Case(
        "one-instance-of-a-pod",
        changed(
            MANAGED,
            spec__stores__postgres__managed__provider=GONE,
            spec__stores__postgres__managed__instances=GONE,
        ),
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

_STORAGE: Final = ".managed.storage"
_VALKEY: Final = changed(FULL, spec__stores__redis__managed__flavor="Valkey")
_ONE_POD: Final = changed(
    MANAGED,
    spec__stores__postgres__managed__provider="StatefulSet",
    spec__stores__postgres__managed__instances=1,
)
_TO_EXTERNAL: Final = changed(FULL, spec__stores=EXTERNAL["spec"]["stores"])

TRANSITIONS: Final = (
    Case("stay", FULL, old=FULL),
    Case("larger", changed(FULL, spec__stores__redis__managed__maxMemory="512Mi"), old=FULL),
    Case("other-model", changed(FULL, spec__model__name="n", spec__model__version="2"), old=FULL),
    Case("other-cache-id", changed(FULL, spec__cacheID="f" * 16), "spec.cacheID", FULL),
    Case("remove-cache-id", changed(FULL, spec__cacheID=GONE), "spec.cacheID", FULL),
    Case("null-cache-id", changed(FULL, spec__cacheID=None), "spec.cacheID", FULL),
    Case("add-cache-id", FULL, old=changed(FULL, spec__cacheID=GONE)),
    Case("flavor", _VALKEY, "spec.stores.redis.managed.flavor", FULL),
    *(
        Case(
            f"{store}-{name}",
            changed(MANAGED, **{f"spec.stores.{store}{field}": value}),
            f"spec.stores.{store}{broken}" if broken is not None else None,
            MANAGED,
        )
        for store in ("qdrant", "postgres")
        for name, field, value, broken in (
            ("to-external", "", FULL["spec"]["stores"][store], ""),
            ("grows", f"{_STORAGE}.size", "10.5Gi", None),
            ("shrinks", f"{_STORAGE}.size", "10239Mi", f"{_STORAGE}.size"),
            ("other-class", f"{_STORAGE}.storageClassName", "slow", f"{_STORAGE}.storageClassName"),
            ("without-class", f"{_STORAGE}.storageClassName", GONE, f"{_STORAGE}.storageClassName"),
            ("more-memory", ".managed.memory", "1024Mi", None),
        )
    ),
    Case("other-provider", _ONE_POD, "spec.stores.postgres.managed.provider", MANAGED),
    Case("provider-of-old", changed(_ONE_POD, spec__stores__postgres__managed__provider=GONE), old=_ONE_POD),
    Case(
        "from-no-provider",
        MANAGED,
        "spec.stores.postgres.managed.provider",
        changed(_ONE_POD, spec__stores__postgres__managed__provider=GONE),
    ),
    Case("qdrant-to-managed", MANAGED, "spec.stores.qdrant", FULL),
    Case("postgres-to-managed", MANAGED, "spec.stores.postgres", FULL),
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
    tables += _value_cases(CREDENTIAL, CREDENTIAL_VALUES)
    tables += _value_cases(MANAGED, MANAGED_VALUES)
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
    document = changed(base)
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
    bases = (MANAGED, CREDENTIAL, EXTERNAL, FULL)
    return {path: base for base in bases for path in _fields(base)}


def _wrong_types() -> Iterator[Case]:
    wrong = {"string": 5, "integer": "5", "number": "5", "boolean": "true", "array": {}, "object": []}
    for path, base in _every_field().items():
        schema = schema_at(path)
        if not schema.get(INT_OR_STRING):
            yield Case(f"{path}-type", _with(base, path, wrong[schema["type"]]), path)


def _missing_fields() -> Iterator[Case]:
    for path, base in _every_field().items():
        for name in schema_at(path).get("required", ()):
            yield Case(f"{path}.{name}-missing", _with(base, f"{path}.{name}", GONE), f"{path}.{name}")
