"""What the in-memory client does beyond the contract that it shares with the real one."""

from typing import Any

import pytest

from cachewright.errors import KubeUnavailable
from cachewright.kube.memory import MemoryKube, Place
from cachewright.kube.merge import merged
from cachewright.kube.protocol import CONFIG_MAPS, SECRETS, SERVICES, Manifest
from cachewright.kube.selectors import matches


def owned(kind: str, name: str, *owner_uids: str) -> Manifest:
    """Return an object that others own."""
    references = [{"uid": uid} for uid in owner_uids]
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "ownerReferences": references},
    }


async def test_what_an_object_owns_goes_with_it() -> None:
    """Garbage collection follows owner references down, and spares what another owner holds."""
    kube = MemoryKube()
    owner = (await kube.create(owned("ConfigMap", "owner")))["metadata"]["uid"]
    child = (await kube.create(owned("Secret", "child", owner)))["metadata"]["uid"]
    await kube.create(owned("Service", "grandchild", child))
    await kube.create(owned("Service", "shared", owner, "somebody-else"))
    await kube.delete(CONFIG_MAPS, "ns", "owner", owner)
    assert await kube.list(SECRETS) == []
    assert [each["metadata"]["name"] for each in await kube.list(SERVICES)] == ["shared"]


async def test_a_crash_can_be_played_before_any_write() -> None:
    """The hook sees verb and place, and what it raises leaves the objects as they were."""
    kube = MemoryKube()

    def crash(verb: str, place: Place) -> None:
        raise KubeUnavailable(f"{verb} {place}")

    kube.before_write = crash
    with pytest.raises(KubeUnavailable, match="patch ConfigMap ns/a"):
        await kube.apply(owned("ConfigMap", "a"))
    assert await kube.list(CONFIG_MAPS) == []
    assert kube.writes == []


async def test_nothing_that_is_handed_out_can_be_changed_from_outside() -> None:
    """Reads and writes copy, so a test cannot change the stored object by accident."""
    kube = MemoryKube()
    given = owned("ConfigMap", "a") | {"data": {"k": "v"}}
    (await kube.create(given))["data"]["k"] = "changed"
    given["data"]["k"] = "changed"
    (await kube.list(CONFIG_MAPS))[0]["data"]["k"] = "changed"
    read = await kube.get(CONFIG_MAPS, "ns", "a")
    assert read is not None
    assert read["data"] == {"k": "v"}


@pytest.mark.parametrize(
    ("live", "before", "after", "result"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, {}, {"b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, {}, {"a": {"y": 2}}),
        ({"a": {"x": 1}}, {"a": {"x": 1}}, {}, {}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [3]}, {"a": [3]}),
        ({}, {}, {"emptyDir": {}}, {"emptyDir": {}}),
        (
            {"env": [{"name": "A", "value": "1"}, {"name": "theirs", "value": "2"}]},
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "B", "value": "3"}]},
            {"env": [{"name": "B", "value": "3"}, {"name": "theirs", "value": "2"}]},
        ),
        (
            {"env": [{"name": "A"}, {"name": "theirs"}]},
            {"env": [{"name": "A"}]},
            {},
            {"env": [{"name": "theirs"}]},
        ),
    ],
)
def test_a_wish_that_changes_takes_its_former_fields_along(
    live: Any, before: Any, after: Any, result: Any
) -> None:
    """Ours go, theirs stay, lists merge by key where the API merges them."""
    assert merged(live, before, after) == result


def test_a_selector_that_is_none_is_refused() -> None:
    """A typing error in a selector matches nothing and everything on a real server; here it is an error."""
    with pytest.raises(ValueError, match="not a label selector"):
        matches({"a": "b"}, "a in b, (c")
