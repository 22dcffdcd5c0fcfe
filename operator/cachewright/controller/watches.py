"""Runs kopf inside our event loop: its watches feed `handlers`, and that is all it is used for.

`process` calls `watch` once this replica leads. All that kopf could do beyond watching is switched off here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import kopf

from cachewright.api.names import LABEL_MANAGED_BY, LABEL_USE, USE_OPERATOR
from cachewright.controller.handlers import Handlers, selector
from cachewright.controller.queue import WorkQueue
from cachewright.controller.roster import Roster
from cachewright.controller.tasks import AllBut, tracked, tracked_tasks
from cachewright.errors import KubeUnavailable
from cachewright.kube.connection import Credentials
from cachewright.kube.protocol import CHILD_KINDS, SECRETS
from cachewright.render.metadata import PRODUCT

WATCH_SERVER_TIMEOUT_SECONDS: Final = 300
"""The API server ends each watch after this time, so that it is renewed now and then."""
WATCH_CLIENT_TIMEOUT_SECONDS: Final = 330
"""For a server that does not keep to its own timeout."""
WATCH_SILENCE_SECONDS: Final = 70.0
"""Bookmarks come each minute; longer silence means a dead connection."""
REQUEST_TIMEOUT_SECONDS: Final = 30.0
CONNECT_TIMEOUT_SECONDS: Final = 5.0
LIST_CHUNK: Final = 100
"""Objects a page of the initial list."""
WORKER_IDLE_SECONDS: Final = 0.1
"""kopf keeps a task per object for this long after an event; its 5 s would keep thousands after a start."""
OWN_CHILDREN: Final = f"{LABEL_MANAGED_BY}={PRODUCT}"
USABLE_SECRETS: Final = f"{LABEL_USE} in (true,{USE_OPERATOR})"
"""Users' Secrets that InferenceCaches may refer to, and our own; kopf has one watch a kind."""


def watch_settings() -> kopf.OperatorSettings:
    """Return kopf's settings: bounded, silent, writing nothing, seeing only what is labelled."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.posting.loggers = False
    settings.peering.standalone = True
    # Neither namespaces nor definitions are watched, so no right to do so is needed.
    settings.scanning.disabled = True
    # kopf would kill the process by a timer; ending it is our own business.
    settings.process.ultimate_exiting_timeout = None
    settings.watching.server_timeout = WATCH_SERVER_TIMEOUT_SECONDS
    settings.watching.client_timeout = WATCH_CLIENT_TIMEOUT_SECONDS
    settings.watching.connect_timeout = CONNECT_TIMEOUT_SECONDS
    settings.watching.inactivity_timeout = WATCH_SILENCE_SECONDS
    settings.watching.reconnect_backoff = 1.0
    settings.watching.chunk_size = LIST_CHUNK
    settings.networking.request_timeout = REQUEST_TIMEOUT_SECONDS
    settings.networking.connect_timeout = CONNECT_TIMEOUT_SECONDS
    settings.networking.error_backoffs = (1, 1, 2, 3, 5, 8)
    settings.networking.trust_env = True
    settings.queueing.idle_timeout = WORKER_IDLE_SECONDS
    for kind in CHILD_KINDS:
        wanted = USABLE_SECRETS if kind is SECRETS else OWN_CHILDREN
        settings.watching.label_selectors[selector(kind)] = wanted
    return settings


async def watch(
    queue: WorkQueue,
    roster: Roster,
    credentials: Callable[[], Awaitable[Credentials]],
    namespaces: Sequence[str],
    on_started: Callable[[], None],
) -> None:
    """Watch until cancelled; no namespace means all of them.

    Raises what ended kopf: a missing right, a definition that was deleted, an API server that stays away.
    """
    registry = kopf.OperatorRegistry()
    Handlers(queue, roster, credentials).register(registry)
    stop = asyncio.Event()
    with tracked_tasks() as kopfs:

        async def run() -> None:
            tracked.set(True)
            tasks = await kopf.spawn_tasks(
                registry=registry,
                settings=watch_settings(),
                clusterwide=not namespaces,
                namespaces=namespaces,
                standalone=True,
                # Named, or kopf asks for the user's name, which a container's numeric user does not have.
                identity="cachewright",  # type: ignore[arg-type]  # kopf keeps its type of identities to itself
                stop_flag=stop,
            )
            on_started()
            await kopf.run_tasks(tasks, ignored=AllBut(kopfs))

        running = asyncio.create_task(run(), name="kopf")
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            # Cancelled outright, kopf leaves connections open; told to stop, it closes them.
            stop.set()
            await asyncio.wait({running})
            raise
    raise KubeUnavailable("the watches ended")
