"""Exact CPUs of one speed in real guests: the same speed alone and together, the same trial every time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from counting import ready_of, trial_of

from kduel.benchmarks import Raw, benchmark
from kduel.core.results import Results
from kduel.guest.environment import read_environment
from kduel.machines.guests.turns import TURNS
from kduel.run.exact.measure import exact_machine
from kduel.run.exact.subject import Subject
from kduel.run.exact.waits import find_slowest
from kduel.store.rundir import RESULTS

pytestmark = [pytest.mark.guest, pytest.mark.network, pytest.mark.usefixtures("shared_cache")]

STUDY = """
[study]
name = "turns-test"
[machine]
kind = "icount"
cpus = 2
scheduling = true
[settle]
mode = "fixed"
seconds = 0.1
[blocks]
fixed = 1
[[benchmark]]
use = "kload"
processes = [1, 2]
iterations = 20_000
primary = ["wall"]
[[contender]]
kernel = "debian:6.12-cloud"
[[contender]]
kernel = "debian:6.12-cloud"
name = "again"
"""


def test_cpus_have_one_speed_whatever_their_number_is(tmp_path: Path) -> None:
    """A process of fixed work takes as long on four CPUs with two caches as on two CPUs, whose clock has longer steps. In the second
    block CPUs come online in descending order."""
    head, *_ = (
        STUDY.replace("[1, 2]", "1")
        .replace("cpus = 2\n", 'online = "both"\n')
        .replace("fixed = 1", "fixed = 2")
        .partition("[[contender]]")
    )
    own = '[[contender]]\nkernel = "debian:6.12-cloud"\nmachine = {}\n'
    ready = ready_of(head + own.format("{ cpus = 2 }") + own.format('{ topology = "two-llc" }'))
    machine, durations = exact_machine(ready), []
    for block, (arm, cpus, order) in enumerate(zip(ready.arms, (2, 4), ("1", "321"), strict=True), 1):
        trial = msgspec.structs.replace(trial_of(ready, tmp_path / str(cpus), deadline=900), arm=arm, block=block)
        outcome = machine.boot_once(trial)
        assert not outcome.void, outcome.message
        console = (trial.into / "console.log").read_text(errors="replace")
        assert "".join(re.findall(r"Booting Node \d+ Processor (\d+)", console)) == order
        seen = read_environment(tmp_path / str(cpus) / "environment")
        assert len(json.loads((trial.into / TURNS).read_text())["cpus"]) == seen["cpus"] == cpus
        ((start, end, *_),) = json.loads((trial.into / "01-kload-cpu-1-20000i/stdout").read_text())["each"]["rows"]
        durations.append(end - start)
    assert seen["topology"]["llc"] == ["0-1", "2-3"] and seen["topology"]["domains"][0] == "0: 2 4"
    assert abs(durations[1] - durations[0]) < 0.1 * durations[0]
    assert machine.facts["resolution_ns"] == 40_000 and "executes one in 4 ns" in machine.facts["clock"]


def test_eight_busy_cpus_wait_for_the_one_that_timers_pass_over(tmp_path: Path) -> None:
    """Where a timer is due QEMU ends a turn early, and begins with the first CPU again: some fall behind."""
    own = 'use = "wakeup"\nworkers = 8\nrate = 1000\nrequests = 100\nwork = 200\nhogs = 8\nconditions = 1\n'
    study = STUDY.replace("cpus = 2", "cpus = 8")
    ready = ready_of(f"{study.partition('use =')[0]}{own}[[contender]]{STUDY.partition('[[contender]]')[2]}")
    trial = trial_of(ready, tmp_path / "trial", deadline=900)
    outcome = exact_machine(ready).boot_once(trial)
    assert not outcome.void, outcome.message
    account = json.loads((trial.into / TURNS).read_text())
    executed = [instructions for _, instructions in account["cpus"]]
    assert outcome.facts["resolution_ns"] == 8 * account["behind"] > 8 * 160_000
    assert account["waited"] > 0 and max(executed) - min(executed) < 18 * 10_000


def test_a_workload_given_as_data_is_the_same_in_each_boot(tmp_path: Path) -> None:
    """A second boot proves it. Half of the two CPUs' time is the load's at least, and no period is lost. A third one tells what slow
    wake-ups waited for: page faults of forked jobs put the plug-in's time ahead by thousands of microseconds."""
    own = """
use = "tasks"
time = 1
speed = 18
conditions = 1
[benchmark.tasks.sound]
steps = ["period 10ms", "run 200us", "lock graph", "wake client", "unlock graph", "wait"]
[benchmark.tasks.client]
steps = ["wait", "lock graph", "run 100us", "unlock graph", "wake sound"]
[benchmark.tasks.jobs]
count = 3
steps = ["fork 8ms", "sleep 200us"]
"""
    ready = ready_of(f"{STUDY.partition('use =')[0]}{own}[[contender]]{STUDY.partition('[[contender]]')[2]}")
    outcome = exact_machine(ready).boot(trial_of(ready, tmp_path / "trial", deadline=900))
    assert not outcome.void, outcome.message
    assert "bit for bit" in outcome.facts["proof"]
    (step,) = ready.study.steps
    chosen = benchmark("tasks")
    values = chosen.parse(Raw.read(tmp_path / "trial" / f"01-{step.label}"), chosen.read_parameters(step.parameters))
    # 18 points in a microsecond of each of two CPUs.
    assert 18 < values["jobs-rate"] < 36 and values["sound-latency-max"] < 1e6
    assert values["migrations"] > 0 and values["involuntary_switches"] > 0
    found = find_slowest(exact_machine(ready), Subject(ready=ready, names=("", "")), ready.study.names[0], 0)
    assert len(found.waits) == 5 and found.waits[0].waited > 10 * found.resolution
    for wait in found.waits:
        rows = wait.by_task()
        assert wait.worker.startswith(("sound ", "client ")) and rows[0][0].startswith("jobs ")
        assert abs(wait.waited - sum(row[1] for row in rows)) < 2 * found.resolution


