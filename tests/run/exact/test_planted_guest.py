"""Planted changes are found: the right function, to the instruction, in the right class.

One kernel of Debian's, and the same with five changes planted; another with one of its modules, and with that module changed:
four boots. plants.py plants. (A change that is a cache line more is planted in test_exact_guest.py.)
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from counting import QUICK, count_both, ready_of, ready_to_count
from plants import Kernel, slow_module, unsigned

from kduel.core.cache import Cache
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.explain.compare import Explanation
from kduel.explain.profile import IDLE, INTERRUPT, OPERATION
from kduel.kernels import resolve
from kduel.kernels.files.image import uncompressed_kernel
from kduel.kernels.files.modules import module_bytes, module_files
from kduel.machines import icount
from kduel.machines.qemu import QemuMachine
from kduel.run.exact.measure import CountedTrial, annotate_function, explain_step
from kduel.run.prepare import Ready, make_lock
from kduel.study.contenders import tables_of

pytestmark = [pytest.mark.guest, pytest.mark.network]

KERNEL = "debian:6.1-cloud"
MODULAR = "debian:6.12-cloud"
"""Its modules' functions begin with an endbr64 where their address is taken, which those of 6.1 do not."""
MODULE = "binfmt_misc"
"""Is asked about every program that is executed, before the kernel's own formats."""
MODULE_HEAD = b"\xe8\0\0\0\0\x41\x57\x41\x56\x41\x55\x41\x54\x55\x53\x48\x89\xfb\x48\x83\xec\x08\x65"
"""How load_misc_binary goes on behind its endbr64."""
TIMED = """
[study]
name = "modules"
[machine]
kind = "qemu"
accel = "tcg"
[[benchmark]]
use = "kbench"
operation = "null-call"
"""


class Plant(NamedTuple):
    """Instructions more on each execution of a function."""

    function: str
    more: int
    operation: str
    """The one whose count shows what is executed, and which executes it `times` times."""
    times: int
    context: str = OPERATION


WRITE = Plant("pipe_write", 21, "pipe", 2)
PLANTS = (
    WRITE,
    Plant("try_to_wake_up", 16, "pipe", 2),
    # In vtime_task_switch, which is inlined there.
    Plant("finish_task_switch", 13, "pipe", 2),
    Plant("do_user_addr_fault", 6, "fault-anonymous", 1),
    Plant("__sysvec_apic_timer_interrupt", 301, "timer", 1, INTERRUPT),
)
DISPLACED = {WRITE: 3}
"""How many instructions moved to another place with those planted; else a `nop` went."""
# dequeue_task_fair has the last one inlined.
AVERAGES = {"__update_load_avg_se", "__update_load_avg_cfs_rq", "update_load_avg", "dequeue_task_fair"}
OPERATIONS = ("pipe", "fault-anonymous", "timer", "null-call")


class Both(NamedTuple):
    """A kernel counted as it is, and with what was planted."""

    ready: Ready
    counted: list[CountedTrial]
    written: dict[str, set[int]] = {}  # noqa: RUF012 - a NamedTuple's default
    """By function, the offsets at which the planted kernel differs."""

    def explanation(self, operation: str) -> Explanation:
        return explain_step(self.ready, self.counted, step_of(self.ready, operation))


def step_of(ready: Ready, operation: str) -> int:
    return next(at for at, step in enumerate(ready.study.steps) if step.parameters["operation"] == operation)


def contenders(kernels: dict[str, tuple[Path, Path]], cmdline: str = "") -> str:
    """The tables of kernels: images and modules by names."""
    return tables_of(
        [
            Contender(name=name, kernel=str(image), modules=str(modules), cmdline=cmdline)
            for name, (image, modules) in kernels.items()
        ]
    )


def counted(operations: tuple[str, ...], kernels: dict[str, tuple[Path, Path]], cmdline: str = "") -> Both:
    """Count operations in two kernels."""
    ready = ready_to_count(operations, contenders(kernels, cmdline))
    return Both(ready, count_both(ready))


def files_of(spec: str) -> tuple[Path, Path]:
    """A kernel's plain image and its modules."""
    kernel = resolve(spec, cache=Cache(), progress=Progress())
    image = uncompressed_kernel(kernel, Cache())
    assert image is not None and kernel.modules is not None
    return image, kernel.modules


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    image, modules = files_of(KERNEL)
    # Twice the same is counted once.
    before = counted(OPERATIONS, {"plain": (image, modules), "again": (image, modules)})
    plain = before.counted[0]
    made = Kernel(image.read_bytes(), (plain.directory / "trial" / "kallsyms").read_text())
    made.slow_pipe_write(WRITE.more)
    for plant in PLANTS[1:]:
        index = step_of(before.ready, plant.operation)
        _, executed = annotate_function(plain, index, before.ready.study.steps[index].label, plant.function)
        made.slow_branch(plant.function, plant.more, {place.offset for place in executed})
    planted = tmp_path_factory.mktemp("kernel") / "vmlinux"
    planted.write_bytes(made.elf)
    found = counted(OPERATIONS, {"plain": (image, modules), "planted": (planted, modules)})
    return found._replace(written=made.planted)


