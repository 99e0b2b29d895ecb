"""The order of turns within a step."""

from collections import Counter
from itertools import islice, pairwise

import pytest

from kduel.core.turns import draw_rounds


@pytest.mark.parametrize(("guests", "batch"), [(2, 4), (3, 6), (4, 4)])
def test_each_batch_is_balanced(guests, batch):
    """Whatever is drawn, a step cannot end far from equal shares of the places."""
    rounds = draw_rounds(guests, "1/01-cpu")
    for _ in range(20):
        found = list(islice(rounds, batch))
        assert all(sorted(order) == list(range(guests)) for order in found)
        assert set(Counter((guest, place) for order in found for place, guest in enumerate(order)).values()) == {
            batch // guests
        }
        followers = Counter(pair for order in found for pair in pairwise(order))
        assert len(followers) == guests * (guests - 1)
        assert len(set(followers.values())) == 1


def test_two_guests_never_only_alternate():
    """A neighbour that takes the CPU in each second turn would hit the same guest always."""
    turns = [guest for order in islice(draw_rounds(2, "7/02-fork.s1"), 400) for guest in order]
    runs = [turns[start : start + 10] for start in range(0, len(turns), 10)]
    assert [0, 1] * 5 not in runs
    assert [1, 0] * 5 not in runs
    assert len({tuple(run) for run in runs}) > 10


def test_the_order_follows_from_the_seed():
    def first(seed):
        return list(islice(draw_rounds(2, seed), 40))

    assert first("1/a") == first("1/a")
    assert first("1/a") != first("2/a") != first("2/b")


def test_one_guest_takes_no_turns():
    with pytest.raises(ValueError, match="1 guests"):
        next(draw_rounds(1, "x"))
