"""`EventSink`: turns what happened to an object into Events that `kubectl describe` shows, each said once.

reconcile speaks to the Protocol; `controller` gives it `KubeEvents`.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

import structlog

from cachewright.errors import KubeConflict, KubeError
from cachewright.kube.protocol import EVENTS, KubeClient, Manifest

CONTROLLER: Final = "cachewright.dev/operator"
ACTION: Final = "Reconcile"
MAX_NOTE_BYTES: Final = 1024
"""Limit of the API server."""
REMEMBERED: Final = 4096
"""Objects whose last words are kept; beyond that the longest unheard of is forgotten."""

log = structlog.get_logger(__name__)


class EventSink(Protocol):
    """Where reconcile says what a person should read beside the object."""

    async def warn(self, regarding: Manifest, reason: str, message: str) -> None:
        """Say that something is wrong; said once until the message of that reason changes."""

    async def normal(self, regarding: Manifest, reason: str, message: str) -> None:
        """Say that something went well; warnings said before it may be said again."""


class KubeEvents:
    """Writes events.k8s.io/v1 Events.

    An Event's name is made of what it says and the hour, so a restarted operator does not repeat itself.
    Trouble with the API is logged and goes no further: an Event never fails a pass.
    """

    def __init__(self, kube: KubeClient, instance: str, clock: Callable[[], datetime]) -> None:
        self._kube = kube
        self._instance = instance[:128]
        self._clock = clock
        self._said: OrderedDict[str, dict[str, str]] = OrderedDict()

    async def warn(self, regarding: Manifest, reason: str, message: str) -> None:
        """Say that something is wrong, once."""
        said = self._remember(regarding)
        if said.get(reason) != message:
            said[reason] = message
            await self._post(regarding, "Warning", reason, message)

    async def normal(self, regarding: Manifest, reason: str, message: str) -> None:
        """Say that something went well."""
        self._remember(regarding).clear()
        await self._post(regarding, "Normal", reason, message)

    def _remember(self, regarding: Manifest) -> dict[str, str]:
        uid = str(regarding["metadata"].get("uid", ""))
        said = self._said.setdefault(uid, {})
        self._said.move_to_end(uid)
        while len(self._said) > REMEMBERED:
            self._said.popitem(last=False)
        return said

    async def _post(self, regarding: Manifest, kind: str, reason: str, message: str) -> None:
        event = self._event(regarding, kind, reason, message)
        try:
            await self._kube.create(event)
        except KubeConflict:
            return
        except KubeError as error:
            log.warning("event not written", reason=reason, error=str(error))

    def _event(self, regarding: Manifest, kind: str, reason: str, message: str) -> Manifest:
        metadata = regarding["metadata"]
        now = self._clock()
        identity = "\n".join(
            [str(metadata.get("uid", "")), kind, reason, message, now.strftime("%Y-%m-%dT%H")]
        )
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        reference = {
            "apiVersion": regarding["apiVersion"],
            "kind": regarding["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
        }
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{metadata['name']}.{digest}", "namespace": metadata["namespace"]},
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": ACTION,
            "reason": reason,
            "note": message.encode()[:MAX_NOTE_BYTES].decode(errors="ignore"),
            "type": kind,
            "regarding": {key: value for key, value in reference.items() if value},
        }
