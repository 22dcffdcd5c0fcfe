"""What a client may say to the cache: it narrows, whatever it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.policy.wishes import Wishes, read_cache_control

WISHES = st.builds(
    Wishes, st.booleans(), st.booleans(), st.none() | st.integers(0, 100), only_cached=st.booleans()
)


@pytest.mark.parametrize(
    ("values", "wishes"),
    [
        ([], Wishes()),
        ([b""], Wishes()),
        ([b"no-cache"], Wishes(refresh=True)),
        ([b" No-Cache , NO-STORE"], Wishes(refresh=True, no_store=True)),
        ([b"no-cache", b"only-if-cached"], Wishes(refresh=True, only_cached=True)),
        ([b"max-age=60"], Wishes(max_age_seconds=60)),
        ([b'max-age="60"'], Wishes(max_age_seconds=60)),
        ([b"max-age=60, max-age=30"], Wishes(max_age_seconds=30)),
        ([b"max-age=0"], Wishes(refresh=True, max_age_seconds=0)),
        ([b"max-age"], Wishes(refresh=True, max_age_seconds=0)),
        ([b"max-age=-1"], Wishes(refresh=True, max_age_seconds=0)),
        ([b"max-age=1.5"], Wishes(refresh=True, max_age_seconds=0)),
        ([b"max-age=" + b"9" * 5000], Wishes(max_age_seconds=999_999_999)),
        ([b"max-stale=60, public, s-maxage=5, no-cache2"], Wishes()),
    ],
)
def test_cache_control(values: list[bytes], wishes: Wishes) -> None:
    """Directives in any case and on any line; what is unknown is left out."""
    assert read_cache_control(values) == wishes


def test_pragma_counts_without_cache_control_only() -> None:
    """RFC 9111, section 5.4."""
    assert read_cache_control([], [b"no-cache"]) == Wishes(refresh=True)
    assert read_cache_control([b"max-age=5"], [b"no-cache"]) == Wishes(max_age_seconds=5)


@given(WISHES, WISHES, st.floats(0, 200))
def test_two_wishes_together_are_never_wider_than_one(one: Wishes, other: Wishes, age: float) -> None:
    """Whichever comes first."""
    both = one.and_(other)
    assert both == other.and_(one)
    assert both.allow(age) == (one.allow(age) and other.allow(age))
    assert both.no_store == (one.no_store or other.no_store)
    assert both.only_cached == (one.only_cached or other.only_cached)


def test_an_age_is_allowed_up_to_the_wish() -> None:
    """An answer of exactly that age is served."""
    assert Wishes(max_age_seconds=60).allow(60.0)
    assert not Wishes(max_age_seconds=60).allow(60.1)
    assert not Wishes(refresh=True).allow(0)
    assert Wishes().allow(1e9)
