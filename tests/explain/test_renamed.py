"""Functions with two names, and functions that are called from elsewhere."""

from __future__ import annotations

import pytest

from kduel.explain.compare import Explanation, explain_difference
from kduel.explain.profile import OPERATION, Profile
from kduel.explain.show import as_text
from kduel.explain.symbols import UNKNOWN, Symbols

OLD = {
    "sys_open": 100,
    "sys_open;getname": 50,
    "sys_open;getname;kmem_cache_alloc": 60,
    "sys_open;getname;kmem_cache_alloc;slab_pre": 20,
    "sys_open;do_open": 70,
    "sys_open;do_open;lookup": 30,
    "sys_open;do_open;dput": 9,
}


def explained(old: dict[str, int], new: dict[str, int]) -> Explanation:
    """The difference of two kernels that have the functions which they executed."""
    first, second = (
        Profile(
            operations=1,
            stacks={(OPERATION, *chain.split(";")): count for chain, count in stacks.items()},
            known=frozenset(name for chain in stacks for name in chain.split(";")),
        )
        for stacks in (old, new)
    )
    return explain_difference("open", ("a", "b"), (first, second))


def called(name: str, other: str, **changes: int) -> dict[str, int]:
    """The old kernel's chains with one function called otherwise, and other counts of some chains' ends."""
    found = {chain.replace(name, other): count for chain, count in OLD.items()}
    return {chain: changes.get(chain.rpartition(";")[2], count) for chain, count in found.items()}


def renamed(found: Explanation) -> dict[str, str]:
    return {row.was: row.function for row in found.rows if row.was}


def test_a_function_that_is_called_otherwise_is_one_row() -> None:
    found = explained(OLD, called("kmem_cache_alloc", "kmem_cache_alloc_noprof", kmem_cache_alloc_noprof=63))
    assert renamed(found) == {"kmem_cache_alloc": "kmem_cache_alloc_noprof"}
    (row,) = (row for row in found.rows if row.difference)
    assert (row.baseline, row.contender, row.only) == (60, 63, "")
    assert "kmem_cache_alloc_noprof (was kmem_cache_alloc)" in as_text(found)
    # The picture has one box for it.
    assert found.stacks[f"{OPERATION};sys_open;getname;kmem_cache_alloc_noprof"] == (60, 63)
    assert not any(chain.endswith("kmem_cache_alloc") for chain in found.stacks)


def test_another_name_is_told_by_what_it_calls() -> None:
    assert renamed(explained(OLD, called("do_open", "open_file"))) == {"do_open": "open_file"}


def test_a_caller_with_another_name_hides_nothing_below_it() -> None:
    new = {chain.replace("getname", "filename_of").replace("slab_pre", "slab_pre_hook") for chain in OLD}
    found = explained(OLD, dict(zip(sorted(new), (OLD[chain] for chain in sorted(OLD)), strict=True)))
    assert renamed(found)["getname"] == "filename_of"


@pytest.mark.parametrize(
    "new",
    [
        called("do_open", "open_file", open_file=900),  # nine times as long
        called("do_open", "open_file")
        | {"sys_open;open_too": 70, "sys_open;open_too;lookup": 30, "sys_open;open_too;dput": 9},
        {
            chain.replace("do_open;lookup", "open_file;walk").replace("do_open", "open_file"): n
            for chain, n in OLD.items()
        }
        | {"sys_open;open_file;other": 9},
        called("slab_pre", "x"),  # a leaf tells nothing by what it calls
    ],
    ids=["length", "two would do", "other calls", "leaf"],
)
def test_what_is_not_alike_is_not_paired(new: dict[str, int]) -> None:
    assert renamed(explained(OLD, new)) == {}


def test_a_function_that_both_kernels_have_is_itself() -> None:
    new = OLD | {"sys_open;kmem_cache_alloc_noprof": 60}
    assert renamed(explained(OLD, new)) == {}


PUT = {"task_work": 5, "task_work;fput": 40, "task_work;fput;dput": 30, "sys_close": 20}


def test_work_that_moved_to_another_caller_is_one_row() -> None:
    found = explained(PUT, {"task_work": 5, "sys_close": 20, "sys_close;fput": 42, "sys_close;fput;dput": 30})
    (row,) = found.moved
    assert (row.function, row.baseline_from, row.contender_from) == ("fput", "task_work", "sys_close")
    assert (row.baseline, row.contender) == (70, 72)
    assert "fput (from task_work to sys_close)" in as_text(found)


def test_a_function_put_between_or_inlined_moves_nothing() -> None:
    between = {
        "task_work": 5,
        "task_work;run": 2,
        "task_work;run;fput": 40,
        "task_work;run;fput;dput": 30,
        "sys_close": 20,
    }
    assert explained(PUT, between).moved == [] and explained(between, PUT).moved == []


def test_a_caller_with_another_name_moves_nothing() -> None:
    other = {chain.replace("task_work", "task_work_run"): count for chain, count in PUT.items()}
    assert explained(PUT, other).moved == []


def test_code_that_the_kernel_made_among_modules_has_no_symbol() -> None:
    symbols = Symbols.from_kallsyms(
        "ffffffffc0000000 t probe [one]\nffffffffc0000100 t cleanup_module [one]\nffffffffc0008000 t init [two]\n"
        "ffffffffc0018000 t last [two]\n"
    )
    assert symbols.function(0xFFFFFFFFC0000180) == "cleanup_module [one]"
    assert symbols.function(0xFFFFFFFFC0001200) == UNKNOWN
    assert symbols.function(0xFFFFFFFFC0017000) == "init [two]"
    assert symbols.function(0xFFFFFFFFC0019100) == UNKNOWN
