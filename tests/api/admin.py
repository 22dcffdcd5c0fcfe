"""A bare HTTP client of the API server as administrator; it gives every answer as it came."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

Document = dict[str, Any]

CACHES = "/apis/cachewright.dev/v1alpha1/namespaces/{namespace}/inferencecaches"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said: the object, or a Status with its message."""

    status: int
    body: Document

    @property
    def accepted(self) -> bool:
        """Tell whether the request was carried out."""
        return self.status < http.HTTPStatus.MULTIPLE_CHOICES

    @property
    def message(self) -> str:
        """Return why a request was refused."""
        return str(self.body.get("message", ""))


class Admin:
    """Sends JSON with the credentials of a kubeconfig that the test API server wrote."""

    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        address = urlsplit(cluster["server"])
        self._host, self._port = address.hostname or "", address.port
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]))
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            self._context.load_cert_chain(pair.name)

    def request(
        self,
        verb: str,
        path: str,
        body: Document | None = None,
        media: str = "application/json",
        **query: str,
    ) -> Answer:
        """Send one request; refusals are answers, not errors."""
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=30, context=self._context)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(verb, f"{path}?{urlencode(query)}", text, {"Content-Type": media})
            response = connection.getresponse()
            return Answer(response.status, json.loads(response.read()))
        finally:
            connection.close()

    def create(self, document: Document, *, dry_run: bool = False) -> Answer:
        """Create an InferenceCache under strict field validation."""
        return self.request("POST", _collection(document), document, **_strict(dry_run))

    def update(self, document: Document, *, dry_run: bool = False) -> Answer:
        """Replace an InferenceCache, whichever version of it is stored."""
        path = f"{_collection(document)}/{document['metadata']['name']}"
        stored = self.request("GET", path).body
        metadata = {**document["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
        return self.request("PUT", path, {**document, "metadata": metadata}, **_strict(dry_run))

    def write_status(self, document: Document, status: Document) -> Answer:
        """Apply a status through its subresource."""
        path = f"{_collection(document)}/{document['metadata']['name']}/status"
        kind = {key: document[key] for key in ("apiVersion", "kind")}
        body = {**kind, "metadata": {"name": document["metadata"]["name"]}, "status": status}
        query = {"fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
        return self.request("PATCH", path, body, "application/apply-patch+yaml", **query)

    def remove_other_caches(self, kept: str) -> None:
        """Delete all caches outside a namespace: what other tests left to an operator of the cluster."""
        listed = self.request("GET", "/apis/cachewright.dev/v1alpha1/inferencecaches").body["items"]
        for document in listed:
            if document["metadata"]["namespace"] == kept:
                continue
            path = f"{_collection(document)}/{document['metadata']['name']}"
            if document["metadata"].get("finalizers"):
                freed = {"metadata": {"finalizers": None}}
                self.request("PATCH", path, freed, "application/merge-patch+json")
            self.request("DELETE", path)


def _collection(document: Document) -> str:
    return CACHES.format(namespace=document["metadata"]["namespace"])


def _strict(dry_run: bool) -> dict[str, str]:
    return {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
