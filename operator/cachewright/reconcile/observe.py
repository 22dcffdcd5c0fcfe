"""Read everything a pass needs, once: the object's children, its Secrets, the store's copy of the record.

Called by service before plan. Content of Secrets that do not carry our label is never read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections.abc import Callable
from typing import Final

from cachewright.api.inference_cache import InferenceCacheSpec
from cachewright.api.names import KIND, LABEL_CACHE, LABEL_MANAGED_BY, LABEL_USE
from cachewright.errors import InvalidInput, KubeForbidden, StoreError
from cachewright.keys.record import KeyspaceState
from cachewright.kube.protocol import (
    CHILD_KINDS,
    CLOUDNATIVE_PG_KINDS,
    CONFIG_MAPS,
    INFERENCE_CACHES,
    SECRETS,
    KubeClient,
    ResourceKind,
)
from cachewright.reconcile.known_record import own_cache_id, parse_record
from cachewright.reconcile.observe_clusters import see_cluster, watched_cluster
from cachewright.reconcile.observe_pods import see_workload
from cachewright.reconcile.observe_store_pods import see_store_pods
from cachewright.reconcile.prefix.observe import see_engine, see_patched, see_proof, settings_names
from cachewright.reconcile.prefix.wish import prefix_wish
from cachewright.reconcile.references import watched
from cachewright.reconcile.secret_uses import secret_uses
from cachewright.reconcile.settings import OperatorSettings
from cachewright.reconcile.state import (
    ChildId,
    ClusterSeen,
    Foreign,
    FreshSecrets,
    Manifest,
    Observed,
    SecretProblem,
    SecretState,
    SecretUse,
    StoreFinding,
    StoreState,
)
from cachewright.reconcile.store_checks import StoreChecks, reason_of
from cachewright.reconcile.store_targets import Owner, StoreTargets, must_ask, store_targets
from cachewright.reconcile.wanted_record import template_digest
from cachewright.render.children import expected_names
from cachewright.render.metadata import PRODUCT, record_name, redis_name
from cachewright.stores.checking import load_clients
from cachewright.stores.protocols import RecordStore
from cachewright.stores.redis_url import with_authorities

OpenRecordStore = Callable[[str], RecordStore]
"""Opens the store behind a URL; the URL holds a password and is never logged."""

_CLUSTER_KINDS: Final = frozenset(kind.kind for kind in CLOUDNATIVE_PG_KINDS)
_NO_FINDINGS: Final[tuple[StoreFinding, ...]] = ()

KINDS_BY_NAME: Final = {kind.kind: kind for kind in (*CHILD_KINDS, *CLOUDNATIVE_PG_KINDS)}


async def observe(
    kube: KubeClient,
    document: Manifest,
    spec: InferenceCacheSpec | None,
    open_record_store: OpenRecordStore,
    settings: OperatorSettings,
    store_checks: StoreChecks | None = None,
) -> Observed:
    """Read all that `plan` is given; `spec` is None where the object does not parse.

    Without `store_checks` nothing but Redis is asked.
    """
    namespace, name = str(document["metadata"]["namespace"]), str(document["metadata"]["name"])
    wish = prefix_wish(spec)
    engine, engines = await see_engine(kube, namespace, wish)
    needed = settings_names(wish, engine, name)
    children, foreign, cluster = await _children(kube, document, spec, needed)
    uses = secret_uses(spec) if spec is not None else ()
    states = tuple([await _secret_state(kube, namespace, use) for use in uses])
    workload, pods = await see_workload(kube, namespace, spec)
    prefix = await see_proof(kube, document, wish, engine, children)
    patched = await see_patched(kube, document, wish, prefix, children)
    template = await _template(kube, namespace, spec)
    rivals = await _rivals(kube, document, children)
    store_pods = await see_store_pods(kube, namespace, name, spec)
    store, checks = StoreState(), _NO_FINDINGS
    if spec is not None:
        url = store_url(children, states, name)
        owner = Owner(namespace, name, children)
        targets = store_targets(spec, states, owner) if store_checks is not None else StoreTargets()
        await load_clients(qdrant=targets.qdrant is not None, postgres=targets.postgres is not None)
        store, checks = await asyncio.gather(
            _store_state(document, children, url, open_record_store, settings),
            _check(store_checks, document, targets),
        )
    return Observed(
        document=document,
        children=children,
        foreign=foreign,
        secrets=states,
        store=store,
        fresh=_fresh_secrets(),
        workload=workload,
        cluster=cluster,
        watched=watched(spec, {pods, engines}) | watched_cluster(name, spec, cluster),
        prefix=prefix,
        patched=patched,
        template=template,
        rivals=rivals,
        checks=checks,
        store_pods=store_pods,
        must_ask=spec is not None and must_ask(spec),
    )


async def _check(
    store_checks: StoreChecks | None, document: Manifest, targets: StoreTargets
) -> tuple[StoreFinding, ...]:
    if store_checks is None:
        return _NO_FINDINGS
    return await store_checks.look(str(document["metadata"]["uid"]), targets)


async def _template(kube: KubeClient, namespace: str, spec: InferenceCacheSpec | None) -> str:
    """Digest the prompt template that a ConfigMap holds; empty where there is none, or none is asked for."""
    source = spec.prompt_template.from_config_map if spec is not None and spec.prompt_template else None
    if source is None:
        return ""
    config_map = await kube.get(CONFIG_MAPS, namespace, source.name)
    data = (config_map or {}).get("data") or {}
    binary = (config_map or {}).get("binaryData") or {}
    content = data.get(source.key, binary.get(source.key))
    return template_digest(str(content)) if content else ""


async def _rivals(kube: KubeClient, document: Manifest, children: dict[ChildId, Manifest]) -> tuple[str, ...]:
    """Find older objects under the cache id that this one wants to adopt; asked until it has a record."""
    metadata = document["metadata"]
    wanted = (document.get("spec") or {}).get("cacheID")
    if not wanted or ("ConfigMap", record_name(str(metadata["name"]))) in children:
        return ()
    try:
        others = await kube.list(INFERENCE_CACHES)
    except KubeForbidden:
        others = await kube.list(INFERENCE_CACHES, str(metadata["namespace"]))
    return tuple(
        f"{other['metadata']['namespace']}/{other['metadata']['name']}"
        for other in others
        if _holds(other, str(wanted)) and _is_elder(other["metadata"], metadata)
    )


def _holds(document: Manifest, cache_id: str) -> bool:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    return cache_id in (spec.get("cacheID"), status.get("cacheID"), own_cache_id(document))


def _is_elder(other: Manifest, metadata: Manifest) -> bool:
    """Tell whether another object came first; of two that came at once, one."""
    mine, its = ((str(each.get("creationTimestamp", "")), str(each["uid"])) for each in (metadata, other))
    return its < mine


def store_url(
    children: dict[ChildId, Manifest], states: tuple[SecretState, ...], cache_name: str
) -> str | None:
    """Find the store's URL for the operator; None while there is no store to talk to."""
    given = {state.use.mount: state.value.decode(errors="replace") for state in states}
    if "redis" in given:
        url = given["redis"].strip()
        return with_authorities(url, given["redis-ca"]) if url and "redis-ca" in given else url or None
    name = redis_name(cache_name)
    stateful_set = children.get(("StatefulSet", name))
    secret = children.get(("Secret", name))
    if stateful_set is None or secret is None:
        return None
    if int((stateful_set.get("status") or {}).get("readyReplicas", 0)) < 1:
        return None
    return _decoded(secret, "operator-url").decode(errors="replace") or None


