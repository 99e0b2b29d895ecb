"""The emulated ARM board, with Debian's kernel: measured, silent, panicking, and with too little RAM."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kduel.benchmarks import Benchmark, ParseError, benchmark
from kduel.core.cache import Cache
from kduel.core.experiment import Contender, Settle
from kduel.core.progress import Progress
from kduel.guest.environment import read_environment
from kduel.guest.script import ScriptStep, compose
from kduel.kernels import Kernel, resolve
from kduel.machines import Arm, Needs, Outcome, Trial
from kduel.machines.board import PLUGIN, BoardMachine
from kduel.run.smallest_ram import find_smallest_ram
from kduel.store.collect import parse_step

pytestmark = [pytest.mark.guest, pytest.mark.network]
SPEC = "debian:6.1-arm64"
STEPS: dict[str, dict[str, object]] = {
    "boot-timeline": {},
    "kbench": {"operation": "null-call", "time": 0.1},
    "memory": {},
}


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return resolve(SPEC, cache=Cache(), progress=Progress())


@pytest.fixture(scope="module")
def machine(kernel: Kernel) -> BoardMachine:
    settings = PLUGIN.read_settings({"place": "arm64-virt", "memory": "256M"})
    needs = Needs(programs=("kbench", "kmem"))
    made = PLUGIN.prepare(settings, [arm(kernel)], needs, cache=Cache(), progress=Progress())
    assert isinstance(made, BoardMachine)
    return made


def arm(kernel: Kernel, cmdline: str = "") -> Arm:
    return Arm(Contender(kernel=SPEC, name="arm", cmdline=cmdline), kernel)


def boot(machine: BoardMachine, kernel: Kernel, into: Path, names: list[str], cmdline: str = "") -> SimpleNamespace:
    chosen: list[tuple[Benchmark, object]] = []
    parts = []
    for name in names:
        what = benchmark(name)
        parameters = what.read_parameters(STEPS[name])
        chosen.append((what, parameters))
        parts.append(ScriptStep(label=name, script=what.script(parameters), timeout=300))
    script = compose(parts, settle=Settle(mode="fixed", seconds=0))
    (into / "guest.sh").write_text(script)
    trial = Trial(id="t", arm=arm(kernel, cmdline), script=script, deadline=600, into=into)
    outcome: Outcome = machine.boot(trial)
    return SimpleNamespace(
        outcome=outcome,
        step=lambda n: parse_step(into / f"{n + 1:02d}-{names[n]}", *chosen[n]),
    )


def test_a_board_is_measured(machine: BoardMachine, kernel: Kernel, tmp_path: Path) -> None:
    done = boot(machine, kernel, tmp_path, ["boot-timeline", "kbench", "memory"])
    assert done.outcome.void == "", done.outcome.message
    stages = done.step(0)
    assert stages["total"] == pytest.approx(sum(stages.values()) - stages["total"], abs=1e-6)
    assert done.step(1)["time"] > 0
    memory = done.step(2)
    # kmem checks itself against the kernel's account of whom it killed; here, against what the kernel had.
    assert 0.7 * memory["total"] < memory["allocatable"] < memory["total"] < 256 * 1024
    assert (tmp_path / "03-memory" / "killed").read_text().count("(kmem)") == 1
    environment = read_environment(tmp_path / "environment")
    assert (environment["architecture"], environment["release"]) == ("aarch64", kernel.release)
    assert environment["clocksource"] == "arch_sys_counter" and environment["config"]["ARM64"] == "y"
    assert "qemu-system-aarch64" in (tmp_path / "rerun.sh").read_text()


def test_a_kernel_that_prints_no_mark_fails_that_step_alone(
    machine: BoardMachine, kernel: Kernel, tmp_path: Path
) -> None:
    done = boot(machine, kernel, tmp_path, ["boot-timeline", "kbench"], cmdline="quiet")
    assert done.outcome.void == "", done.outcome.message
    with pytest.raises(ParseError, match="the console has no line 'Linux version"):
        done.step(0)
    assert done.step(1)["time"] > 0


def test_a_kernel_that_does_not_come_up_is_told_with_the_decisive_lines(
    machine: BoardMachine, kernel: Kernel, tmp_path: Path
) -> None:
    done = boot(machine, kernel, tmp_path, ["kbench"], cmdline="rdinit=/none init=/none")
    assert done.outcome.void == "panic"
    assert "Kernel panic - not syncing: VFS: Unable to mount root fs" in done.outcome.message


def test_the_smallest_ram(kernel: Kernel, machine: BoardMachine) -> None:
    before = machine.settings
    seen: list[tuple[int, str]] = []
    found = find_smallest_ram(
        machine, arm(kernel), step=128, watch=lambda mib, outcome, _: seen.append((mib, outcome.void))
    )
    assert [mib for mib, _ in seen] == [256, 128]
    assert found.boots_in == (128 if not seen[1][1] else 256) and found.boots == 2
    assert machine.settings == before
