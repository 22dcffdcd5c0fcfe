"""Editing the manifest while it is served, and between two runs."""

from __future__ import annotations

import json
from pathlib import Path

import openai

from tests.local.harness import API_KEYS, Local, ask_with_key, edited, eventually, running, with_api_keys
from tests.support.redis_servers import run_redis

MISS = "cachewright; fwd=miss"
HIT = "cachewright; hit"


def kept_keyspace(folder: Path) -> str:
    """Return the keyspace in the kept record."""
    record = json.loads((folder / "state/cachewright/local/quickstart/record.json").read_text())
    return str(record["layers"]["Exact"]["keyspace"])


def told(local: Local, text: str) -> None:
    """Wait for a piece of news."""
    eventually(lambda: text in local.said(), 20)


def test_a_new_version_takes_effect_without_a_restart(tmp_path: Path) -> None:
    """From the news on, the same question misses once and then hits in the new keyspace."""
    with running(tmp_path, manifest=edited(tmp_path)) as local:
        _, old = local.ask()
        assert local.ask()[0].startswith(HIT)
        edited(tmp_path, model__version="2")
        told(local, "demo-model at version 2 starts with the empty keyspace")
        status, new = local.ask()
        assert status.startswith(MISS)
        assert new != old
        status, again = local.ask()
        assert status.startswith(HIT)
        assert again == new
        assert kept_keyspace(tmp_path).endswith("-2")


def test_setting_the_version_back_brings_the_answers_back(tmp_path: Path) -> None:
    """The old keyspace is retained, told with its end, and in use again after the edit is undone."""
    with running(tmp_path, manifest=edited(tmp_path)) as local:
        _, old = local.ask()
        keyspace = kept_keyspace(tmp_path)
        edited(tmp_path, model__version="2")
        told(local, f"; retained is {keyspace} (version 1) until ")
        assert local.ask()[0].startswith(MISS)
        edited(tmp_path)
        told(local, f"demo-model at version 1 has keyspace {keyspace} back")
        status, answer = local.ask()
        assert status.startswith(HIT)
        assert answer == old
    with running(tmp_path) as local:
        (retained,) = local.ready["retained"]
        assert retained["version"] == "2"
        assert local.ready["keyspace"] == keyspace


def test_a_raised_epoch_leaves_no_way_back(tmp_path: Path) -> None:
    """Every entry is revoked; taking the edit back, or raising it once more, brings none of them back."""
    with running(tmp_path, manifest=edited(tmp_path)) as local:
        local.ask()
        edited(tmp_path, epoch=1)
        told(local, "-2; ")
        assert "is deleted" in local.said()
        assert local.ask()[0].startswith(MISS)
        assert local.ask()[0].startswith(HIT)
        edited(tmp_path, layers__exact__ttl="7m")
        told(local, "what was cached stays in use")
        assert local.ask()[0].startswith(HIT)
        edited(tmp_path, epoch=2)
        told(local, "-3; ")
        assert local.ask()[0].startswith(MISS)
        for incarnation in (1, 2):
            told(local, f"-{incarnation} is gone: ")


def test_more_versions_than_are_retained(tmp_path: Path) -> None:
    """The oldest of too many is given up, and told."""
    with running(tmp_path, manifest=edited(tmp_path, rotation__maxRetained=1)) as local:
        first = kept_keyspace(tmp_path)
        edited(tmp_path, rotation__maxRetained=1, model__version="2")
        told(local, f"retained is {first}")
        edited(tmp_path, rotation__maxRetained=1, model__version="3")
        told(local, f"keyspace {first} (version 1) is no longer retained and is deleted")
        edited(tmp_path, rotation__maxRetained=1, model__version="1")
        told(local, "version 1 starts with the empty keyspace")


def test_an_invalid_edit_keeps_the_last_good(tmp_path: Path) -> None:
    """It is told with its line, hits go on, and the next good edit is taken."""
    with running(tmp_path, manifest=edited(tmp_path)) as local:
        local.ask()
        edited(tmp_path, layers__exact__ttl="soon")
        told(local, "not taken, the last good one stays in use")
        assert "spec.layers.exact.ttl" in local.said()
        assert "1 problem" in local.said()
        (tmp_path / "cache.yaml").write_text("half: [")
        told(local, "line 1")
        (tmp_path / "cache.yaml").unlink()
        told(local, "No such file")
        assert local.ask()[0].startswith(HIT)
        edited(tmp_path, layers__exact__ttl="7m")
        told(local, "what was cached stays in use")
        assert local.ask()[0].startswith(HIT)
        assert kept_keyspace(tmp_path).endswith("-1")


def test_rules_about_changes_and_suspend_hold(tmp_path: Path) -> None:
    """An immutable field and `suspend` are refused as in a cluster."""
    with running(tmp_path, manifest=edited(tmp_path)) as local:
        edited(tmp_path, stores__redis__managed__flavor="Redis")
        told(local, "not taken")
        assert "flavor" in local.said()
        edited(tmp_path, suspend=True, model__version="2")
        told(local, "spec.suspend is true")
        local.ask()
        assert local.ask()[0].startswith(HIT)
        assert kept_keyspace(tmp_path).endswith("-1")


def test_another_size_of_the_store(tmp_path: Path) -> None:
    """The server is started anew, empty, as its pod is in a cluster; requests go on."""
    with running(tmp_path, manifest=edited(tmp_path)) as local:
        local.ask()
        edited(tmp_path, stores__redis__managed__maxMemory="32Mi")
        told(local, "the store gets another size")
        eventually(lambda: local.ask()[0].startswith(HIT))


def test_a_secrets_file_is_read_anew(tmp_path: Path) -> None:
    """An edited `@file` reaches the gateway by itself."""
    keys = tmp_path / "keys"
    keys.write_text(API_KEYS)
    option = f"team-keys/keys.yaml=@{keys}"
    with running(tmp_path, "--secret", option, manifest=with_api_keys(tmp_path)) as local:
        ask_with_key(local.base_url, "sk-acme")
        keys.write_text(f"{API_KEYS}- {{key: sk-new, tenant: acme}}\n")

        def is_known() -> bool:
            try:
                return ask_with_key(local.base_url, "sk-new").startswith(HIT)
            except openai.AuthenticationError:
                return False

        eventually(is_known)


def test_a_restart_starts_empty_with_a_private_store(tmp_path: Path) -> None:
    """Entries go with the store; the record stays, so that nothing is ever given out twice."""
    with running(tmp_path) as local:
        local.ask()
        keyspace = local.ready["keyspace"]
    with running(tmp_path) as local:
        assert local.ask()[0].startswith(MISS)
        assert local.ready["keyspace"] == keyspace


def test_with_a_store_that_stays_hits_survive_and_a_version_bump_misses(tmp_path: Path) -> None:
    """The kept key and record make a restart a hit, a bump between two runs a miss, a rollback a hit."""
    with run_redis("valkey") as server:
        url = server.url("root")
        with running(tmp_path, "--store", url, manifest=edited(tmp_path)) as local:
            assert local.ask()[0].startswith(MISS)
            assert "root" not in local.ready["store"]
        with running(tmp_path, "--store", url, manifest=edited(tmp_path)) as local:
            assert local.ask()[0].startswith(HIT)
        with running(tmp_path, "--store", url, manifest=edited(tmp_path, model__version="2")) as local:
            assert local.ask()[0].startswith(MISS)
        with running(tmp_path, "--store", url, manifest=edited(tmp_path)) as local:
            assert local.ask()[0].startswith(HIT)
            assert local.ready["keyspace"].endswith("-1")
