"""`cachewright explain --live` against a real API server, by a real kubectl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachewright.cli.main import main
from cachewright.kube.client import KubeApi
from e2e.cluster.apiserver import ApiServer
from e2e.kubectl import tool
from tests.api.harness import Harness
from tests.support.caches import cache_document

pytestmark = [pytest.mark.api, pytest.mark.usefixtures("crd")]


@pytest.fixture
async def settled(
    api_server: ApiServer, kube_api: KubeApi, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Harness:
    """An object called demo, at rest, and a KUBECONFIG that reaches it."""
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    harness = Harness(api_server, kube_api, namespace)
    harness.apply(edition())
    await harness.settle()
    return harness


def edition(version: str = "1", **spec: Any) -> dict[str, Any]:
    """Build an edition of the object, without namespace."""
    document = cache_document(spec=spec)
    document["metadata"] = {"name": "demo"}
    document["spec"]["model"]["version"] = version
    return document


def explained(
    harness: Harness, folder: Path, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    """Explain an edition against the cluster; returns exit code and the one layer."""
    file = folder / "new.json"
    file.write_text(json.dumps(document))
    words = ["explain", "--live", "-n", harness.namespace, "-f", str(file), "-o", "json"]
    capsys.readouterr()
    code = main([*words, "--kubectl", tool("kubectl")])
    (cache,) = json.loads(capsys.readouterr().out)["caches"]
    assert cache["cache"] == f"{harness.namespace}/demo"
    (layer,) = cache["layers"]
    return code, layer


async def test_the_keyspaces_are_the_clusters(
    settled: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bump is told with the keyspaces that the operator then uses, and so is the way back."""
    before = (await settled.cache())["status"]["layers"][0]["keyspace"]
    assert explained(settled, tmp_path, edition(), capsys)[0] == 0
    code, bump = explained(settled, tmp_path, edition("2"), capsys)
    assert (code, bump["fate"], bump["causes"]) == (3, "Rotates", ["spec.model.version"])
    settled.apply(edition("2"))
    await settled.settle()
    after = (await settled.cache())["status"]["layers"][0]["keyspace"]
    assert bump["keyspace"] == {"before": before, "after": after}
    code, back = explained(settled, tmp_path, edition(), capsys)
    assert (code, back["fate"]) == (3, "Returns")
    assert back["keyspace"] == {"before": after, "after": before}


async def test_nothing_is_written(
    settled: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The object and all its children stay at their versions."""
    versions = await settled.versions()
    assert explained(settled, tmp_path, edition("2"), capsys)[0] == 3
    assert await settled.versions() == versions


async def test_without_a_record_the_fates_are_told_alone(
    settled: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the record cannot be read, no keyspace is named, rather than a wrong one."""
    settled.kubectl("delete", "configmap", "demo-record")
    code, layer = explained(settled, tmp_path, edition("2"), capsys)
    assert (code, layer["fate"]) == (3, "Rotates")
    assert layer["keyspace"] == {"before": None, "after": None}
    assert layer["hitRate"] is None


async def test_an_object_that_is_not_there_is_an_error(
    settled: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What kubectl complains of is told, and the exit code is 2."""
    file = tmp_path / "new.json"
    file.write_text(json.dumps({**edition(), "metadata": {"name": "other"}}))
    words = ["explain", "--live", "-n", settled.namespace, "-f", str(file), "--kubectl", tool("kubectl")]
    assert main(words) == 2
    assert '"other" not found' in capsys.readouterr().err


async def test_a_change_that_the_api_server_refuses_is_told(
    settled: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules about changes are checked against what the cluster holds."""
    file = tmp_path / "new.json"
    stores = {"redis": {"managed": {"flavor": "Redis"}}}
    file.write_text(json.dumps(edition(stores=stores)))
    words = ["explain", "--live", "-n", settled.namespace, "-f", str(file), "--kubectl", tool("kubectl")]
    assert main(words) == 2
    assert "flavor is immutable" in capsys.readouterr().err