@pytest.fixture(scope="module")
def modular(tmp_path_factory: pytest.TempPathFactory) -> Both:
    image, modules = files_of(MODULAR)
    plain = unsigned(module_bytes(module_files(modules)[MODULE]))
    kernels = {}
    for name, module in (("plain", plain), ("planted", slow_module(plain, MODULE_HEAD))):
        place = tmp_path_factory.mktemp(name) / modules.name
        (place / "kernel").mkdir(parents=True)
        for listed in modules.glob("modules.*"):
            shutil.copy(listed, place)
        (place / "kernel" / f"{MODULE}.ko").write_bytes(module)
        kernels[name] = (image, place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(icount, "MODULES", (*icount.MODULES, MODULE))
        return counted(("fork-exec",), kernels, QUICK)


def differ(found: Explanation) -> list[tuple[str, str, int]]:
    """Context, function and instructions over all operations of what differs, the largest first."""
    return [(row.context, row.function, row.difference) for row in found.rows if row.difference]


def executed(arm: CountedTrial, ready: Ready, operation: str, plant: Plant) -> dict[int, int]:
    """Offset in a function to how often the instruction there was executed, over all operations."""
    index = step_of(ready, operation)
    _, found = annotate_function(arm, index, ready.study.steps[index].label, plant.function)
    return {one.offset: one.times for one in found}


def test_a_page_fault_that_takes_more_is_the_only_difference(both: Both) -> None:
    found = both.explanation("fault-anonymous")
    first, *rest = differ(found)
    assert first == (OPERATION, "do_user_addr_fault", 6 * found.operations)
    # Where a tick comes at another time, lists of free pages are refilled in other portions.
    assert {function for _, function, _ in rest} <= {"rmqueue_bulk", "__list_add_valid"}
    assert all(abs(difference) < found.operations for _, _, difference in rest)
    assert not differ(both.explanation("null-call"))


def test_a_timer_interrupt_that_takes_more_is_named_first_and_as_an_interrupt(both: Both) -> None:
    found = both.explanation("timer")
    once = found.operations
    # The timer wakes the process out of the idle loop; equal differences come in the order of the counts.
    assert differ(found)[0] == (INTERRUPT, "__sysvec_apic_timer_interrupt", 301 * once)
    assert sorted(differ(found)[1:4]) == [
        (IDLE, "finish_task_switch", 13 * once),
        (INTERRUPT, "try_to_wake_up", 16 * once),
        (OPERATION, "finish_task_switch", 13 * once),
    ]
    rest = differ(found)[4:]
    # Load averages decay with time, which is 343 instructions longer: a step of theirs falls on another side.
    assert {function for _, function, _ in rest} <= AVERAGES
    assert all(abs(difference) < once for _, _, difference in rest)


def test_in_a_round_trip_through_pipes_the_median_grows_by_all_that_was_planted(both: Both) -> None:
    more = sum(plant.more * plant.times for plant in PLANTS if plant.operation == "pipe")
    index = step_of(both.ready, "pipe")
    label = both.ready.study.steps[index].label
    one, other = ([line.median for line in arm.lines(index, label) if not line.situation] for arm in both.counted)
    assert [after - before for before, after in zip(one, other, strict=True)] == [more] * 2


@pytest.mark.parametrize(
    "plant", [plant for plant in PLANTS if plant.operation == "pipe"], ids=lambda plant: plant.function
)
def test_each_execution_takes_what_was_planted_in_its_function(both: Both, plant: Plant) -> None:
    """Whatever the number of executions: where ticks come at other times, the scheduler switches more or less often."""
    operations = both.explanation("pipe").operations
    places = both.written[plant.function]
    for arm, more in zip(both.counted, (0, plant.more), strict=True):
        times = executed(arm, both.ready, "pipe", plant)
        entries = times[min(places)]
        assert 0.7 * plant.times < entries / operations < 1.3 * plant.times
        there = sum(count for offset, count in times.items() if offset in places)
        assert there == entries * (DISPLACED.get(plant, 1) + more)


def test_a_module_that_takes_more_is_named_with_its_function(modular: Both) -> None:
    found = modular.explanation("fork-exec")
    # Not always first: what a tick 216 instructions later lets RCU free is allocated otherwise by some of the calls.
    assert (OPERATION, f"load_misc_binary [{MODULE}]", 3 * found.operations) in differ(found)
    assert [row for row in differ(found) if f"[{MODULE}]" in row[1]] == [
        row for row in differ(found) if row[2] == 3 * found.operations
    ]


def test_a_timed_machine_takes_the_modules_of_each_contender_too(tmp_path: Path) -> None:
    image, modules = files_of(MODULAR)
    other = tmp_path / modules.name
    shutil.copytree(modules, other)
    path = module_files(other)["overlay"]
    content = module_bytes(path)
    path.unlink()
    (path.parent / "overlay.ko").write_bytes(unsigned(content))
    ready = ready_of(TIMED + contenders({"one": (image, modules), "other": (image, other)}))
    assert isinstance(ready.machine, QemuMachine)
    first, second = (ready.machine.bases[arm.kernel.parts].archive.read_bytes() for arm in ready.arms)
    assert first != second
    one, other = make_lock(ready, 1, "test").kernels
    assert one.sha256 == other.sha256 and one.modules and other.modules and one.modules != other.modules
