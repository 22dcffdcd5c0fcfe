"""What runs: the object, its record and its numbers, from a cluster by kubectl or from `cachewright local`.

Called by `cli.explain`. Reads only, and never a Secret: the digest key's name stands in the gateway's policy.
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cachewright.api.names import LABEL_CACHE, LABEL_COMPONENT
from cachewright.errors import InvalidDocument, InvalidInput
from cachewright.keys.digest import key_id_of
from cachewright.keys.record import RECORD_DATA_KEY, KeyspaceState, Record
from cachewright.policy.document import POLICY_DATA_KEY, GatewayPolicy
from cachewright.reconcile.explanation import template_source
from cachewright.render.metadata import gateway_name, record_name

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

CLUSTER: Final = "cluster"
LOCAL: Final = "local"
TIMEOUT_SECONDS: Final = 30.0

_IN_FRONT: Final = "local"
"""Copies in gateways' memory, as metrics name them: hits of the exact layer, answered without the store."""


_IN_USE: Final = frozenset({KeyspaceState.ACTIVE, KeyspaceState.READONLY})


@dataclass(frozen=True, slots=True)
class LayerNumbers:
    """What is known of a layer as it runs; None where nobody could be asked."""

    entries: int | None = None
    """At the last sweep."""
    lookups: int | None = None
    """Since the gateways started."""
    hit_rate: float | None = None
    """Share of the look-ups; None without any."""


@dataclass(frozen=True, slots=True)
class Live:
    """One cache as it runs."""

    cache: str
    """namespace/name."""
    document: Any
    """The object in use."""
    record: Record | None
    key_id: str | None
    now: datetime
    numbers: dict[str, LayerNumbers] = field(default_factory=dict)
    """By layer, as the record names it."""
    upstream_url: str | None = None
    """Where misses go whatever a manifest says; None: where it says."""
    read_text: Callable[[str, str], str | None] = lambda _name, _key: None
    """Reads a ConfigMap's text by name and key; None where there is none."""

    def template(self, document: Any) -> str | None:  # noqa: ANN401 - JSON
        """Return the text of an object's prompt template; None where it cannot be read."""
        source = template_source(document)
        return self.read_text(*source) if source else None

    def enacted(self, document: Any) -> Any:  # noqa: ANN401 - JSON
        """Return an object as it is carried out here."""
        if self.upstream_url is None:
            return document
        upstream = {**document["spec"]["upstream"], "url": self.upstream_url}
        return {**document, "spec": {**document["spec"], "upstream": upstream}}


def read_cluster(name: str, namespace: str | None, *, kubectl: str, context: str | None) -> Live:
    """Read a cache of the cluster that kubectl reaches; raises InvalidInput with what went wrong."""
    call = _Kubectl(
        (
            kubectl,
            *(("--context", context) if context else ()),
            *(("--namespace", namespace) if namespace else ()),
        )
    )
    document = call.json("get", "inferencecaches.cachewright.dev", name)
    namespace = str(document["metadata"]["namespace"])
    with suppress(InvalidDocument):  # a damaged one is what the operator mends, and no reason not to explain
        return Live(
            f"{namespace}/{name}",
            document,
            Record.from_json(_data(call, record_name(name), RECORD_DATA_KEY)),
            GatewayPolicy.from_json(_data(call, gateway_name(name), POLICY_DATA_KEY)).key_id,
            datetime.now(UTC),
            numbers_of(_pods_metrics(call, namespace, name)),
            read_text=call.text,
        )
    return Live(f"{namespace}/{name}", document, None, None, datetime.now(UTC), read_text=call.text)


def read_local(name: str, state_dir: Path | None) -> Live:
    """Read a cache that `cachewright local` is running; raises InvalidInput where none is."""
    from cachewright.local.state_folder import DIGEST_KEY, Running, default_state_folder

    folder = state_dir or default_state_folder(name)
    running = Running.read(folder)
    try:
        record = Record.from_json((folder / RECORD_DATA_KEY).read_bytes())
        key_id = key_id_of((folder / DIGEST_KEY).read_text())
    except OSError as e:
        raise InvalidInput(f"{folder} cannot be read: {e.strerror}") from e
    if running.document["metadata"]["name"] != name:
        raise InvalidInput(f"{folder} is that of {running.document['metadata']['name']}, not of {name}")
    return Live(
        f"local/{name}",
        running.document,
        record,
        key_id,
        datetime.now(UTC),
        numbers_of([_fetched(running.metrics_url)]),
        running.upstream_url,
    )


