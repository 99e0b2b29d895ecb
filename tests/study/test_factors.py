"""Factors of a study: the cells they make, and the errors for those that cannot be meant."""

from __future__ import annotations

import itertools

import pytest
from factor_runs import COMMAND, HEAD, JOB, KERNELS, SIZE, THP

from kduel.core.errors import InputError
from kduel.study.factors import regular_fraction
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble
from kduel.study.plan import make_plan


def study(text: str) -> Study:
    return assemble(parse_study(text, "made.toml"), text, "made.toml")


def factor(name: str, levels: str) -> str:
    return f'[[factor]]\nname = "{name}"\nlevels = {levels}\n'


def test_levels_of_contenders_are_crossed_and_those_of_benchmarks_share_a_boot() -> None:
    found = study(HEAD + KERNELS + THP + SIZE + JOB)
    assert [(one.kernel, one.cmdline) for one in found.contenders] == [
        (f"installed:{kernel}", f"transparent_hugepage={thp}")
        for kernel in ("old", "new")
        for thp in ("never", "always")
    ]
    assert [step.parameters["command"] for step in found.steps] == ["job 1", "job 2", "job 4"]
    assert found.design is not None
    assert [one.name for one in found.design.factors] == ["kernel", "thp", "size"]
    assert found.design.cells[found.names[3]] == {"kernel": "installed-new", "thp": "always"}
    assert {place.family for place in found.design.steps.values()} == {"job"}
    # In a fixed order a level would be the same as its place in the trial.
    assert found.blocks.order == "shuffled"


def test_contenders_are_the_first_factor_where_others_are_crossed_with_them() -> None:
    text = (
        HEAD + '[[contender]]\nkernel = "a"\ncmdline = "quiet"\n[[contender]]\nkernel = "b"\n' + THP + JOB + COMMAND
    )
    found = study(text)
    assert found.design is not None
    assert [one.name for one in found.design.factors] == ["contender", "thp"]
    assert [one.cmdline for one in found.contenders][:3:2] == [
        "quiet transparent_hugepage=never", "transparent_hugepage=never"
    ]  # fmt: skip


def test_sysctls_of_two_factors_are_joined() -> None:
    one = factor("a", '{ off = { sysctl = { "kernel.a" = 0 } }, on = { sysctl = { "kernel.a" = 1 } } }')
    found = study(HEAD + KERNELS + one + one.replace('"a"', '"b"').replace("kernel.a", "kernel.b") + JOB + COMMAND)
    assert found.contenders[1].sysctl == {"kernel.a": 0, "kernel.b": 1}


