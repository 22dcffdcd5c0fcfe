"""From one edition of the manifest to the files that a gateway finds mounted in a cluster.

The builders are the operator's own: the same policy, the same record, the same names of files. Called by the
session at start and whenever the manifest has changed. Does no IO.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from cachewright.api.inference_cache import InferenceCache
from cachewright.errors import InvalidInput
from cachewright.gateway import mounts
from cachewright.keys.digest import key_id_of
from cachewright.keys.record import Record
from cachewright.local.declared import SecretValues
from cachewright.local.secret_options import missing
from cachewright.policy.document import GatewayPolicy
from cachewright.policy.from_spec import build_policy
from cachewright.reconcile.checks import immutable_choices
from cachewright.reconcile.secret_uses import secret_uses
from cachewright.reconcile.wanted_record import template_digest, wanted_record, with_template

STAND_IN_URL: Final = "http://stand-in.invalid/v1"
"""Names the stand-in in fingerprints, whatever its port: its answers never pass for a real model's."""

SECRET_FILES: Final = {
    "upstream": mounts.UPSTREAM_KEY,
    "upstream-ca": mounts.UPSTREAM_CA,
    "api-keys": mounts.API_KEYS,
    "embedder": mounts.EMBEDDER_KEY,
    "embedder-ca": mounts.EMBEDDER_CA,
}
"""Where the value of a Secret is mounted; the store's URL is local mode's own business."""


@dataclass(frozen=True, slots=True)
class UpstreamChoice:
    """Where misses go."""

    url: str | None
    """None: where the manifest says."""
    is_stand_in: bool = False


@dataclass(frozen=True, slots=True)
class Edition:
    """What one edition of the manifest leads to."""

    cache: InferenceCache
    """As it is enacted here."""
    record: Record
    files: dict[str, str] = field(repr=False)
    """Content by name, relative to the gateway's folder."""


def make_edition(
    cache: InferenceCache,
    secrets: SecretValues,
    record: Record,
    digest_key: str,
    store_url: str,
    upstream: UpstreamChoice,
    now: datetime,
    template: str | None = None,
) -> Edition:
    """Build the files and the record; raises InvalidInput with one line for each missing Secret.

    `template` is the text of the object's prompt template, where a ConfigMap holds it.
    """
    if cache.spec.suspend:
        raise InvalidInput("spec.suspend is true: nothing is changed until it is false again")
    cache = _redirected(_with_template(cache, template), secrets, upstream)
    key_id = key_id_of(digest_key)
    wanted = wanted_record(cache, _as_here(record, cache), key_id, now)
    policy = _enacted_here(build_policy(cache, wanted.cache_id, key_id), cache)
    if upstream.is_stand_in and upstream.url is not None:
        there = policy.upstream.model_copy(update={"url": upstream.url})
        policy = policy.model_copy(update={"upstream": there})
    files = {
        mounts.POLICY: policy.to_json(),
        mounts.RECORD: wanted.to_json(),
        mounts.DIGEST_KEY: digest_key,
        mounts.STORE_URL: store_url,
        **_secret_files(cache, secrets),
    }
    return Edition(cache, wanted, files)


def _enacted_here(policy: GatewayPolicy, cache: InferenceCache) -> GatewayPolicy:
    """Run the built-in embedder in the gateway's own process, and keep vectors in its memory."""
    changes: dict[str, object] = {"qdrant": None, "postgres": None}
    if policy.embedding is not None:
        changes["embedding"] = policy.embedding.model_copy(update={"cold": False})
    if policy.embedder is not None and cache.spec.embedder and cache.spec.embedder.builtin is not None:
        changes["embedder"] = policy.embedder.model_copy(update={"url": None})
    if policy.semantic is not None:
        changes["semantic"] = policy.semantic.model_copy(update={"store": "Memory"})
    return policy.model_copy(update=changes)


def _as_here(record: Record, cache: InferenceCache) -> Record:
    # A kind of store cannot be changed in a cluster, where entries would be left behind; here `cachewright
    # local` chooses the store, so the record follows without a new revision.
    return replace(record, immutable=immutable_choices(cache))


def _with_template(cache: InferenceCache, text: str | None) -> InferenceCache:
    source = cache.spec.prompt_template.from_config_map if cache.spec.prompt_template else None
    if source is not None and not text:
        raise InvalidInput(
            f"spec.promptTemplate.fromConfigMap: put the ConfigMap {source.name}, with text under"
            f" {source.key}, into the same file"
        )
    return with_template(cache, template_digest(text or ""))


def _redirected(cache: InferenceCache, secrets: SecretValues, upstream: UpstreamChoice) -> InferenceCache:
    """Send misses where the command line says; the manifest's key and CA go along only if they are given."""
    if upstream.url is None:
        return cache
    spec = cache.spec
    key, ca = spec.upstream.api_key_secret_ref, spec.upstream.ca_secret_ref
    changes: dict[str, object] = {"url": STAND_IN_URL if upstream.is_stand_in else upstream.url}
    if upstream.is_stand_in or (key is not None and (key.name, key.key) not in secrets):
        changes["api_key_secret_ref"] = None
    if upstream.is_stand_in or (ca is not None and (ca.name, ca.key) not in secrets):
        changes["ca_secret_ref"] = None
    there = spec.upstream.model_copy(update=changes)
    return cache.model_copy(update={"spec": spec.model_copy(update={"upstream": there})})


def _secret_files(cache: InferenceCache, secrets: SecretValues) -> dict[str, str]:
    uses = [use for use in secret_uses(cache.spec) if use.mount in SECRET_FILES]
    if absent := [missing(use) for use in uses if (use.name, use.key) not in secrets]:
        raise InvalidInput("\n".join(absent))
    try:
        return {SECRET_FILES[use.mount]: secrets[use.name, use.key].decode() for use in uses}
    except UnicodeDecodeError as e:
        raise InvalidInput("the value of a Secret is not text") from e
