"""The embedder and the vector stores of an object: what gateways are told, given and run beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cachewright.crd.validation import load
from cachewright.errors import InvalidDocument
from cachewright.gateway.mounts import Mounts
from cachewright.keys.digest import key_id_of
from cachewright.keys.embedding_identity import BUILTIN, EmbeddingIdentity, identity_of
from cachewright.policy.document import GatewayPolicy
from cachewright.policy.from_spec import build_policy
from cachewright.reconcile.secret_uses import secret_uses
from cachewright.render.children import build_children
from tests.chart.pod_security import violations
from tests.support.caches import SPEC, cache_document
from tests.unit.test_render import INPUTS, SETTINGS

DIGEST_KEY = "ab" * 32

ENDPOINT: dict[str, Any] = {
    "url": "https://tei.ml:8080/v1/",
    "model": "bge-m3",
    "dimensions": 1024,
    "maxTokens": 8192,
    "timeout": "3s",
    "apiKeySecretRef": {"name": "tei", "key": "token"},
    "caSecretRef": {"name": "authority", "key": "ca"},
}
STORES: dict[str, Any] = SPEC["stores"] | {
    "qdrant": {
        "external": {
            "url": "https://qdrant.ml:6333/",
            "apiKeySecretRef": {"name": "qdrant", "key": "key"},
            "caSecretRef": {"name": "authority", "key": "ca"},
        }
    },
    "postgres": {
        "external": {
            "dsnSecretRef": {"name": "pg", "key": "uri"},
            "caSecretRef": {"name": "authority", "key": "ca"},
        }
    },
}


def policy_of(**spec: Any) -> GatewayPolicy:
    """Return the policy of an object with these parts."""
    return build_policy(load(cache_document(spec=spec)), "0123456789abcdef", key_id_of(DIGEST_KEY))


def test_an_endpoint_is_told_whole() -> None:
    """URL, space, time and where its secrets lie reach the gateway; the secrets themselves do not."""
    policy = policy_of(embedder=ENDPOINT).embedder
    assert policy is not None
    assert policy.url == "https://tei.ml:8080/v1"
    assert policy.identity == EmbeddingIdentity("endpoint", "bge-m3", "", 1024, 8192)
    assert (policy.timeout_seconds, policy.sends_key, policy.has_own_ca) == (3, True, True)


def test_the_builtin_embedder_is_reached_in_the_pod() -> None:
    """The gateway asks the sidecar over the loopback interface, and knows the model's space by itself."""
    policy = policy_of(embedder={"builtin": {}}).embedder
    assert policy is not None
    assert policy.url == "http://127.0.0.1:8091/v1"
    assert policy.identity == BUILTIN


@pytest.mark.parametrize(
    ("field", "value"), [("model", "bge-m4"), ("revision", "2"), ("dimensions", 512), ("maxTokens", 512)]
)
def test_what_describes_the_model_is_its_identity(field: str, value: object) -> None:
    """Another model, revision, length or window is another space; where it is reached is not."""
    before = load(cache_document(spec={"embedder": ENDPOINT})).spec.embedder
    after = load(cache_document(spec={"embedder": ENDPOINT | {field: value}})).spec.embedder
    moved = load(cache_document(spec={"embedder": ENDPOINT | {"url": "https://other/v1"}})).spec.embedder
    assert before is not None
    assert after is not None
    assert moved is not None
    assert identity_of(after) != identity_of(before) == identity_of(moved)


def test_every_secret_is_named_with_its_field_and_mount() -> None:
    """A missing Secret is told by the field that refers to it."""
    spec = load(cache_document(spec={"embedder": ENDPOINT, "stores": STORES})).spec
    assert [(use.field_path, use.mount, use.name, use.key) for use in secret_uses(spec)] == [
        ("spec.stores.qdrant.external.apiKeySecretRef", "qdrant", "qdrant", "key"),
        ("spec.stores.qdrant.external.caSecretRef", "qdrant-ca", "authority", "ca"),
        ("spec.stores.postgres.external.dsnSecretRef", "postgres", "pg", "uri"),
        ("spec.stores.postgres.external.caSecretRef", "postgres-ca", "authority", "ca"),
        ("spec.embedder.apiKeySecretRef", "embedder", "tei", "token"),
        ("spec.embedder.caSecretRef", "embedder-ca", "authority", "ca"),
    ]