def numbers_of(texts: Iterable[str]) -> dict[str, LayerNumbers]:
    """Add up what gateways tell as Prometheus metrics; empty where nobody tells anything."""
    try:
        from prometheus_client.parser import text_string_to_metric_families

        from cachewright.gateway.admin_stats import layer_stats
    except ModuleNotFoundError:
        return {}
    families = [family for text in texts for family in text_string_to_metric_families(text)]
    if not families:
        return {}
    samples = [sample for family in families for sample in family.samples]
    entries = _entries(samples)
    numbers: dict[str, LayerNumbers] = {}
    hits_in_front = 0
    for layer in layer_stats(samples):
        if layer["name"] == _IN_FRONT:
            hits_in_front = layer["hits"]
            continue
        hits, lookups = layer["hits"] + hits_in_front, layer["hits"] + layer["misses"] + hits_in_front
        hits_in_front = 0
        rate = round(hits / lookups, 4) if lookups else None
        name = str(layer["name"]).capitalize()
        numbers[name] = LayerNumbers(entries.get(name), lookups, rate)
    return numbers


def _entries(samples: Iterable[Sample]) -> dict[str, int]:
    """Return how many entries the keyspace in use of each layer has; every gateway tells the same."""
    entries: dict[str, int] = {}
    for sample in samples:
        if sample.name == "cachewright_entries" and sample.labels["state"] in _IN_USE:
            layer = sample.labels["layer"]
            entries[layer] = max(int(sample.value), entries.get(layer, 0))
    return entries


@dataclass(frozen=True, slots=True)
class _Kubectl:
    command: tuple[str, ...]

    def run(self, *arguments: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the user's own kubectl
                [*self.command, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_SECONDS,
            )
        except OSError as e:
            raise InvalidInput(f"{self.command[0]} cannot be run: {e.strerror}; see --kubectl") from e
        except subprocess.TimeoutExpired as e:
            raise InvalidInput(f"kubectl gave no answer within {TIMEOUT_SECONDS:.0f} s") from e
        if done.returncode:
            raise InvalidInput(done.stderr.strip() or f"kubectl ended with {done.returncode}")
        return done.stdout

    def text(self, config_map: str, key: str) -> str | None:
        """Read a ConfigMap's text as the operator does; None where there is none."""
        with suppress(InvalidInput):
            found = self.json("get", "configmap", config_map)
            held = (found.get("data") or {}).get(key, (found.get("binaryData") or {}).get(key))
            return None if held is None else str(held)
        return None

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.run(*arguments, "-o", "json"))


def _data(call: _Kubectl, config_map: str, key: str) -> str:
    try:
        return str(call.json("get", "configmap", config_map)["data"][key])
    except (InvalidInput, KeyError, TypeError) as e:
        raise InvalidDocument(f"ConfigMap {config_map} has no {key}") from e


def _pods_metrics(call: _Kubectl, namespace: str, name: str) -> Iterable[str]:
    """Read each gateway's metrics through the API server; what may not or cannot be asked is passed over."""
    from cachewright.render.gateway import MANAGEMENT_PORT

    selector = f"{LABEL_CACHE}={name},{LABEL_COMPONENT}=gateway"
    pods: list[Any] = []
    with suppress(InvalidInput):
        pods = call.json("get", "pods", "-l", selector)["items"]
    for pod in pods:
        path = (
            f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}:{MANAGEMENT_PORT}/proxy/metrics"
        )
        with suppress(InvalidInput):
            yield call.run("get", "--raw", path)


def _fetched(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - our own
            return str(response.read().decode())
    except (urllib.error.URLError, OSError, ValueError) as e:
        raise InvalidInput(f"the running `cachewright local` gives no answer: {e}") from e
