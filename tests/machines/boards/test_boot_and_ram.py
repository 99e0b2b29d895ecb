"""`kduel report --boot` and `kduel sizes --smallest-ram`: what they say, and that the search finds the edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kduel.analysis.boot import BootTimelines, as_text, cells
from kduel.analysis.boot import row as table_row
from kduel.benchmarks.support.bootlog import Timeline, console_lines, timeline
from kduel.cli.report import boot as boot_command
from kduel.cli.sizes import smallest_ram as ram_command
from kduel.core.errors import HostError, InputError, NotMeasuredError
from kduel.core.experiment import Contender
from kduel.guest.size import mebibytes
from kduel.kernels import Kernel
from kduel.machines import Arm, Outcome, Trial
from kduel.machines.guests.judged import QemuSettings
from kduel.machines.qemu import QemuMachine
from kduel.run.smallest_ram import find_smallest_ram

LOGS = Path(__file__).parent / "logs"


def told(name: str, log: str, calls: dict[str, float] | None = None) -> BootTimelines:
    text = (LOGS / f"{log}.log").read_text()
    return BootTimelines(name=name, timelines=[timeline(console_lines(text))], initcalls=[calls] if calls else [])


def row(text: str, head: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(head))[len(head) :].split()


def test_stages_and_what_they_differ_by() -> None:
    text = as_text([told("old", "x86_64-6.1"), told("new", "x86_64-6.12")])
    old, new = (
        timeline(console_lines((LOGS / f"x86_64-{version}.log").read_text())).stages() for version in ("6.1", "6.12")
    )
    cells = row(text, "kernel (until 'Freeing unused kernel')")
    assert [float(cell) for cell in cells[:3]] == pytest.approx(
        [old["kernel"], new["kernel"], new["kernel"] - old["kernel"]], abs=0.0006
    )
    assert cells[3] == f"{100 * (new['kernel'] / old['kernel'] - 1):+.0f}"
    assert [float(cell) for cell in row(text, "all stages")[:2]] == [11.574, 15.661]
    assert "initcall_debug log_buf_len=4M" in text


def test_initcalls_slowest_and_most_different() -> None:
    old = {"slow_init": 900_000.0, "same_init": 5_000.0, "gone_init": 400_000.0}
    new = {"slow_init": 910_000.0, "same_init": 5_000.0, "grown_init": 300_000.0}
    text = as_text([told("old", "x86_64-6.1", old), told("new", "x86_64-6.12", new)], limit=2)
    slowest, _, differing = text.partition("largest differences")
    assert slowest.index("slow_init") < slowest.index("gone_init") and "grown_init" not in slowest
    assert "gone_init" in differing and "grown_init" in differing and "slow_init" not in differing
    assert row(text, "all initcalls of a boot, ms")[:3] == ["1305.000", "1215.000", "−90.000"]
    half = as_text([told("old", "x86_64-6.1", old), told("new", "x86_64-6.12")])
    assert "new: What the kernel itself did is not in the log" in half


def test_several_boots_have_a_range_and_their_own_sums() -> None:
    """Medians alone hid that boots differed by half, and the sum of medians was no boot's."""
    lines = [Timeline(moments={"begin": 0.0, "version": seconds}) for seconds in (1.0, 1.5, 4.0)]
    calls = [{"a_init": 1000.0, "b_init": 9000.0}, {"a_init": 2000.0, "b_init": 1000.0}, {"b_init": 2000.0}]
    one, other = (BootTimelines(name=name, timelines=lines, initcalls=calls) for name in ("old", "new"))
    text = as_text([one, other])
    assert row(text, "load (until 'Linux version')")[:4] == ["1.500", "(1.000–4.000)"] * 2
    assert row(text, "all initcalls of a boot, ms")[:2] == ["3.000", "(2.000–10.000)"]
    assert row(text, "a_init")[:2] == ["1.500", "(1.000–2.000)"]


@pytest.mark.parametrize(("kind", "said"), [("icount", "this virtual time"), ("qemu", "Trials ran in an emulator")])
def test_times_that_are_not_those_of_hardware_are_told(unpack: Any, kind: str, said: str) -> None:
    done = CliRunner().invoke(boot_command, [str(unpack(kind))], catch_exceptions=False)
    assert said in done.output.partition("Boots by the host's clock")[0], done.output


def test_a_late_console_is_told() -> None:
    late = Timeline(moments={"begin": 0.0, "version": 1.0}, late=0.45)
    assert "0.45 s late by the kernel's clock" in as_text([BootTimelines(name="old", timelines=[late], initcalls=[])])


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run of KDuel"):
        CliRunner().invoke(boot_command, [str(tmp_path)], catch_exceptions=False)
    with pytest.raises(InputError, match="cannot be changed from boot to boot"):
        CliRunner().invoke(ram_command, ["host", "--machine", "ssh:somewhere"], catch_exceptions=False)


class Edge(QemuMachine):
    """Boots from so many MiB on: the search alone is what is tested here."""

    def __init__(self, memory: int, needs: int) -> None:
        self.settings = QemuSettings(memory=f"{memory}M")
        self.needs = needs
        self.starts = 0
        self.tried: list[int] = []

    def boot(self, trial: Trial) -> Outcome:
        mib = mebibytes(self.settings.memory, "memory")
        self.tried.append(mib)
        if mib < self.starts:
            raise HostError("QEMU does not start: no place for the RAM disk\nmore", "Check it.")
        return Outcome(void="" if mib >= self.needs else "hang", message="nothing", timings={"ready": 1.0})


ARM = Arm(Contender(kernel="k", name="k"), Kernel(spec="k", release="6.1", image=Path("/none"), sha256="0" * 64))


@pytest.mark.slow
@given(st.integers(2, 2048), st.data())
def test_the_search_finds_the_edge(memory: int, data: Any) -> None:
    needs = data.draw(st.integers(1, memory))
    step = data.draw(st.integers(1, max(1, memory - 1)))
    machine = Edge(memory, needs)
    found = find_smallest_ram(machine, ARM, step=step, watch=lambda *_: None)
    assert found.not_in < needs <= found.boots_in <= found.not_in + step
    assert len(machine.tried) == len(set(machine.tried)) == found.boots
    assert machine.settings.memory == f"{memory}M"


def test_ram_that_the_board_cannot_have_is_an_edge_too_and_told() -> None:
    machine = Edge(256, 1)
    machine.starts = 128
    found = find_smallest_ram(machine, ARM, step=2, watch=lambda *_: None)
    assert (found.boots_in, found.why_not) == (128, "no-start: QEMU does not start: no place for the RAM disk")


def test_a_kernel_that_boots_in_no_ram_of_the_machine_is_told() -> None:
    with pytest.raises(NotMeasuredError, match=r"k does not boot in 64 MiB: hang(?s:.*)memory=1G"):
        find_smallest_ram(Edge(64, 65), ARM, step=2, watch=lambda *_: None)
    with pytest.raises(InputError, match="no smaller than"):
        find_smallest_ram(Edge(64, 1), ARM, step=64, watch=lambda *_: None)


def test_a_number_with_a_long_range_is_not_cut() -> None:
    """Of 12,345.678 ms a digit was missing at the end of the range."""
    (shown,) = cells([[1234.567, 1234.5, 12345.678]])
    assert table_row("all", [shown], 10).endswith("1234.567 (1234.500–12345.678)")
