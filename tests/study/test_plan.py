"""The plan is complete, random, and the same for the same seed."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kduel.core.experiment import Contender, Settle, Step
from kduel.study.file import Blocks, StudyHeader
from kduel.study.load import Study
from kduel.study.plan import make_plan


def study(contenders: list[Contender], **blocks) -> Study:
    return Study(
        about=StudyHeader(name="s"),
        contenders=contenders,
        machine="qemu",
        machine_settings={},
        settle=Settle(),
        blocks=Blocks(**blocks),
        steps=[Step(label=f"s{i}", benchmark="b") for i in range(5)],
        text="",
    )


def named(*names: str) -> list[Contender]:
    return [Contender(kernel=name, name=name) for name in names]


@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 2**32))
def test_every_block_holds_every_contender_once(count: int, blocks: int, seed: int):
    names = [f"k{i}" for i in range(count)]
    plan = make_plan(study(named(*names), max=blocks), seed)
    assert [trial.position for trial in plan] == list(range(count * blocks))
    assert len({trial.id for trial in plan}) == len(plan)
    for block in range(1, blocks + 1):
        assert sorted(t.contender for t in plan if t.block == block) == names
    assert [t.block for t in plan] == sorted(t.block for t in plan)
    assert plan == make_plan(study(named(*names), max=blocks), seed)


def test_the_sequence_of_a_seed_never_changes():
    # Runs planned by an older version must be understood by a newer one.
    plan = make_plan(study(named("a", "b", "c"), max=4), 1, edition=1)
    assert [t.contender for t in plan] == list("acbbcacabbac")
    assert [t.contender for t in make_plan(study(named("a", "b"), max=6), 1)] == list("abbabaabbaba")
    assert [t.contender for t in make_plan(study(named("a", "b", "c"), max=4), 1)] == list("acbbaccbacab")


def test_two_contenders_have_orders_drawn_freely():
    """Neither balanced nor turned round: what the orders of neighbouring blocks have in common breaks alpha."""
    plan = make_plan(study(named("a", "b"), max=4000), 7)
    first = [t.contender == "a" for t in plan if t.position % 2 == 0]
    assert 1850 < sum(first) < 2150 and sum(first) != 2000
    same = sum(one == other for one, other in itertools.pairwise(first))
    assert 1850 < same < 2150
    assert sum(first[::2][i] == first[1::2][i] for i in range(2000)) > 900, "turned round, this would be 0"


def test_both_orders_occur_in_the_first_four_blocks():
    for seed in range(200):
        plan = make_plan(study(named("a", "b"), max=5), seed)
        assert len({t.contender for t in plan if t.position % 2 == 0 and t.block <= 4}) == 2


@given(st.integers(3, 6), st.integers(1, 4), st.integers(0, 2**32))
def test_three_contenders_and_more_have_each_place_equally_often(count: int, squares: int, seed: int):
    names = [f"k{i}" for i in range(count)]
    plan = make_plan(study(named(*names), max=squares * count), seed)
    at = Counter((t.contender, t.position % count) for t in plan)
    assert set(at.values()) == {squares} and len(at) == count**2
    # Over a whole square (two for odd numbers) each follows each other one equally often.
    if squares % (1 + count % 2) == 0:
        follows = Counter(
            (one.contender, other.contender) for one, other in itertools.pairwise(plan) if one.block == other.block
        )
        assert len(follows) == count * (count - 1) and len(set(follows.values())) == 1


def test_squares_are_drawn_anew():
    plan = make_plan(study(named("a", "b", "c"), max=600), 5)
    orders = Counter("".join(t.contender for t in plan[start : start + 3]) for start in range(0, 1800, 3))
    assert len(orders) == 6 and set(orders.values()) == {100}
    first = Counter(
        "".join(t.contender for t in make_plan(study(named("a", "b", "c"), max=1), s)) for s in range(600)
    )
    assert len(first) == 6 and min(first.values()) > 65


def test_steps_keep_their_order_unless_the_study_says_otherwise():
    fixed = make_plan(study(named("a", "b"), max=20), 3)
    assert {tuple(t.steps) for t in fixed} == {(0, 1, 2, 3, 4)}
    shuffled = make_plan(study(named("a", "b"), max=20, order="shuffled"), 3)
    assert all(sorted(t.steps) == [0, 1, 2, 3, 4] for t in shuffled)
    assert len({tuple(t.steps) for t in shuffled}) > 10
    for block in range(1, 21):
        assert len({tuple(t.steps) for t in shuffled if t.block == block}) == 1


def test_loads_of_one_kernel_share_a_boot_and_are_shuffled_in_it():
    contenders = [
        Contender(kernel="a", name="a1"),
        Contender(kernel="a", name="a2", scheduler="scx_x"),
        Contender(kernel="b", name="b1"),
    ]
    plan = make_plan(study(contenders, max=50, unit="load"), 5)
    boots = Counter(t.boot for t in plan)
    assert sorted(boots.values()) == [1] * 50 + [2] * 50
    for boot in boots:
        members = [t for t in plan if t.boot == boot]
        positions = [t.position for t in members]
        assert positions == list(range(positions[0], positions[0] + len(members)))
        assert len({t.contender[0] for t in members}) == 1
    assert len({tuple(t.contender for t in plan if t.boot == b) for b, n in boots.items() if n == 2}) == 2
