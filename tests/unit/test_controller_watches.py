"""What kopf is told to do, and what our handlers make of its events."""

from typing import Any

import kopf
import pytest

from cachewright.api.names import GROUP, PLURAL
from cachewright.controller.handlers import Handlers, connection_info, selector
from cachewright.controller.queue import CacheKey
from cachewright.controller.roster import Roster
from cachewright.controller.watches import OWN_CHILDREN, USABLE_SECRETS, watch_settings
from cachewright.kube.connection import Credentials
from cachewright.kube.protocol import CHILD_KINDS, SECRETS
from cachewright.kube.selectors import matches

CREDENTIALS = Credentials(
    server="https://cluster:6443",
    ca_path="/ca.crt",
    certificate_path=None,
    key_path=None,
    authorization=("Bearer", "token"),
    verify_tls=True,
    proxy=None,
)


class Recorder:
    """A queue that only remembers what was added."""

    def __init__(self) -> None:
        self.keys: list[CacheKey] = []

    def add(self, key: CacheKey, after: float = 0.0) -> None:
        """Remember."""
        assert after > 0, "bursts of events are to be served by one pass"
        self.keys.append(key)


class Bench:
    """Handlers without kopf around them."""

    def __init__(self) -> None:
        self.queue = Recorder()
        self.roster = Roster(lambda: 0.0)

        async def credentials() -> Credentials:
            return CREDENTIALS

        self.handlers = Handlers(self.queue, self.roster, credentials)  # type: ignore[arg-type]


@pytest.fixture
def bench() -> Bench:
    """No object is known yet."""
    return Bench()


def child(labels: dict[str, str] | None = None, owners: list[dict[str, str]] | None = None) -> kopf.Body:
    """Return a child as kopf shows it."""
    metadata: dict[str, Any] = {"name": "demo-redis", "namespace": "ns", "labels": labels or {}}
    if owners is not None:
        metadata["ownerReferences"] = owners
    raw: Any = {"metadata": metadata}
    return kopf.Body(raw)


def test_kopf_has_event_handlers_only(bench: Bench) -> None:
    """No handler of ours makes kopf write annotations or finalizers, or run timers, daemons or webhooks."""
    registry = kopf.OperatorRegistry()
    bench.handlers.register(registry)
    watched = registry._watching.get_all_handlers()
    assert {(h.selector.group, h.selector.any_name) for h in watched if h.selector} == {
        (GROUP, PLURAL),
        *((kind.group, kind.plural) for kind in CHILD_KINDS),
    }
    for forbidden in (registry._changing, registry._spawning, registry._indexing, registry._webhooks):
        assert forbidden.get_all_handlers() == []


def test_the_server_sends_only_what_is_labelled() -> None:
    """Each kind of child has a label selector, and every setting that bounds kopf is set."""
    settings = watch_settings()
    for kind in CHILD_KINDS:
        wanted = settings.watching.label_selectors[selector(kind)]
        assert wanted == (USABLE_SECRETS if kind is SECRETS else OWN_CHILDREN)
    assert settings.watching.chunk_size
    assert settings.watching.server_timeout
    assert settings.watching.client_timeout
    assert settings.watching.connect_timeout
    assert settings.networking.request_timeout
    assert settings.networking.request_timeout <= 60
    assert settings.networking.connect_timeout
    assert settings.scanning.disabled
    assert settings.peering.standalone
    assert not settings.posting.enabled


@pytest.mark.parametrize(
    ("labels", "seen"),
    [
        ({"cachewright.dev/use": "true"}, True),
        ({"cachewright.dev/use": "operator"}, True),
        ({"cachewright.dev/use": "false"}, False),
        ({"app": "other"}, False),
        ({}, False),
    ],
)
def test_which_secrets_are_seen(labels: dict[str, str], seen: bool) -> None:
    """Secrets that their owner has released for use, our own, and no others."""
    assert matches(labels, USABLE_SECRETS) is seen


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", None])
async def test_an_object_is_looked_at_when_it_changes(bench: Bench, kind: Any) -> None:
    """Whatever the event says, the object is queued and known."""
    await bench.handlers.on_cache(kind, "ns", "demo")
    assert bench.queue.keys == [("ns", "demo")]
    assert bench.roster.in_namespace("ns") == [("ns", "demo")]


async def test_a_deleted_object_is_looked_at_once_more_and_forgotten(bench: Bench) -> None:
    """Its name is queued, and it counts as existing no longer."""
    await bench.handlers.on_cache("ADDED", "ns", "demo")
    await bench.handlers.on_cache("DELETED", "ns", "demo")
    assert bench.queue.keys == [("ns", "demo")] * 2
    assert bench.roster.in_namespace("ns") == []


OURS = {"cachewright.dev/cache": "demo", "app.kubernetes.io/managed-by": "cachewright"}
OWNER = {"kind": "InferenceCache", "name": "demo"}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (child(OURS), ["demo"]),
        (child(OURS, [OWNER]), ["demo"]),
        (child({}, [OWNER]), ["demo"]),
        (child({**OURS, "cachewright.dev/cache": "edited"}, [OWNER]), ["demo", "edited"]),
        (child({"cachewright.dev/cache": "foreign"}), []),
        (child({}, [{"kind": "Deployment", "name": "demo"}]), []),
        (child(), []),
    ],
)
async def test_a_child_leads_to_its_object(bench: Bench, body: kopf.Body, names: list[str]) -> None:
    """By label, or by owner reference when a hand has edited the label."""
    await bench.handlers.on_child("ns", body)
    assert sorted(bench.queue.keys) == [("ns", name) for name in names]


async def test_a_users_secret_leads_to_every_object_of_its_namespace(bench: Bench) -> None:
    """Objects in other namespaces cannot refer to it, and a Secret of ours concerns its own object only."""
    for place in (("ns", "a"), ("ns", "b"), ("other", "c")):
        bench.roster.enter(CacheKey(*place))
    await bench.handlers.on_usable_secret("ns", {"cachewright.dev/use": "true"})
    assert bench.queue.keys == [("ns", "a"), ("ns", "b")]
    await bench.handlers.on_usable_secret("ns", {"cachewright.dev/use": "operator"})
    assert len(bench.queue.keys) == 2


async def test_kopf_gets_the_credentials_of_our_connection(bench: Bench) -> None:
    """Server, authority and token; a token is asked for again after some minutes, a certificate is not."""
    info = await bench.handlers.log_in()
    assert (info.server, info.ca_path, info.scheme, info.token) == (
        "https://cluster:6443",
        "/ca.crt",
        "Bearer",
        "token",
    )
    assert info.expiration is not None
    certificate = connection_info(
        Credentials("https://c", "/ca.crt", "/tls.crt", "/tls.key", None, verify_tls=True, proxy=None)
    )
    assert certificate.certificate_path == "/tls.crt"
    assert certificate.expiration is None
    assert certificate.insecure is False