def test_a_setting_of_the_machine_is_a_factor_and_joins_what_others_set() -> None:
    clock = factor(
        "clock", '{ tsc = { machine = { clocksource = "tsc" } }, hpet = { machine = { clocksource = "hpet" } } }'
    )
    found = study(HEAD + KERNELS + factor("machine.cpus", "[2, 4]") + clock + JOB + COMMAND)
    assert found.design is not None
    assert [one.name for one in found.design.factors] == ["kernel", "cpus", "clock"]
    assert found.contenders[3].machine == {"cpus": 4, "clocksource": "hpet"}
    assert found.names[3] == "installed-old, cpus=4, clock=hpet"
    # Contenders of two machines cannot share a boot.
    text = HEAD.replace("[settle]", '[blocks]\nunit = "load"\n[settle]') + factor("machine.cpus", "[2, 4]")
    alike = '[[contender]]\nkernel = "a"\n'
    planned = make_plan(study(text + alike + JOB + COMMAND), 1)
    assert len({trial.boot for trial in planned if trial.block == 1}) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (factor("thread", "[1, 2]"), "neither a key of a contender nor a parameter"),
        (factor("cmdline", '["quiet"]'), "'cmdline' has only the level 'quiet'"),
        (factor("cmdline", "[]"), "'cmdline' has no level"),
        (factor("cmdline", '["quiet", "quiet"]'), "'cmdline' has the level 'quiet' twice"),
        (factor("a", "{ off = {}, on = {} }"), "changes nothing"),
        (factor("a", '{ off = { cmdline = "a" }, on = { command = "x" } }'), "changes contenders"),
        (factor("policy", '["other", "idle"]') * 2, "two factors are called"),
        (factor("policy", '["other", "idle"]') + factor("p", '{ a = { policy = "batch" }, b = {} }'), "sets policy"),
        ("".join(factor(f"f{n}", f'{{ off = {{}}, on = {{ cmdline = "f{n}" }} }}') for n in range(10)), "40,960 trials"),
        (factor("cmdline", '["a", "b"]') + "[design]\nfraction = 3\n", "fraction is 3"),
        (factor("cmdline", '["a", "b"]') + "[design]\nfraction = 2\n", "cannot tell"),
        (factor("cmdline", '["a", "b"]') + "[design]\ninteractions = 9\n", "interactions is 9"),
    ],
)  # fmt: skip
def test_factors_that_cannot_be_meant_are_errors_with_a_remedy(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        study(HEAD + KERNELS + text + JOB + COMMAND)
    assert said in caught.value.message and "made.toml" in caught.value.message and caught.value.remedy


def test_a_setting_of_the_machine_is_named_in_full() -> None:
    for key in ("cpus", "topology"):
        with pytest.raises(InputError, match=f"'{key}'") as caught:
            study(HEAD + KERNELS + factor(key, '["a", "b"]') + JOB + COMMAND)
        assert caught.value.remedy.startswith(f"The machine's is machine.{key}. ")


def test_a_fraction_without_factors_is_an_error() -> None:
    pair = '[[contender]]\nkernel = "a"\n[[contender]]\nkernel = "b"\n'
    with pytest.raises(InputError, match="no factor"):
        study(f'{HEAD}{pair}[design]\nfraction = 2\n[[benchmark]]\nuse = "perf-sched-pipe"\n')


@pytest.mark.parametrize("given", [4, 64])
def test_the_remedy_for_an_impossible_fraction_is_one_that_works(given: int) -> None:
    three = "".join(factor(f"f{n}", f'{{ off = {{}}, on = {{ cmdline = "f{n}" }} }}') for n in range(3))
    pair = '[[contender]]\nkernel = "a"\n'

    def cells(fraction: int) -> int:
        return len(study(f"{HEAD}{pair}{three}[design]\nfraction = {fraction}\n{JOB}{COMMAND}").contenders)

    with pytest.raises(InputError, match="3 factors with two levels") as caught:
        cells(given)
    assert caught.value.remedy == "Give design.fraction = 2."
    assert cells(2) == 4


def test_the_remedy_for_too_many_cells_is_a_fraction_that_works() -> None:
    many = "".join(factor(f"f{n}", f'{{ off = {{}}, on = {{ cmdline = "f{n}" }} }}') for n in range(9))
    found = study(HEAD + KERNELS + many + "[design]\nfraction = 32\n" + JOB + COMMAND)
    assert len(found.contenders) == 32


def resolution(cells: set[tuple[int, ...]], factors: int) -> int:
    """The fewest factors whose levels add up to an even number in every cell of a fraction that has the cell of zeros."""
    return next(
        size
        for size in range(1, factors + 1)
        for word in itertools.combinations(range(factors), size)
        if not any(sum(cell[factor] for factor in word) % 2 for cell in cells)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factors", "fraction", "best"),
    [(3, 2, 3), (4, 2, 4), (5, 2, 5), (5, 4, 3), (6, 4, 4), (7, 2, 7), (7, 4, 4), (7, 8, 4), (8, 4, 5), (10, 32, 4), (15, 1024, 4)],
)  # fmt: skip
def test_fractions_have_the_highest_resolution_there_is(factors: int, fraction: int, best: int) -> None:
    """Montgomery, Design and Analysis of Experiments, table 8.14."""
    cells = regular_fraction(factors, fraction)
    assert cells is not None and len(cells) == 2**factors // fraction and (0,) * factors in cells
    assert resolution(cells, factors) == best
    assert {sum(cell[factor] for cell in cells) for factor in range(factors)} == {len(cells) // 2}


@pytest.mark.parametrize(("factors", "fraction"), [(0, 2), (1, 2), (2, 2), (2, 8), (4, 4), (8, 64), (8, 1 << 20)])
def test_fractions_that_cannot_tell_factors_apart_are_none(factors: int, fraction: int) -> None:
    assert regular_fraction(factors, fraction) is None


@pytest.mark.parametrize("use", ["cyclictest", "perf-sched-pipe"])
def test_a_list_of_loads_is_a_matrix_for_every_benchmark(use: str) -> None:
    pair = '[[contender]]\nkernel = "a"\n[[contender]]\nkernel = "b"\n'
    found = study(f'{HEAD}{pair}[[benchmark]]\nuse = "{use}"\nload = ["idle", "hackbench"]\n')
    loads = [step.load or step.parameters.get("load", "idle") for step in found.steps]
    assert loads == ["idle", "hackbench"] and len({step.label for step in found.steps}) == 2


def factors(count: int) -> str:
    return "".join(factor(f"f{n}", f'{{ a = {{}}, b = {{ cmdline = "b{n}" }} }}') for n in range(count))


FORTY = factors(40)
MANY = ", ".join(map(str, range(1, 400)))
NAMES = ", ".join(f'"{number}"' for number in range(1, 400))
STEPS = "".join(factor(f"s{n}", '{ a = { command = "a" }, b = { command = "b" } }') for n in range(17))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (FORTY, "cells are allowed"),
        (factors(1040), r"made.toml: the factors make more than 2\^64 cells"),
        (f"{FORTY}[design]\nfraction = {2**40}\n", "made.toml: the factors make 2,199,023,255,552 combinations"),
        (f'[[benchmark]]\nuse = "hackbench"\ngroups = [{MANY}]\nloops = [{MANY}]\nfds = [{MANY}]\n',
         r"made.toml: benchmark\[#2\]: the lists of groups, fds, loops make 63,521,199 combinations"),
        (STEPS, r"made.toml: benchmark\[#1\]: the factors make 131,072 combinations"),
        (f"[[contender]]\nkernel = [{NAMES}]\nscheduler = [{NAMES}]\ncmdline = [{NAMES}]\n",
         r"made.toml: contender\[#3\]: the lists of kernel, scheduler, cmdline make 63,521,199 combinations"),
    ],
)  # fmt: skip
def test_combinations_are_counted_before_they_are_made(more: str, why: str) -> None:
    """Else a short file takes all memory."""
    with pytest.raises(InputError, match=why) as caught:
        study(HEAD + '[[contender]]\nkernel = "a"\n[[contender]]\nkernel = "b"\n' + JOB + COMMAND + more)
    assert "fraction" not in caught.value.remedy, "a fraction of so many would be refused, too"