def test_the_pod_mounts_each_secret_where_the_gateway_looks() -> None:
    """What is rendered is what `gateway.mounts` reads."""
    pod = gateway_pod(embedder=ENDPOINT, stores=STORES)
    items = {
        f"{volume['name']}/{item['path']}": (volume["secret"]["secretName"], item["key"])
        for volume in pod["volumes"]
        if "secret" in volume
        for item in volume["secret"]["items"]
    }
    assert items.items() >= {
        ("qdrant/api-key", ("qdrant", "key")),
        ("qdrant-ca/ca.crt", ("authority", "ca")),
        ("postgres/dsn", ("pg", "uri")),
        ("postgres-ca/ca.crt", ("authority", "ca")),
        ("embedder/key", ("tei", "token")),
        ("embedder-ca/ca.crt", ("authority", "ca")),
    }
    assert "initContainers" not in pod


def test_the_builtin_embedder_runs_beside_the_gateway() -> None:
    """It keeps running, outlives the gateway, delays nothing, and asks for what the object says."""
    pod = gateway_pod(embedder={"builtin": {"resources": {"requests": {"cpu": "1"}}}})
    (sidecar,) = pod["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["image"] == SETTINGS.gateway_image
    assert sidecar["args"][:5] == ["embedder", "--host", "127.0.0.1", "--port", "8091"]
    assert not {"startupProbe", "readinessProbe"} & sidecar.keys()
    assert sidecar["resources"] == {
        "requests": {"cpu": "1", "memory": "256Mi"},
        "limits": {"memory": "512Mi"},
    }
    assert violations(pod) == []


def test_without_an_embedder_nothing_of_it_is_in_the_policy() -> None:
    """A release that knows of embedders rolls no gateway that has none."""
    assert "embedder" not in policy_of().to_json()
    assert "postgres" not in policy_of().to_json()


def gateway_pod(**spec: Any) -> dict[str, Any]:
    """Return the pod of the gateways."""
    children = build_children(load(cache_document(spec=spec)), INPUTS, SETTINGS)
    (deployment,) = [child for child in children if child["kind"] == "Deployment"]
    pod: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return pod


def written(folder: Path, files: dict[str, str]) -> Mounts:
    """Write mounted files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Mounts(folder)


FILES = {
    "policy/policy.json": policy_of(embedder=ENDPOINT, stores=STORES).to_json(),
    "keys/digest-key": DIGEST_KEY,
    "redis/url": "redis://localhost",
    "qdrant/api-key": "q-key\n",
    "qdrant-ca/ca.crt": "PEM",
    "postgres/dsn": "postgresql://u:p@h/d\n",
    "postgres-ca/ca.crt": "PEM",
    "embedder/key": "e-key",
    "embedder-ca/ca.crt": "PEM",
}


def test_the_gateway_reads_what_is_mounted(tmp_path: Path) -> None:
    """Each secret arrives, and none is shown by accident."""
    vectors = written(tmp_path, FILES).read_configuration().vectors
    assert (vectors.qdrant_key, vectors.postgres_dsn) == ("q-key", "postgresql://u:p@h/d")
    assert (vectors.embedder_key, vectors.embedder_ca) == ("e-key", "PEM")
    assert vectors.postgres_ca_file == tmp_path / "postgres-ca/ca.crt"
    assert vectors.qdrant_ca_file == tmp_path / "qdrant-ca/ca.crt"
    assert "q-key" not in repr(vectors)
    assert "u:p" not in repr(vectors)
    assert "e-key" not in repr(vectors)


@pytest.mark.parametrize("name", [name for name in FILES if "/" in name and not name.startswith("policy")])
def test_a_file_that_is_missing_leaves_the_last_good_configuration(tmp_path: Path, name: str) -> None:
    """Half a configuration is none."""
    mounts = written(tmp_path, {key: text for key, text in FILES.items() if key != name})
    with pytest.raises(InvalidDocument, match=name):
        mounts.read_configuration()
