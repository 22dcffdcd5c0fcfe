"""Noticing that a store went back, and nothing else."""

from __future__ import annotations

from cachewright.layers.highest_marks import FARTHEST, HighestMarks
from cachewright.stores.protocols import Marks, Raise

BEGINNING = 2**40


def marks(changes: int) -> Marks:
    """Return marks of one revision."""
    return Marks(1, BEGINNING + changes)


def settle(highest: HighestMarks, after: int) -> None:
    """Raise the marks to `after`, as whoever retracts a whole store does."""
    highest.settle({"00": Raise(BEGINNING, BEGINNING + after)})


def read(highest: HighestMarks, changes: int, tag: str = "00") -> bool:
    """Read at once; tell whether the store went back."""
    return highest.went_back(tag, marks(changes), highest.begin())


def test_rising_marks_are_as_they_should_be() -> None:
    """As are the same again, and lower ones under another tag."""
    highest = HighestMarks()
    assert not any(read(highest, changes) for changes in (5, 5, 6, 1000))
    assert not read(highest, 3, "01")


def test_lower_marks_give_a_store_away() -> None:
    """As often as they are read, until it was seen to."""
    highest = HighestMarks()
    read(highest, 6)
    assert read(highest, 5)
    assert read(highest, 5)
    settle(highest, 7)
    assert not read(highest, 7)
    assert not read(highest, 8)
    assert read(highest, 7)


def test_a_store_that_goes_back_twice_gives_itself_away_twice() -> None:
    """Also where nobody looked in between: what was done to it the first time is lost again."""
    highest = HighestMarks()
    read(highest, 6)
    assert read(highest, 5)
    settle(highest, 7)
    assert read(highest, 5)


def test_a_slow_read_gives_nobody_away() -> None:
    """It began before the higher marks were heard."""
    highest = HighestMarks()
    slow = highest.begin()
    read(highest, 6)
    assert not highest.went_back("00", marks(5), slow)
    assert not read(highest, 6)


def test_what_was_read_before_a_store_was_seen_to_does_not_count() -> None:
    """Under any tag: it may be from before."""
    highest = HighestMarks()
    slow = highest.begin()
    read(highest, 6)
    assert read(highest, 5)
    settle(highest, 7)
    assert highest.is_settled(slow)
    assert highest.went_back("09", marks(9), slow)
    assert not highest.is_settled(highest.begin())


def test_a_change_of_ones_own_gives_a_store_away() -> None:
    """What was seen cannot lie in the middle of one change, unless it was lost."""
    for before, after, lost in [(6, 9, False), (5, 9, True), (3, 5, True), (7, 9, False), (5, 6, False)]:
        highest = HighestMarks()
        slow = highest.begin()
        read(highest, 6)
        raised = Raise(BEGINNING + before, BEGINNING + after)
        late = slow if after == 6 else highest.begin()
        assert highest.raised("00", raised, late) == lost, (before, after)


def test_an_emptied_store_begins_anew() -> None:
    """It holds nothing that could be served, with a record or without."""
    for beginning in (-5 * FARTHEST, 5 * FARTHEST):
        highest = HighestMarks()
        read(highest, 5)
        assert not highest.went_back("00", None, highest.begin())
        assert not read(highest, beginning)
        assert not read(highest, beginning + 1)
        assert read(highest, beginning)


def test_a_store_that_was_filled_again_gives_itself_away_when_its_old_copy_returns() -> None:
    """Wherever both began to count: what was retracted in between is lost."""
    for beginning in (-5 * FARTHEST, 5 * FARTHEST):
        highest = HighestMarks()
        read(highest, 5)
        highest.went_back("00", None, highest.begin())
        read(highest, beginning)
        assert read(highest, 5)
        settle(highest, 6)
        assert not read(highest, 6)


def test_a_beginning_that_was_not_seen_empty_may_be_an_old_copy() -> None:
    """As may one after an emptiness that was over, or of which a slow read tells."""
    highest = HighestMarks()
    read(highest, 5)
    assert read(highest, 5 * FARTHEST)
    assert not read(highest, 5)
    highest.went_back("00", None, highest.begin())
    assert not read(highest, 6)
    assert read(highest, 5 * FARTHEST)
    slow = highest.begin()
    assert not read(highest, 6)
    assert not highest.went_back("00", None, slow)
    assert read(highest, 5 * FARTHEST)