async def _children(
    kube: KubeClient, document: Manifest, spec: InferenceCacheSpec | None, needed: frozenset[ChildId]
) -> tuple[dict[ChildId, Manifest], dict[ChildId, Foreign], ClusterSeen | None]:
    """List what carries our label, then look for the rest under the names we need."""
    metadata = document["metadata"]
    name, namespace = str(metadata["name"]), str(metadata["namespace"])
    listed = await asyncio.gather(
        *(kube.list(kind, namespace, f"{LABEL_CACHE}={name}") for kind in CHILD_KINDS)
    )
    found = {
        (kind.kind, str(item["metadata"]["name"])): _typed(item, kind)
        for kind, items in zip(CHILD_KINDS, listed, strict=True)
        for item in items
    }
    cluster, others = await see_cluster(kube, namespace, name, spec, found)
    found |= others
    expected = _expected(name, spec) | needed
    if cluster is not None and cluster.problem is not None:
        expected = frozenset(each for each in expected if each[0] not in _CLUSTER_KINDS)
    for identity in sorted(expected - found.keys()):
        other = await _by_name(kube, KINDS_BY_NAME[identity[0]], document, identity[1])
        if other is not None:
            found[identity] = other
    ours = {identity: child for identity, child in found.items() if _is_ours(child, document)}
    foreign = {
        identity: _foreign(found[identity], name) for identity in expected & (found.keys() - ours.keys())
    }
    return ours, foreign, cluster