def test_the_tasks_that_a_slow_wake_up_waited_for_are_named() -> None:
    """A worker waits for one of two hogs, which have both CPUs."""
    benchmark = """
use = "wakeup"
rate = 500
requests = 100
work = 200
hogs = 2
"""
    ready = ready_of(f"{STUDY.partition('use =')[0]}{benchmark}[[contender]]{STUDY.partition('[[contender]]')[2]}")
    found = find_slowest(exact_machine(ready), Subject(ready=ready, names=("", "")), ready.study.names[0], 0)
    assert found.cpus == 2 and len(found.waits) == 5
    # As far as a CPU was behind in this boot, and two turns at least.
    assert 2 * 10_000 <= found.resolution < 2 * 17 * 10_000
    for wait in found.waits:
        rows = wait.by_task()
        assert wait.worker in ("worker 1", "worker 2") and rows
        # All of the time is some task's, but for the worker's own way to its first instruction.
        assert wait.waited - 2 * found.resolution < sum(row[1] for row in rows) <= wait.waited
    slowest = found.waits[0]
    assert slowest.waited > 10 * found.resolution and slowest.by_task()[0][0] in ("hog 1", "hog 2")
    assert {run.name for run in slowest.runs if run.cpu != slowest.cpu} & {"hog 1", "hog 2"}


def test_a_cpu_is_as_fast_alone_as_beside_others_and_a_run_ends_in_verdicts(
    tmp_path: Path, kduel: Callable[..., Any]
) -> None:
    """Where an idle CPU gives its turns away, a process alone takes half of the time."""
    (tmp_path / "study.toml").write_text(STUDY)
    done = kduel("run", tmp_path / "study.toml", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode((tmp_path / "run" / RESULTS).read_bytes(), type=Results)
    assert {metric.verdict for metric in found.metrics if metric.role == "primary"} == {"equal"}
    trial, _ = sorted((tmp_path / "run/trials").iterdir())
    assert "bit for bit" in json.loads((trial / "trial.json").read_text())["facts"]["proof"]
    alone, both = (
        json.loads((trial / step / "stdout").read_text())["each"]["rows"]
        for step in ("01-kload-cpu-1-20000i", "02-kload-cpu-2-20000i")
    )
    (one,), (first, second) = ([end - start for start, end, *_ in rows] for rows in (alone, both))
    assert abs(first - one) < 0.1 * one and abs(second - one) < 0.1 * one
    cpus = json.loads((trial / TURNS).read_text())["cpus"]
    assert len(cpus) == 2 and abs(cpus[0][1] - cpus[1][1]) < 40_000 < cpus[0][1] / 1000
    done = kduel("explain", tmp_path / "run", "--benchmark", "kload-cpu-1-20000i")
    assert done.returncode == 2 and "only wake-ups can be explained" in done.stderr
