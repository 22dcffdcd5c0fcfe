"""The one exception tree; every package raises from it and converts its clients' errors into it.

CachewrightError
├── InvalidInput            what a person wrote cannot be used; the message says what to write
│   ├── InvalidSpec         an InferenceCache breaks a rule of the schema
│   ├── RuleNotEvaluable    a rule of the schema met a value that it was not written for
│   ├── InvalidDocument     a mounted or stored document (policy, record, API keys) does not parse
│   └── InvalidJson         a request body is not JSON
│       └── AmbiguousJson   it is, but two readers could understand it differently
├── RequestError            a request cannot be gone on with
│   ├── BodyTooLarge        its body is larger than allowed
│   └── ClientGone          the client closed its connection
├── UpstreamError           the upstream did not answer
│   ├── UpstreamUnreachable refused, reset, closed early
│   └── UpstreamTimedOut    no byte for longer than allowed
├── StoreError              a cache store did not do what was asked
│   ├── StoreUnavailable    refused, reset, timed out: worth trying again
│   └── StoreRefused        answered with an error: authentication, permission, out of memory
│       ├── StoreUnfit      its server lacks what is needed: version, extension; the message says what
│       └── SpaceNotFound   the vector store holds no such space, or not any more
├── EmbedderError           an embedder did not turn texts into vectors
│   ├── EmbedderUnavailable refused, reset, timed out, 5xx: worth trying again
│   ├── EmbedderOverloaded  too many texts are waiting already: worth trying later
│   ├── EmbedderRefused     answered with an error, or with vectors that cannot be used
│   └── EmbedderMismatch    its vectors are not of the space that a keyspace holds
├── LocalError              local mode cannot start: port, store or state folder; the message says what to do
└── KubeError               the Kubernetes API did not do what was asked
    ├── KubeUnavailable     no answer: worth trying again
    ├── KubeNotFound        404
    ├── KubeConflict        409: somebody else wrote first, or owns the field
    ├── KubeForbidden       403: the operator's role lacks a verb
    ├── KubeTerminating     403: the namespace is being deleted, so nothing is created in it any more
    └── KubeInvalid         400 or 422: the API server refused the object
"""

from __future__ import annotations


class CachewrightError(Exception):
    """Root of everything this project raises on purpose."""


class InvalidInput(CachewrightError):
    """What a person wrote cannot be used; the message says what to write instead."""


class InvalidSpec(InvalidInput):
    """An InferenceCache breaks a rule of the schema."""


class RuleNotEvaluable(InvalidInput):
    """A rule of the schema met a value of a kind that it was not written for."""


class InvalidDocument(InvalidInput):
    """A mounted or stored document does not parse; the last good one stays in use."""


class InvalidJson(InvalidInput):
    """A request body is not JSON; the upstream says what it thinks of it."""


class AmbiguousJson(InvalidJson):
    """A request body is JSON that two readers could understand differently; never cached."""


class RequestError(CachewrightError):
    """A request cannot be gone on with."""


class BodyTooLarge(RequestError):
    """A request's body is larger than allowed."""


class ClientGone(RequestError):
    """The client closed its connection before its answer."""


class UpstreamError(CachewrightError):
    """The upstream did not answer."""


class UpstreamUnreachable(UpstreamError):
    """The upstream's connection was refused, reset or closed early."""


class UpstreamTimedOut(UpstreamError):
    """The upstream sent no byte for longer than allowed."""


class StoreError(CachewrightError):
    """A cache store did not do what was asked; requests go on without it."""


class StoreUnavailable(StoreError):
    """The store gave no answer in time: refused, reset or timed out."""


class StoreRefused(StoreError):
    """The store answered with an error: authentication, permission, memory."""


class StoreUnfit(StoreRefused):
    """The store's server lacks what is needed; the message says what to install or update."""


class SpaceNotFound(StoreRefused):
    """The vector store holds no such space: it was not made yet, or was dropped."""


class EmbedderError(CachewrightError):
    """An embedder did not turn texts into vectors; requests go on without it."""


class EmbedderUnavailable(EmbedderError):
    """The embedder gave no answer in time: refused, reset, timed out or in trouble."""


class EmbedderOverloaded(EmbedderError):
    """Too many texts wait for the embedder already."""


class EmbedderRefused(EmbedderError):
    """The embedder answered with an error, or with vectors that cannot be used."""


class EmbedderMismatch(EmbedderError):
    """The embedder's vectors are not of the space that a keyspace holds."""


class LocalError(CachewrightError):
    """Local mode cannot start; the message says what to do."""


class KubeError(CachewrightError):
    """The Kubernetes API did not do what was asked."""


class KubeUnavailable(KubeError):
    """The API server gave no usable answer: connection trouble, timeout, 429 or 5xx."""


class KubeNotFound(KubeError):
    """The object does not exist."""


class KubeConflict(KubeError):
    """Somebody else wrote first, or owns a field we would have to take over."""


class KubeForbidden(KubeError):
    """The operator's role lacks the verb that was used."""


class KubeTerminating(KubeError):
    """The namespace is being deleted; whatever was to be created in it goes with it."""


class KubeInvalid(KubeError):
    """The API server refused the object: it breaks a rule or an immutable field changed."""
