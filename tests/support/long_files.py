"""Which files of tests take long: those begin first, and where only a part of the tests is asked for, parts are as long."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).parents[1]
SECONDS = {
    "project/test_readme.py": 500,
    "run/exact/test_exact_guest.py": 450,
    "machines/remote/test_remote_short.py": 413,
    "run/exact/test_sharing_guest.py": 270,
    "run/fleet/test_fleet_slurm.py": 260,
    "schedulers/test_guest.py": 220,
    "guest/test_hostile_guest.py": 200,
    "machines/test_linked_guests.py": 200,
    "faults/test_other_faults.py": 180,
    "benchmarks/test_benchmark_guest.py": 180,
    "run/fleet/test_fleet_icount.py": 165,
    "run/exact/test_planted_guest.py": 165,
    "faults/test_disk_faults.py": 160,
    "faults/test_kills.py": 150,
    "machines/test_machine_qemu.py": 130,
    "run/exact/test_scheduling_guest.py": 130,
    "machines/boards/test_board_guest.py": 120,
    "run/fleet/test_fleet_slurm_nodes.py": 110,
    "run/exact/test_lines_guest.py": 110,
    "guest/test_guest_programs_built.py": 110,
    "machines/boards/test_labgrid.py": 90,
    "guest/test_guests_in_turns.py": 90,
    "cli/test_terminal.py": 90,
    "guest/test_guest_launch.py": 80,
    "run/exact/test_subsystems_guest.py": 70,
    "run/exact/test_old_kernels.py": 70,
    "machines/test_resume_guest.py": 70,
    "benchmarks/test_schedstat_guest.py": 67,
    "machines/test_bundle_guest.py": 65,
    "machines/test_turns_guest.py": 50,
    "machines/boards/test_roots.py": 40,
    "machines/boards/test_fastboot.py": 40,
    "schedulers/test_accounts.py": 40,
    "project/test_ci_script.py": 30,
}
"""About as long as each takes on one of three workers on two idle cores."""
OTHER_TEST = 0.3
"""Seconds of a test of another file."""


def estimate_seconds(path: Path, tests: int) -> float:
    """How long so many tests of a file take, about."""
    known = path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""
    return SECONDS.get(known, OTHER_TEST * tests)


def files_of_part(seconds: Mapping[Path, float], part: str) -> set[Path]:
    """The files of one part, such as 1/2: each file is in one of them, and all take about as long."""
    number, parts = (int(word) for word in part.split("/"))
    loads, chosen = [0.0] * parts, set()
    for path in sorted(seconds, key=lambda path: (-seconds[path], path)):
        lightest = loads.index(min(loads))
        loads[lightest] += seconds[path]
        if lightest == number - 1:
            chosen.add(path)
    return chosen
