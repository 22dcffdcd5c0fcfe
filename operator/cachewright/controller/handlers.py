"""kopf's handlers: turn watch events into keys of the work queue, and nothing else. `watches` registers them.

Only `on.event`: handlers of other kinds would write an annotation or a finalizer to users' objects.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import kopf

from cachewright.api.names import GROUP, KIND, LABEL_CACHE, LABEL_MANAGED_BY, LABEL_USE, PLURAL, VERSION
from cachewright.controller.queue import CacheKey, WorkQueue
from cachewright.controller.roster import Roster
from cachewright.kube.connection import Credentials
from cachewright.kube.protocol import CHILD_KINDS, SECRETS, ResourceKind

SETTLE_SECONDS: Final = 0.1
"""Events come in bursts (an apply and its echo); one pass serves them all."""
CREDENTIALS_LAST: Final = dt.timedelta(minutes=10)
"""A pod's token is renewed in its file long before it expires; kopf reads it anew this often."""


class Handlers:
    """What kopf calls: each event names the objects to look at."""

    def __init__(
        self, queue: WorkQueue, roster: Roster, credentials: Callable[[], Awaitable[Credentials]]
    ) -> None:
        self._queue = queue
        self._roster = roster
        self._credentials = credentials

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Add the handlers to a registry of kopf."""
        kopf.on.login(registry=registry)(self.log_in)
        kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)(self.on_cache)
        for kind in CHILD_KINDS:
            kopf.on.event(*selector(kind), registry=registry)(self.on_child)
        kopf.on.event(*selector(SECRETS), registry=registry)(self.on_usable_secret)

    async def log_in(self, **_: object) -> kopf.ConnectionInfo:
        """Give kopf the credentials of our own connection."""
        return connection_info(await self._credentials())

    async def on_cache(self, type: str, namespace: str | None, name: str, **_: object) -> None:  # noqa: A002
        """Look at an InferenceCache that was listed, changed or deleted."""
        key = CacheKey(namespace or "", name)
        if type == "DELETED":
            self._roster.remove(key)
        else:
            self._roster.enter(key)
        self._queue.add(key, SETTLE_SECONDS)

    async def on_child(self, namespace: str | None, body: kopf.Body, **_: object) -> None:
        """Look at the InferenceCache that a child belongs to."""
        for name in owners(body):
            self._queue.add(CacheKey(namespace or "", name), SETTLE_SECONDS)

    async def on_usable_secret(self, namespace: str | None, labels: Mapping[str, str], **_: object) -> None:
        """Look at every InferenceCache that might refer to a user's Secret."""
        if labels.get(LABEL_USE) == "true":
            for key in self._roster.in_namespace(namespace or ""):
                self._queue.add(key, SETTLE_SECONDS)


def selector(kind: ResourceKind) -> tuple[str, str, str]:
    """Return the group, version and plural by which kopf knows a kind."""
    return kind.group, kind.api_version.rpartition("/")[2], kind.plural


def owners(body: kopf.Body) -> set[str]:
    """Return the names of the InferenceCaches that a child belongs to.

    By label and by owner reference: a hand may have edited one of them.
    """
    references = body.metadata.get("ownerReferences") or []
    owning = {each["name"] for each in references if each["kind"] == KIND}
    labels = body.metadata.labels
    labelled = {labels[LABEL_CACHE]} if LABEL_CACHE in labels and LABEL_MANAGED_BY in labels else set()
    return owning | labelled


def connection_info(credentials: Credentials) -> kopf.ConnectionInfo:
    """Return our credentials as kopf wants them."""
    scheme, token = credentials.authorization or (None, None)
    return kopf.ConnectionInfo(
        server=credentials.server,
        ca_path=credentials.ca_path,
        insecure=not credentials.verify_tls,
        scheme=scheme,
        token=token,
        certificate_path=credentials.certificate_path,
        private_key_path=credentials.key_path,
        proxy_url=credentials.proxy,
        expiration=dt.datetime.now(dt.UTC) + CREDENTIALS_LAST if token else None,
    )
