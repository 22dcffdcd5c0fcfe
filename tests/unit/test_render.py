"""What is rendered: golden manifests, restricted pods, nothing secret outside Secrets."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cachewright.crd.validation import load
from cachewright.policy.document import GatewayPolicy
from cachewright.render.children import build_children, expected_names
from cachewright.render.inputs import RedisCredentials, RenderInputs
from cachewright.render.settings import RenderSettings
from cachewright.sizing.redis import container_memory_mebibytes
from tests.chart.pod_security import violations
from tests.conftest import CompareGolden
from tests.support.caches import UID, cache_document

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = RenderSettings(gateway_image="cachewright:0.1.0")
INPUTS = RenderInputs(
    cache_id="0123456789abcdef",
    digest_key="ab" * 32,
    admin_token="ADMIN-PASSWORD",
    key_id="cafe0123",
    redis=RedisCredentials(gateway_password="GATEWAY-PASSWORD", operator_password="OPERATOR-PASSWORD"),
    qdrant_api_key="QDRANT-PASSWORD",
    postgres_password="POSTGRES-PASSWORD",
    users_acl="user default off\n",
    secret_checksums={"redis": "0011223344556677", "keys": "8899aabbccddeeff"},
)


class Readable(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and nothing as a reference to something above."""

    def ignore_aliases(self, data: object) -> bool:
        """Repeat what occurs twice."""
        return data is not None


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Readable.add_representer(str, _text)


def example_documents() -> list[tuple[str, dict[str, Any]]]:
    """Every InferenceCache of examples/, with the metadata that the API server would add."""
    found = []
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document["kind"] == "InferenceCache":
                document["metadata"] = {"namespace": "ml", "uid": UID, **document["metadata"]}
                found.append((path.stem, document))
    return found


def rendered(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Render a document's children."""
    managed = {store for store, each in document["spec"]["stores"].items() if "managed" in each} - {"redis"}
    sums = INPUTS.secret_checksums | dict.fromkeys(managed, "1122334455667788")
    return build_children(load(document), replace(INPUTS, secret_checksums=sums), SETTINGS)


@pytest.mark.parametrize(("name", "document"), example_documents())
def test_examples_render_as_recorded(name: str, document: dict[str, Any], golden: CompareGolden) -> None:
    """A change of any manifest is deliberate: a changed pod template restarts pods on upgrade."""
    golden(
        f"render/{name}.yaml", yaml.dump_all(rendered(document), Dumper=Readable, sort_keys=False, width=110)
    )


@pytest.mark.parametrize(("name", "document"), example_documents())
def test_rendering_is_a_function_of_its_arguments(name: str, document: dict[str, Any]) -> None:
    """Twice gives the same bytes, and the arguments are left as they were."""
    before = copy.deepcopy(document)
    assert json.dumps(rendered(document)) == json.dumps(rendered(document)), name
    assert document == before


@pytest.mark.parametrize(("name", "document"), example_documents())
def test_every_pod_meets_the_restricted_standard(name: str, document: dict[str, Any]) -> None:
    """Gateway and store run where the namespace enforces the restricted Pod Security Standard."""
    templates = [
        child["spec"]["template"] for child in rendered(document) if "template" in child.get("spec", {})
    ]
    assert templates, name
    for template in templates:
        assert violations(template["spec"]) == []


@pytest.mark.parametrize(("name", "document"), example_documents())
def test_names_are_expected_and_owned(name: str, document: dict[str, Any]) -> None:
    """Whatever is rendered is looked for by observe, and goes with the object."""
    expected = expected_names(document["metadata"]["name"], load(document).spec.stores)
    for child in rendered(document):
        assert (child["kind"], child["metadata"]["name"]) in expected, name
        assert child["metadata"]["ownerReferences"][0]["uid"] == UID


@pytest.mark.parametrize(("name", "document"), example_documents())
def test_passwords_stand_in_secrets_alone(name: str, document: dict[str, Any]) -> None:
    """No ConfigMap, annotation, argument or environment carries a generated value."""
    for child in rendered(document):
        if child["kind"] == "Secret":
            continue
        text = json.dumps(child)
        assert "-PASSWORD" not in text, name
        assert INPUTS.digest_key not in text, name


def test_the_policy_document_round_trips() -> None:
    """What the ConfigMap carries is what the gateway reads."""
    document = example_documents()[0][1]
    child = next(c for c in rendered(document) if c["metadata"]["name"].endswith("-gateway") and "data" in c)
    policy = GatewayPolicy.from_json(child["data"]["policy.json"])
    assert policy.to_json() == child["data"]["policy.json"]
    assert policy.cache_id == INPUTS.cache_id


def test_a_long_name_stays_a_dns_label() -> None:
    """The longest allowed name leaves room for every suffix."""
    document = example_documents()[0][1]
    document["metadata"]["name"] = "n" * 40
    for child in rendered(document):
        assert len(child["metadata"]["name"]) <= 63 - len("-0123456789"), (
            "pods add a hash of eleven characters"
        )


@pytest.mark.parametrize(("max_memory", "limit"), [(64 << 20, 116), (1 << 30, 1364), (1, 33)])
def test_the_container_limit_leaves_room_above_maxmemory(max_memory: int, limit: int) -> None:
    """30 % for fragmentation and buffers, 32 MiB for the server, rounded up to MiB."""
    assert container_memory_mebibytes(max_memory) == limit


def test_placement_that_is_not_given_is_not_rendered() -> None:
    """Optional placement fields that the object leaves out do not appear at all."""
    pod = next(c for c in rendered(cache_document()) if c["kind"] == "Deployment")["spec"]["template"]["spec"]
    given = {"nodeSelector", "affinity", "tolerations", "priorityClassName", "imagePullSecrets"}
    assert not given & pod.keys()
