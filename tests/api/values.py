"""By path of the schema: values that the full object may have there, and values that it may not."""

from __future__ import annotations

from typing import Any, Final

from tests.api.documents import Document

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
_URLS: Final = (
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
)
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


def _workload(prefix: str) -> dict[str, Values]:
    return {
        f"{prefix}.apiVersion": (
            ["apps/v1", "v1", "leaderworkerset.x-k8s.io/v1", "a/v1alpha1", "a/v1" + "b" * 124],
            ["", "apps", "apps/", "/v1", "Apps/v1", "apps/V1", "a/v1" + "b" * 125],
        ),
        f"{prefix}.kind": (
            ["StatefulSet", "LeaderWorkerSet", "K" * 63],
            ["", "statefulSet", "a b", "K" * 64],
        ),
        f"{prefix}.name": _SECRET_NAMES,
        f"{prefix}.container": (["a", "0-a", "n" * 63], ["", "A", "-a", "a.b", "n" * 64]),
        f"{prefix}.podSelector.matchLabels": (
            [_labels(1), _labels(16), {"a" * 316: ""}],
            [{}, _labels(17), {"": "a"}, {"a" * 317: "a"}],
        ),
        f"{prefix}.podSelector.matchLabels[app.kubernetes.io/name]": (["", "v" * 63], ["v" * 64, True]),
    }


_PREFIX: Final[dict[str, Values]] = {
    "spec.layers.prefix.engine": (["SGLang", "TensorRTLLM"], ["vllm", ""]),
    "spec.layers.prefix.engineVersion": (
        ["v0.5.3.post1", "1", "1.3.0rc2", "0.32.0+cu124", "1.2.3" + "a" * 41],
        ["", "latest", "1.2.3.4", "1.2.3" + "a" * 42, "1234567", "1." + "2" * 80, "1 "],
    ),
    "spec.layers.prefix.delivery": (["Inject", "ConfigMap"], ["Helm", ""]),
    "spec.layers.prefix.rollout": (["Immediate"], ["Never", ""]),
    **_workload("spec.layers.prefix.workloadRef"),
    "spec.layers.prefix.blockSize": ([1, 4096], [0, 4097, 1.5]),
    "spec.layers.prefix.hashAlgorithm": (["SHA256CBOR", "XXHash", "XXHashCBOR"], ["MD5"]),
    "spec.layers.prefix.eviction": (["LFU", "SLRU", "Priority", "TLRU"], ["lru"]),
    "spec.layers.prefix.gpuMemoryShare": ([0.01, 1], [-0.01, 0, 1.01]),
    "spec.layers.prefix.hostMemory": _QUANTITIES,
    "spec.layers.prefix.connector": (["Native"], ["Other"]),
    "spec.layers.prefix.disk.size": _QUANTITIES,
    "spec.layers.prefix.disk.path": (["/", "/" + "p" * 255], ["", "cache", "/a b", "/" + "p" * 256]),
    "spec.layers.prefix.events.endpoint": (
        ["ipc:///run/events", "inproc://a", "tcp://" + "h" * 250],
        ["", "tcp://", "udp://*:1", "tcp://a b", "tcp://" + "h" * 251],
    ),
    "spec.layers.prefix.tenantSalt": ([], ["yes", 1]),
    "spec.layers.prefix.sharedSaltFor": ([["chat"]], [[f"r{number}" for number in range(33)]]),
    "spec.layers.prefix.reportCachedTokens": ([False], ["yes", 1]),
    "spec.layers.prefix.flush": (["AfterSwitch"], ["Always", ""]),
    "spec.layers.prefix.metrics.enabled": ([False], ["yes", 1]),
    "spec.layers.prefix.metrics.port": ([1, 65535], [0, 65536, 8000.5, "http"]),
    "spec.layers.prefix.extraArgs": ([[], ["-a"] * 64], [["-a"] * 65]),
    "spec.layers.prefix.extraArgs[0]": (['{"a": 1}', "w" * 1024], ["", "a\nb", "ä", "w" * 1025]),
    "spec.layers.prefix.suppressArgs": (
        [[], [f"--f{n}" for n in range(64)]],
        [[f"--f{n}" for n in range(65)]],
    ),
    "spec.layers.prefix.suppressArgs[0]": (
        ["--a", "--block_size", "--" + "f" * 126],
        ["", "--", "-a", "--A", "--a=1", "--" + "f" * 127],
    ),
}

_THRESHOLDS: Final[Values] = ([0.01, 0.5, 1, 1.0], [0, 0.0, 1.001, -0.5])


def _kept_store(prefix: str) -> dict[str, Values]:
    return {
        f"{prefix}.memory": _QUANTITIES,
        f"{prefix}.storage.size": _QUANTITIES,
        f"{prefix}.storage.storageClassName": _SECRET_NAMES,
        **_placement(prefix),
    }


