"""What a run is, in words: addresses, store, upstream, model, keyspace, and how to send it a request.

Used by the greeting, the live view and the line for scripts.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cachewright.api.tenancy import TenancySpec
from cachewright.keys.record import KeyspaceState, PastKeyspace
from cachewright.local.edition import Edition
from cachewright.local.news import shown_retained

QUESTION: Final = "Why is the sky blue?"
PARAPHRASE: Final = "Why's the sky blue?"
"""Similar enough for the built-in embedder, and for the guard the same question."""

CHAT_PATH: Final = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Facts:
    """One run, with the edition in use."""

    edition: Edition
    source: str
    """The manifest's files."""
    host: str
    port: int
    management_port: int
    admin_port: int
    admin_token: Path
    """The file that holds it."""
    store: str
    upstream: str

    @property
    def root(self) -> str:
        """Address of the traffic port."""
        return self._url(self.port)

    @property
    def base_url(self) -> str:
        """What OpenAI clients take as base URL."""
        return f"{self.root}/v1"

    @property
    def metrics_url(self) -> str:
        """Where Prometheus finds the metrics."""
        return f"{self._url(self.management_port)}/metrics"

    @property
    def admin_url(self) -> str:
        """Where stats are told and single entries removed."""
        return self._url(self.admin_port)

    @property
    def model(self) -> str:
        """The model's name."""
        return self.edition.cache.spec.model.name

    @property
    def version(self) -> str:
        """The model's version."""
        return self.edition.cache.spec.model.version

    @property
    def keyspace(self) -> str:
        """The exact layer's active keyspace."""
        layer = self.edition.record.layers.get("Exact")
        return str(layer.keyspace) if layer else "none"

    @property
    def retained(self) -> list[PastKeyspace]:
        """Keyspaces that an edit would bring back, the latest first."""
        return list(reversed(self.edition.record.in_state(KeyspaceState.RETAINED)))

    @property
    def headers(self) -> dict[str, str]:
        """What a request must carry to be cached, but for an API key."""
        tenancy = self.edition.cache.spec.tenancy
        found = {}
        if tenancy.source and tenancy.source.trusted_header:
            found[tenancy.source.trusted_header.name] = "acme"
        if tenancy.role:
            found[tenancy.role.header] = "reader"
        if tenancy.user and tenancy.user.header:
            found[tenancy.user.header] = "alice"
        return found

    @property
    def user_field(self) -> dict[str, str]:
        """What a request's body must say to be cached, beyond the question."""
        user = self.edition.cache.spec.tenancy.user
        if user is None or user.body_field is None:
            return {}
        return {"user" if user.body_field == "User" else "safety_identifier": "alice"}

    @property
    def tenant(self) -> str:
        """Where the tenant of a request comes from."""
        return _tenant(self.edition.cache.spec.tenancy)

    @property
    def needs_key(self) -> bool:
        """True where a request needs a key of its asker's."""
        source = self.edition.cache.spec.tenancy.source
        return bool(source and not source.trusted_header)

    def ready_line(self) -> str:
        """Return one line of JSON for scripts."""
        document = {
            "event": "ready",
            "base_url": self.base_url,
            "ready_url": f"{self.root}/readyz",
            "metrics_url": self.metrics_url,
            "admin_url": self.admin_url,
            "admin_token_file": str(self.admin_token),
            "store": self.store,
            "upstream": self.upstream,
            "model": self.model,
            "version": self.version,
            "keyspace": self.keyspace,
            "retained": [
                {"keyspace": str(past.keyspace), "version": past.model_version, "until": past.until}
                for past in self.retained
            ],
        }
        return json.dumps(document)

    def greeting(self) -> str:
        """Return what a newcomer needs: what runs, and requests to paste."""
        token = f"$(cat {shlex.quote(str(self.admin_token))})"
        rows = {
            "base URL": self.base_url,
            "store": self.store,
            "upstream": self.upstream,
            "tenant": self.tenant,
            "metrics": self.metrics_url,
            "stats": f'curl -s -H "Authorization: Bearer {token}" {self.admin_url}/stats',
            "keyspace": self.keyspace,
            **({"retained": ", ".join(map(shown_retained, self.retained))} if self.retained else {}),
        }
        return "\n".join(
            [
                f"cachewright local: {self.model} at version {self.version}, from {self.source}",
                "",
                *(f"  {name:<10} {value}" for name, value in rows.items()),
                "",
                "A miss, and the same again a hit; Cache-Status says so:",
                f"  {self._curl({})}",
                *self._in_other_words(),
                *self._second_request(),
                "Sampled, so never cached, and the reason is given:",
                f"  {self._curl({'temperature': 0.7})}",
                "",
                "With the OpenAI SDK:",
                *(f"  {line}" for line in self._snippet()),
                "",
            ]
        )

    def _url(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}"

    def _in_other_words(self) -> list[str]:
        spec = self.edition.cache.spec
        route = next((each for each in spec.routes or [] if each.match.path == CHAT_PATH), None)
        if spec.layers.semantic is None or (spec.routes and not (route and "Semantic" in route.layers)):
            return []
        said = "In other words: a hit as well, by similarity (detail=semantic)"
        return [f"{said}:", f"  {self._curl({}, question=PARAPHRASE)}"]

    def _second_request(self) -> list[str]:
        name = next(iter(self.headers), None)
        if name is None:
            return ["Another question, another entry:", f"  {self._curl({}, question='And at dusk?')}"]
        other = {**self.headers, name: "globex"}
        return [
            "The same with another tenant, role or user, which gets nothing of it:",
            f"  {self._curl({}, other)}",
        ]

    def _curl(
        self, changes: dict[str, object], headers: dict[str, str] | None = None, question: str = QUESTION
    ) -> str:
        body = {
            "model": self.model,
            "temperature": 0,
            "messages": [{"role": "user", "content": question}],
            **self.user_field,
            **changes,
        }
        headers = {"Content-Type": "application/json", **(headers or self.headers)}
        if self.needs_key:
            headers["Authorization"] = "Bearer YOUR_API_KEY"
        words = " ".join(f"-H '{name}: {value}'" for name, value in headers.items())
        return f"curl -si {self.base_url}/chat/completions {words} -d '{json.dumps(body)}'"

    def _snippet(self) -> list[str]:
        key = "YOUR_API_KEY" if self.needs_key else "unused"
        headers = f", default_headers={json.dumps(self.headers)}" if self.headers else ""
        message = json.dumps({"role": "user", "content": QUESTION})
        user = "".join(f', {name}="{value}"' for name, value in self.user_field.items())
        return [
            "from openai import OpenAI",
            f'client = OpenAI(base_url="{self.base_url}", api_key="{key}"{headers})',
            "answer = client.chat.completions.with_raw_response.create(",
            f'    model="{self.model}", temperature=0, messages=[{message}]{user}',
            ")",
            'print(answer.headers["cache-status"], answer.parse().choices[0].message.content)',
        ]


def _tenant(tenancy: TenancySpec) -> str:
    if tenancy.source is None:
        return "all requests are one tenant's"
    source = tenancy.source
    if source.trusted_header:
        where = f"header {source.trusted_header.name}"
    else:
        where = "API keys, as bearer tokens" if source.api_keys else "each client's own key of the upstream"
    role = f", role from header {tenancy.role.header}" if tenancy.role else ""
    if user := tenancy.user:
        role += f", user from {f'header {user.header}' if user.header else 'the body'}"
    if tenancy.mode == "Single":
        return f"all requests are one tenant's; {where} authenticates{role}"
    return f"{where}{role}"
