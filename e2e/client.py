"""Sends chat requests the way an application would; used by the demo and the tests."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import Any, Final

TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Answer:
    """What came back, and how long it took."""

    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float

    @property
    def cache_status(self) -> str:
        """The `Cache-Status` header (RFC 9211), empty where there is none."""
        return self.headers.get("cache-status", "")

    @property
    def is_hit(self) -> bool:
        """Whether the answer came from the cache."""
        return "; hit" in self.cache_status

    @property
    def detail(self) -> str:
        """Why the cache was bypassed."""
        return self.parameter("detail")

    def parameter(self, name: str) -> str:
        """Return a parameter of `Cache-Status`, empty where it is absent."""
        parts = [part.strip() for part in self.cache_status.split(";")]
        prefix = f"{name}="
        return next((part.removeprefix(prefix).strip('"') for part in parts if part.startswith(prefix)), "")

    @property
    def text(self) -> str:
        """The text of the first choice."""
        parsed: dict[str, Any] = json.loads(self.body)
        return str(parsed["choices"][0]["message"]["content"])


@dataclass(frozen=True)
class ChatClient:
    """Talks to one gateway at a local port."""

    port: int
    host: str = "127.0.0.1"

    def chat(
        self,
        question: str,
        *,
        tenant: str | None = "acme",
        temperature: float | None = 0,
        model: str = "demo-model",
        **fields: object,
    ) -> Answer:
        """Ask one question; `temperature` None leaves it out."""
        body: dict[str, object] = {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            **({} if temperature is None else {"temperature": temperature}),
            **fields,
        }
        headers = {} if tenant is None else {"X-Tenant-Id": tenant}
        return self.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)

    def embed(self, *inputs: str, model: str, tenant: str = "acme") -> Answer:
        """Ask for the vectors of texts."""
        body = json.dumps({"model": model, "input": list(inputs)}).encode()
        return self.request("POST", "/v1/embeddings", body, {"X-Tenant-Id": tenant})

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_SECONDS)
        started = time.perf_counter()
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            content = response.read()
        except http.client.HTTPException as e:
            raise ConnectionError(f"{method} {path}: {e!r}") from e
        finally:
            connection.close()
        lower = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, lower, content, time.perf_counter() - started)