FULL_VALUES: Final[dict[str, Values]] = {
    "spec.model.name": (_VISIBLE[0] + ["m" * 256], _VISIBLE[1] + ["m" * 257]),
    "spec.model.aliases": ([[], [f"a{n}" for n in range(32)]], [[f"a{n}" for n in range(33)]]),
    "spec.model.aliases[0]": (_VISIBLE[0] + ["m" * 256], _VISIBLE[1] + ["m" * 257]),
    "spec.model.version": (["2026-11-28", "Auto", "v" * 128], ["", "a b", "ä", "v" * 129]),
    "spec.promptTemplate.version": (["v7", "v" * 128], ["", "a b", "ä", "v" * 129]),
    "spec.cacheID": (
        ["0" * 16, "fedcba9876543210"],
        ["", "0" * 15, "0" * 17, "F" * 16, "g" * 16, "0" * 16 + "\n"],
    ),
    "spec.epoch": ([0, 2**31 - 1, 1.0], [-1, 2**31, 1.5]),
    **_workload("spec.model.workloadRef"),
    "spec.rotation.fence": (["Workload", "None"], ["none", ""]),
    "spec.rotation.deadline": _DURATIONS,
    "spec.rotation.heartbeatTimeout": (
        ["10s", "10000ms", "24h"],
        ["9s", "9999ms", "24h1ms", "25h", *_DURATIONS[1]],
    ),
    "spec.rotation.retain": _DURATIONS,
    "spec.rotation.maxRetained": ([0, 32], [-1, 33, 1.5]),
    "spec.upstream.url": _URLS,
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
    "spec.tenancy.user.header": _HEADERS,
    "spec.tenancy.onMissing": (["Bypass", "Reject"], ["Allow"]),
    "spec.routes": ([[], _named(32)], [_named(33), [{"name": "a"}, {"name": "a"}]]),
    "spec.routes[0].name": (["a", "0-a", "n" * 63], ["", "A", "-a", "a-", "a.b", "n" * 64]),
    "spec.routes[0].match.path": _PATHS,
    "spec.routes[0].layers": ([["Exact", "Semantic"], ["Semantic", "Exact"]], [["Exact"] * 9]),
    "spec.routes[0].layers[0]": (["Exact"], ["Fuzzy", ""]),
    "spec.routes[0].sampling": (["Strict", "ForceZero", "AssumeDeterministic"], ["Force", ""]),
    "spec.routes[0].promptTemplate.version": (["v7", "v" * 128], ["", "a b", "ä", "v" * 129]),
    "spec.routes[0].experiment.armHeader": _HEADERS,
    "spec.routes[0].documents": (["Optional", "Required"], ["Ignored", ""]),
    "spec.routes[0].extractDocuments.between.start": (["<doc>", " ", "ä" * 64], ["", "m" * 65]),
    "spec.routes[0].extractDocuments.between.end": (["</doc>", "ä" * 64], ["", "m" * 65, "[doc:", "x[doc:]"]),
    "spec.routes[0].question.between.start": (["<q>", "ä" * 64], ["", "m" * 65]),
    "spec.routes[0].question.between.end": (["</q>", "ä" * 64], ["", "m" * 65, "[ask:", "x[ask:]"]),
    "spec.routes[0].threshold": _THRESHOLDS,
    "spec.routes[0].sideEffects": ([True, False], ["yes", 1]),
    "spec.layers.embedding.hotTTL": _DURATIONS,
    "spec.layers.embedding.cold": (["Postgres"], ["Qdrant", "postgres", ""]),
    "spec.layers.embedding.shareAcrossTenants": ([True, False], ["yes", 1]),
    "spec.layers.embedding.epoch": ([0, 2**31 - 1, 1.0], [-1, 2**31, 1.5]),
    "spec.embedder.url": _URLS,
    "spec.embedder.model": (_VISIBLE[0] + ["m" * 256], _VISIBLE[1] + ["m" * 257]),
    "spec.embedder.revision": (["2", "v" * 128], ["", "a b", "ä", "v" * 129]),
    "spec.embedder.dimensions": ([1, 16_000, 384], [0, -1, 16_001, 1.5]),
    "spec.embedder.maxTokens": ([8, 1_000_000], [7, 1_000_001, 8.5]),
    "spec.embedder.timeout": _DURATIONS,
    **_secret("spec.embedder.apiKeySecretRef"),
    **_secret("spec.embedder.caSecretRef"),
    "spec.stores.qdrant.external.url": _URLS,
    **_secret("spec.stores.qdrant.external.apiKeySecretRef"),
    **_secret("spec.stores.qdrant.external.caSecretRef"),
    **_secret("spec.stores.postgres.external.dsnSecretRef"),
    **_secret("spec.stores.postgres.external.caSecretRef"),
    "spec.stores.redis.managed.maxMemory": _QUANTITIES,
    **_placement("spec.stores.redis.managed"),
    "spec.layers.exact.ttl": _DURATIONS,
    "spec.layers.exact.local.maxEntries": ([0, 1_000_000], [-1, 1_000_001, 1.5, "2"]),
    "spec.layers.exact.local.ttl": _DURATIONS,
    "spec.layers.exact.epoch": ([0, 2**31 - 1], [-1, 2**31, 1.5]),
    "spec.layers.semantic.mode": (["Serve", "Shadow"], ["Off", ""]),
    "spec.layers.semantic.store": (["Qdrant", "Postgres"], ["Memory", ""]),
    "spec.layers.semantic.profile": (
        ["General", "Support", "Legal", "Medical", "Financial"],
        ["general", ""],
    ),
    "spec.layers.semantic.threshold": _THRESHOLDS,
    "spec.layers.semantic.ttl": (["1s", "8760h"], ["8761h", *_DURATIONS[1]]),
    "spec.layers.semantic.maxEntries": ([10_000, 100_000_000], [0, 100_000_001, 1.5]),
    "spec.layers.semantic.maxEntriesPerTenant": ([1, 1_000_000], [0, 1_000_001, 100_000_001]),
    "spec.layers.semantic.maxTurns": ([1, 64], [0, 65]),
    "spec.layers.semantic.guard": ([[], ["Names"]], [["Names"] * 17]),
    "spec.layers.semantic.guard[0]": (["Numbers"], ["Tense", ""]),
    "spec.layers.semantic.otherLanguages": (["Exact", "Unguarded"], ["Guess"]),
    "spec.layers.semantic.admission.minSeen": ([1, 1000], [0, 1001]),
    "spec.layers.semantic.exposeSimilarity": ([True, False], ["yes"]),
    "spec.layers.semantic.hnsw.m": ([2, 100], [1, 101]),
    "spec.layers.semantic.hnsw.efConstruct": ([4, 1000], [3, 1001]),
    "spec.layers.semantic.hnsw.payloadM": ([2, 100], [1, 101]),
    "spec.layers.semantic.quantization": (["None", "Scalar"], ["Binary"]),
    "spec.layers.semantic.epoch": ([0, 2**31 - 1], [-1, 2**31, 1.5]),
    **_PREFIX,
    "spec.limits.budget.exact": (["1ms", "50ms", "0s50ms"], ["51ms", *_DURATIONS[1]]),
    "spec.limits.budget.total": (["5ms", "1h"], _DURATIONS[1]),
    "spec.limits.coalesceTimeout": (["1ms", "1m", "60s"], ["61s", *_DURATIONS[1]]),
    "spec.limits.maxCacheableBody": (["64Mi", "1"], ["65Mi", "1Ti", *_QUANTITIES[1]]),
    "spec.limits.maxBody": (["1Mi", "1048576"], _QUANTITIES[1]),
    "spec.sweep.interval": (["1m", "168h", "0h60s"], ["59s", "168h1ms", *_DURATIONS[1]]),
    "spec.sweep.reclaimRate": ([100, 1_000_000], [99, 1_000_001, 100.5, "1000"]),
    "spec.gateway.replicas": ([0, 100, 3.0], [-1, 101, 1.5, "2"]),
    **_placement("spec.gateway"),
    "spec.deletionPolicy": (["Retain", "Delete"], ["Keep", ""]),
    "spec.suspend": ([True], ["true"]),
    "metadata.name": (["a", "a-0", "n" * 40], ["n" * 41, "0a", "a.b"]),
}
"""By path: values that the full object may have there, and values that it may not."""

