"""HTTP/1.0 clients: answers without a length end with the connection, not with chunks they cannot read.

Some proxies still speak HTTP/1.0 to what is behind them. uvicorn sends chunks to everybody, and this is the
protocol class that the process gives it to use instead.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class _UntilClose(int):
    """A length that only the end of the connection tells: no body is longer than it, or shorter."""

    def __lt__(self, _other: object) -> bool:
        return False

    def __ne__(self, _other: object) -> bool:
        return False

    def __sub__(self, _other: object) -> _UntilClose:
        return self


class TrafficProtocol(HttpToolsProtocol):
    """uvicorn's protocol, but for the body of answers to HTTP/1.0."""

    def on_headers_complete(self) -> None:
        """Begin to answer a request."""
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0":
            # uvicorn closes the connection after every answer to HTTP/1.0, so a body may end with it. The
            # answer's own Content-Length, where there is one, is sent all the same.
            self.cycle.chunked_encoding = False
            self.cycle.expected_content_length = _UntilClose()
