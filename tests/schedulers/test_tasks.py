"""Workloads given as data (ktasks and the benchmark `tasks`), run here on this host: what the steps mean, and what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.tasks import MIXES
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.guest import programs

TASKS = benchmark("tasks")


def ktasks(*words: str, status: int = 0) -> dict[str, Any]:
    """ktasks' document; its tasks by name."""
    command = [programs.build("ktasks", "x86_64", cache=Cache()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == status, done.stderr
    if status:
        return {"stderr": done.stderr}
    return {task["name"]: task for task in json.loads(done.stdout)["tasks"]}


def test_each_period_is_begun_or_skipped_and_woken_tasks_answer_each() -> None:
    found = ktasks(
        "--time", "200", "task=beat", "count=2", "period=10000000", "wake=1:3", "wait=3", "task=pool", "count=3", "wait=1",
        "run=100", "lock=0", "run=100", "unlock=0", "wake=0",
    )  # fmt: skip
    beat, pool = found["beat"], found["pool"]
    begun = 40 - beat["skipped"]
    assert beat["latency_ns"]["n"] == beat["response_ns"]["n"] == 40
    # What a beat wakes after the time has ended is not counted: on a busy host that of the last ones.
    assert 3 * (begun - 4) <= pool["latency_ns"]["n"] == pool["response_ns"]["n"] <= 3 * begun
    assert pool["latency_ns"]["min"] > 0 and 600 * (begun - 4) <= pool["points"] <= 600 * begun
    assert beat["response_ns"]["min"] > pool["response_ns"]["min"]


def test_a_period_that_cannot_be_kept_is_late_or_skipped() -> None:
    """Each of its runs takes three periods at least: it sleeps that long."""
    beat = ktasks("--time", "100", "task=beat", "period=1000000", "sleep=3000000")["beat"]
    assert beat["latency_ns"]["n"] == beat["late"] == 100 and beat["skipped"] >= 66
    # A skipped one has begun a period late at least, and one that was begun is done after three.
    assert beat["response_ns"]["min"] >= 1_000_000 and beat["response_ns"]["max"] >= 3_000_000
    assert beat["latency_ns"]["max"] >= 2_000_000


def test_a_lock_is_held_by_one_process_at_a_time() -> None:
    """Four processes that sleep with the lock have it one after the other."""
    words = ["task=holder", "count=4", "period=50000000", "lock=3", "sleep=5000000", "unlock=3"]
    holder = ktasks("--time", "50", *words)["holder"]
    # They begin 12.5 ms apart, and in a time of 5 ms each none waits; all at once the last one waits for three.
    together = ktasks(
        "--time", "50", "task=go", "period=50000000", "wake=1:4", "task=holder", "count=4", "wait=1", *words[3:]
    )
    assert holder["response_ns"]["n"] == together["holder"]["response_ns"]["n"] == 4
    assert together["holder"]["response_ns"]["max"] >= 20_000_000


def test_no_wake_up_is_lost_between_two_wakers_and_two_takers(tmp_path: Path, need: Callable[..., str]) -> None:
    """The first waker is late: the taker that the second one has woken finds nothing yet, and sleeps again."""
    words = ["-std=gnu11", "-O1", "-fwrapv", f"-I{programs.SOURCES}", "-o", tmp_path / "taken"]
    subprocess.run([need("gcc"), *words, Path(__file__).with_name("taken.c")], check=True)
    done = subprocess.run([tmp_path / "taken"], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "2\n"


def test_forked_work_counts_and_switches_are_counted() -> None:
    found = ktasks("--time", "100", "task=jobs", "count=2", "fork=20000", "task=still", "sleep=1000000")
    assert found["jobs"]["points"] > 0 and "latency_ns" not in found["jobs"]
    assert found["still"]["points"] == 0 and found["still"]["voluntary"] > 0


def test_what_is_begun_and_does_not_end_is_an_error() -> None:
    told = ktasks("--time", "20", "task=stuck", "period=5000000", "wait=1", status=124)["stderr"]
    assert "process 1 of task stuck did not end what it had begun" in told


def test_a_cpu_that_is_too_slow_for_the_work_is_refused_with_its_speed() -> None:
    words = ["--time", "20", "task=beat", "period=5000000", "run=100"]
    told = ktasks("--speed", "100000000", *words, status=2)["stderr"]
    (speed,) = re.findall(r"Give speed = ([0-9.e+]+)$", told.strip())
    assert 0.1 < float(speed) < 25_000
    # So given, the same CPU is fast enough, even if it is three times as slow by then.
    assert ktasks("--speed", str(max(1, round(1000 * float(speed)))), *words)["beat"]["late"] <= 4


@pytest.mark.parametrize("mix", sorted(path.stem for path in MIXES.glob("*.toml")))
def test_mixes_give_all_their_metrics_and_none_from_garbled_output(mix: str, tmp_path: Path) -> None:
    table = {"mix": mix, "time": 2, "speed": 20.0}
    parameters = TASKS.read_parameters(table)
    for name in TASKS.programs:
        (tmp_path / name).symlink_to(programs.build(name, "x86_64", cache=Cache()))
    place = os.environ | {"KDUEL_PROGRAMS": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-ec", TASKS.script(parameters)], env=place, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    values = TASKS.parse(Raw(done.stdout, "", 0), parameters)
    needed = {metric.name for metric in TASKS.metrics(parameters) if not metric.optional}
    assert needed <= set(values) and {"sound-latency-p99", "sound-late"} <= needed
    for pattern, replacement in (
        (r'"late":\d+', '"late":9999'),
        (r'"skipped":\d+,"late":\d+', '"skipped":3,"late":2'),
        (r'"n":\d+', '"n":3'),
        (r'"time_ms":\d+', '"time_ms":3'),
        (r'"name":"sound"', '"name":"noise"'),
        (r'"p50":\d+', '"p50":1'),
    ):
        garbled = re.sub(pattern, replacement, done.stdout, count=1)
        assert garbled != done.stdout
        with pytest.raises(ParseError):
            TASKS.parse(Raw(garbled, "", 0), parameters)
    with pytest.raises(ParseError):
        TASKS.parse(Raw(done.stdout[: len(done.stdout) // 2], "", 0), parameters)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "give either a mix"),
        ({"mix": "audio", "tasks": {"a": {"steps": ["run 1ms"]}}}, "give either a mix"),
        ({"tasks": {"a": {"steps": ["walk 1ms"]}}}, "task a, step 'walk 1ms' is none"),
        ({"tasks": {"a": {"steps": ["run 1"]}}}, "step 'run 1' is none"),
        ({"tasks": {"a": {"steps": ["run 1ms", "period 1ms"]}}}, "a period is the first step"),
        ({"tasks": {"a": {"steps": ["period 5us"]}}}, "takes 100us at least"),
        ({"tasks": {"a": {"steps": ["wait"]}}}, "no task wakes a"),
        ({"tasks": {"a": {"steps": ["run 1ms", "wake b"]}}}, "there is no such task; there are a"),
        ({"tasks": {"a": {"steps": ["lock x", "run 1ms"]}}}, "does not unlock x"),
        ({"tasks": {"a": {"steps": ["run 1ms", "unlock x"]}}}, "it does not have the lock"),
        ({"tasks": {"a": {"steps": ["lock x", "lock x", "run 1ms"]}}}, "it has the lock"),
        ({"tasks": {"a": {"steps": ["wake a"]}}}, "neither works nor sleeps"),
        ({"tasks": {"a": {"steps": ["run 1ms"], "count": 257}}}, "count"),
        (
            {"tasks": {"a": {"steps": ["run 1ms"], "policy": "fast"}}},
            "task a, policy 'fast' is none: there are other, ",
        ),
        ({"tasks": {"A B": {"steps": ["run 1ms"]}}}, "a task cannot be called 'A B': give a letter"),
        ({"tasks": {"longer-than-11": {"steps": ["run 1ms"]}}}, "a task cannot be called 'longer-than-11'"),
        ({"tasks": {"a": {"steps": ["run 1ms"], "loops": 3}}}, "loops"),
    ],
)
def test_tasks_that_cannot_be_are_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        TASKS.read_parameters(table)
    assert message in str(refused.value)


def test_labels_differ_where_the_work_does() -> None:
    def label(**table: Any) -> str:
        found: str = TASKS.label(TASKS.read_parameters(table))
        return found

    own = {"a": {"steps": ["run 1ms"]}}
    assert label(mix="audio") == "tasks-audio"
    assert label(mix="game", speed=9.0, conditions=3, time=1) == "tasks-game-1s-speed-9-3c"
    assert re.fullmatch("tasks-a-[0-9a-f]{6}", label(tasks=own))
    assert label(tasks=own) != label(tasks={"a": {"steps": ["run 2ms"]}})


def test_the_contenders_policy_is_for_tasks_without_their_own() -> None:
    own = {"a": {"steps": ["run 1ms"], "count": 3}, "b": {"steps": ["run 1ms"], "policy": "fifo:5"}}
    own["c"] = {"steps": ["run 1ms"], "policy": "batch nice:5"}  # as a contender has it
    parameters = TASKS.read_parameters({"tasks": own})
    assert TASKS.policy_tasks(parameters) == 3 and " policy=fifo:5 run=" in TASKS.script(parameters)
    assert " policy=batch+nice:5 run=" in TASKS.script(parameters)
