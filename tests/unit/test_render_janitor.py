"""Jobs of the janitor: what they mount, who owns them, and how long they may take."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cachewright.cli.main import main
from cachewright.crd.validation import load
from cachewright.render.janitor import DELETE_SECONDS, build_delete_job, build_janitor_job
from cachewright.render.settings import RenderSettings
from tests.chart.pod_security import violations
from tests.conftest import CompareGolden
from tests.support.caches import UID, cache_document
from tests.unit.test_render import Readable

SETTINGS = RenderSettings(gateway_image="cachewright:0.1.0")
CACHE_ID = "0123456789abcdef"
REF = {"name": "secret", "key": "part"}
EXTERNAL: dict[str, Any] = {
    "redis": {"external": {"urlSecretRef": {"name": "redis-url", "key": "url"}}},
    "qdrant": {"external": {"url": "https://qdrant:6333/", "apiKeySecretRef": REF, "caSecretRef": REF}},
    "postgres": {"external": {"dsnSecretRef": {"name": "pg", "key": "dsn"}, "caSecretRef": REF}},
}


def document(stores: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an object, with a managed store unless said otherwise."""
    cache: dict[str, Any] = cache_document()
    cache["metadata"] |= {"uid": UID}
    if stores is not None:
        cache["spec"]["stores"] = stores
    return cache


def jobs() -> list[tuple[str, dict[str, Any]]]:
    """Every kind of Job."""
    delete = build_delete_job(load(document(EXTERNAL)), CACHE_ID, SETTINGS)
    assert delete is not None
    return [
        ("janitor-managed", build_janitor_job(load(document()), SETTINGS)),
        ("janitor-external", build_janitor_job(load(document(EXTERNAL)), SETTINGS)),
        ("delete", delete),
    ]


@pytest.mark.parametrize(("name", "job"), jobs(), ids=[name for name, _ in jobs()])
def test_jobs_render_as_recorded(name: str, job: dict[str, Any], golden: CompareGolden) -> None:
    """Each as a whole."""
    golden(f"jobs/{name}.yaml", yaml.dump(job, Dumper=Readable, sort_keys=False))


@pytest.mark.parametrize(("name", "job"), jobs(), ids=[name for name, _ in jobs()])
def test_jobs_are_restricted(name: str, job: dict[str, Any]) -> None:
    """They are admitted where only restricted pods are, and get no credentials of the cluster."""
    assert name
    pod = job["spec"]["template"]
    assert violations(pod["spec"]) == []
    assert pod["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(("name", "job"), jobs(), ids=[name for name, _ in jobs()])
def test_jobs_run_a_command_that_there_is(
    name: str, job: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its arguments are understood: it fails for its missing folder, and for nothing else."""
    assert name
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert main([*container["args"][:2], "/nowhere", *container["args"][3:]]) in {1, 2}
    assert "usage" not in capsys.readouterr().err


def test_nothing_is_left_to_delete_behind_managed_stores() -> None:
    """They go with their pods."""
    assert build_delete_job(load(document()), CACHE_ID, SETTINGS) is None


def test_the_job_of_a_deletion_outlives_the_object() -> None:
    """Nobody owns it and it mounts only what is the user's, so the end of the children does not touch it."""
    job = build_delete_job(load(document(EXTERNAL)), CACHE_ID, SETTINGS)
    assert job is not None
    assert "ownerReferences" not in job["metadata"]
    volumes = job["spec"]["template"]["spec"]["volumes"]
    assert {volume["secret"]["secretName"] for volume in volumes} == {"redis-url", "pg", "secret"}
    assert job["spec"]["activeDeadlineSeconds"] == DELETE_SECONDS < 300
    assert job["spec"]["ttlSecondsAfterFinished"] > 0


def test_the_job_of_a_living_cache_goes_with_it() -> None:
    """As every other child."""
    job = build_janitor_job(load(document()), SETTINGS)
    assert job["metadata"]["ownerReferences"][0]["uid"] == UID
