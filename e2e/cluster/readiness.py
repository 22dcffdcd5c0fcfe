"""Asks servers whether they are ready: the API server with a client certificate, others by plain HTTP.

No proxy of the environment is used, for these addresses are this machine's own.
"""

import contextlib
import http.client
import ssl
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from e2e.cluster.pki import KeyPair

ANSWER_SECONDS = 2.0


def is_ready(url: str, authority: Path | None = None, identity: KeyPair | None = None) -> bool:
    """Return whether a GET of the URL is answered with 200 in time; any kind of failure is a no."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=authority)
        if identity is not None:
            context.load_cert_chain(identity.certificate, identity.key)
        connection = http.client.HTTPSConnection(host, port, timeout=ANSWER_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("GET", parts.path or "/")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
