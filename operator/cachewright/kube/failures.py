"""Turns the API server's refusals into the exception tree; `kube.connection` calls it.

A message names the verb, the kind and namespace/name.
What the server says about a Secret is left out: it quotes values.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from cachewright.errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeInvalid,
    KubeNotFound,
    KubeTerminating,
    KubeUnavailable,
)


class ListExpired(KubeUnavailable):
    """410: a continue token or a resource version is too old, and the list or watch must start again."""


ERRORS: Final[dict[int, type[KubeError]]] = {
    HTTPStatus.BAD_REQUEST: KubeInvalid,
    HTTPStatus.UNAUTHORIZED: KubeForbidden,
    HTTPStatus.FORBIDDEN: KubeForbidden,
    HTTPStatus.NOT_FOUND: KubeNotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: KubeInvalid,
    HTTPStatus.CONFLICT: KubeConflict,
    HTTPStatus.GONE: ListExpired,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: KubeInvalid,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: KubeInvalid,
    HTTPStatus.UNPROCESSABLE_ENTITY: KubeInvalid,
}
"""Every other status (429, 5xx) is worth trying again."""
TERMINATING: Final = "NamespaceTerminating"
"""The cause that the API server gives when something is to be created in a namespace that is going."""
UNTYPED: Final = "failed to create typed patch object"
"""How the API server says, with status 500, that an applied object has a field that its kind has not."""
MAX_MESSAGE_LENGTH: Final = 1024
_PHRASES: Final = {int(status): status.phrase for status in HTTPStatus}


def failure(status: int, body: dict[str, Any], what: str, kind: str) -> KubeError:
    """Return the exception for an HTTP status and the Status object that came with it.

    `what` is "verb Kind namespace/name"; `body` is the parsed answer, empty where it was not JSON.
    """
    reason = body.get("reason") or _PHRASES.get(status, str(status))
    error = ERRORS.get(status, KubeUnavailable)
    if UNTYPED in body.get("message", ""):
        error = KubeInvalid
    elif is_terminating(status, body):
        error = KubeTerminating
    said = _fields(body) if kind == "Secret" else str(body.get("message", ""))
    message = f"{what}: {reason}" + (f": {said[:MAX_MESSAGE_LENGTH]}" if said else "")
    return error(message)


def is_terminating(status: int, body: dict[str, Any]) -> bool:
    """Tell whether a 403 says no more than that the namespace is being deleted."""
    details = body.get("details")
    causes = details.get("causes") or [] if isinstance(details, dict) else []
    return status == HTTPStatus.FORBIDDEN and any(cause.get("reason") == TERMINATING for cause in causes)


def _fields(explained: dict[str, Any]) -> str:
    """Name the fields a Secret was refused for, without what they hold."""
    details = explained.get("details")
    causes = details.get("causes") or [] if isinstance(details, dict) else []
    fields = [str(cause.get("field", "")) for cause in causes if isinstance(cause, dict)]
    return ", ".join(field for field in fields if field)