def _expected(name: str, spec: InferenceCacheSpec | None) -> frozenset[ChildId]:
    """Names that a pass may need; none where the object does not parse and nothing will be written."""
    if spec is None:
        return frozenset()
    return expected_names(name, spec.stores) | {("ConfigMap", record_name(name))}


async def _by_name(kube: KubeClient, kind: ResourceKind, document: Manifest, name: str) -> Manifest | None:
    """Find a child whose label was taken off, or a stranger, of which the metadata is enough."""
    namespace = str(document["metadata"]["namespace"])
    metadata = await kube.get_metadata(kind, namespace, name)
    if metadata is None or not _is_ours(metadata, document):
        return metadata
    whole = await kube.get(kind, namespace, name)
    return None if whole is None else _typed(whole, kind)


def _typed(item: Manifest, kind: ResourceKind) -> Manifest:
    """Name the kind, which items of a list leave out."""
    return {**item, "apiVersion": kind.api_version, "kind": kind.kind}


def _is_ours(child: Manifest, document: Manifest) -> bool:
    """Tell whether a child is this object's: by owner, or by labels where it has none (an orphan)."""
    metadata = child["metadata"]
    owners = metadata.get("ownerReferences") or []
    if owners:
        return any(owner.get("uid") == document["metadata"]["uid"] for owner in owners)
    labels = metadata.get("labels") or {}
    return bool(
        labels.get(LABEL_MANAGED_BY) == PRODUCT and labels.get(LABEL_CACHE) == document["metadata"]["name"]
    )


def _foreign(child: Manifest, name: str) -> Foreign:
    owners = child["metadata"].get("ownerReferences") or []
    if any(owner.get("kind") == KIND and owner.get("name") == name for owner in owners):
        return Foreign("belongs to a deleted InferenceCache of the same name", leaving=True)
    if owners:
        return Foreign(f"belongs to {owners[0].get('kind')} {owners[0].get('name')}")
    return Foreign("was not made by this InferenceCache")


async def _secret_state(kube: KubeClient, namespace: str, use: SecretUse) -> SecretState:
    metadata = await kube.get_metadata(SECRETS, namespace, use.name)
    if metadata is None:
        return SecretState(use, SecretProblem.MISSING)
    if (metadata["metadata"].get("labels") or {}).get(LABEL_USE) != "true":
        return SecretState(use, SecretProblem.UNLABELLED)
    secret = await kube.get(SECRETS, namespace, use.name)
    if secret is None:
        return SecretState(use, SecretProblem.MISSING)
    if use.key not in (secret.get("data") or {}):
        return SecretState(use, SecretProblem.KEY_MISSING)
    value = _decoded(secret, use.key)
    return SecretState(use, None if value.strip() else SecretProblem.EMPTY, value)


def _decoded(secret: Manifest, key: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key, ""), validate=True)
    except binascii.Error:
        return b""


async def _store_state(
    document: Manifest,
    children: dict[ChildId, Manifest],
    url: str | None,
    open_record_store: OpenRecordStore,
    settings: OperatorSettings,
) -> StoreState:
    if url is None:
        return StoreState()
    live = children.get(("ConfigMap", record_name(str(document["metadata"]["name"]))))
    record = parse_record(live) if live else None
    cache_id = record.cache_id if record else own_cache_id(document)
    store = None
    try:
        async with asyncio.timeout(settings.store_timeout_seconds):
            store = open_record_store(url)
            copy = await store.read_record(cache_id)
            past = record.in_state(KeyspaceState.DELETING) if record is not None else ()
            deleting = {each.keyspace for each in past}
            reclaims = await store.read_reclaims(cache_id, deleting)
            probes = await store.read_probes(cache_id, record.layers if record is not None else ())
            return StoreState(
                record=copy,
                reclaims=reclaims,
                asked=True,
                probes=probes,
                probe_request=await store.read_probe_request(cache_id),
                server=await store.read_server(),
                sweep=await store.read_sweep(cache_id),
            )
    except TimeoutError:
        return StoreState(error=f"no answer within {settings.store_timeout_seconds:g} s", asked=True)
    except (StoreError, InvalidInput) as e:
        return StoreState(error=str(e), asked=True, reason=reason_of(e))
    finally:
        if store is not None:
            await store.aclose()


def _fresh_secrets() -> FreshSecrets:
    return FreshSecrets(
        digest_key=secrets.token_hex(32),
        admin_token=secrets.token_urlsafe(32),
        gateway_password=secrets.token_urlsafe(32),
        operator_password=secrets.token_urlsafe(32),
        qdrant_api_key=secrets.token_urlsafe(32),
        postgres_password=secrets.token_urlsafe(32),
    )