EXTERNAL_VALUES: Final[dict[str, Values]] = {
    **_secret("spec.promptTemplate.fromConfigMap"),
    "spec.embedder.builtin.resources.requests": (
        [{}, _amounts(16)],
        [_amounts(17), {"": 1}, {"r" * 254: 1}],
    ),
    "spec.embedder.builtin.resources.limits": ([_amounts(16)], [_amounts(17), {"": 1}, {"r" * 254: 1}]),
    "spec.embedder.builtin.resources.requests.cpu": _AMOUNTS,
    "spec.embedder.builtin.resources.limits.cpu": _AMOUNTS,
    **_secret("spec.stores.redis.external.urlSecretRef"),
    **_secret("spec.stores.redis.external.caSecretRef"),
    **_secret("spec.tenancy.source.apiKeys.secretRef"),
    "spec.tenancy.user.bodyField": (["User", "SafetyIdentifier"], ["user", "PromptCacheKey", ""]),
}
"""The same for the parts that only the other object has."""

MANAGED_VALUES: Final[dict[str, Values]] = {
    **_kept_store("spec.stores.qdrant.managed"),
    **_kept_store("spec.stores.postgres.managed"),
    "spec.stores.postgres.managed.provider": (["CloudNativePG"], ["Crunchy", "statefulset", ""]),
    "spec.stores.postgres.managed.instances": ([1, 9, 3.0], [0, 10, -1, 1.5, "3"]),
}
"""The same for stores that the operator runs."""

CREDENTIAL_VALUES: Final = {
    "spec.tenancy.source.clientCredential.ttl": _DURATIONS,
    "spec.layers.prefix.responseCache": _QUANTITIES,
}
"""The same for tenants known by what they present to the upstream."""
