"""Health of the process, answered on both ports: alive, and ready to take traffic."""

from __future__ import annotations

from typing import Final

from cachewright.gateway.reply import Reply


class Health:
    """What probes ask for.

    A store that dies makes nothing unready: requests are answered without it. A new process waits a few
    seconds for a store that is only starting, so that its first requests find a cache.
    """

    PATHS: Final = ("/healthz", "/readyz")

    def __init__(self) -> None:
        self.configured = False
        """True once policy, keys and record were read."""
        self.store_awaited = False
        """True once the store answered, or was waited for long enough."""
        self.draining = False
        """True from SIGTERM on."""

    @property
    def ready(self) -> bool:
        """True while requests should be sent here."""
        return self.configured and self.store_awaited and not self.draining

    def reply(self, path: str) -> Reply:
        """Answer a probe."""
        if path == "/healthz" or self.ready:
            return _text(200, b"ok\n")
        return _text(503, self._obstacle)

    @property
    def _obstacle(self) -> bytes:
        if self.draining:
            return b"draining\n"
        return b"waiting for the store\n" if self.configured else b"the configuration was not read yet\n"


def _text(status: int, body: bytes) -> Reply:
    return Reply(
        status,
        [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())],
        body,
    )
