"""The built-in suites: what they promise, and the published protocol that one of them repeats."""

from __future__ import annotations

from typing import Any

import pytest

from kduel.benchmarks import benchmark
from kduel.core.experiment import Step
from kduel.study.contenders import contender_tables
from kduel.study.file import StudyFile, parse_study, suite_text
from kduel.study.load import assemble
from kduel.study.steps import read_steps


def study(name: str) -> StudyFile:
    return parse_study(suite_text(name), name)


def plain_steps(name: str) -> list[Step]:
    return read_steps(study(name).benchmark, name)[0]


def steps(name: str) -> list[tuple[str, Any]]:
    return [
        (step.benchmark, benchmark(step.benchmark).read_parameters(step.parameters)) for step in plain_steps(name)
    ]


@pytest.mark.parametrize("name", ["quick", "generations"])
def test_a_suite_is_a_whole_study(name: str) -> None:
    found = study(name)
    assert found.study.name == name and found.study.title and found.study.about
    assert any(step.primary for step in plain_steps(name))


def test_quick_is_quick_and_divides_alpha_among_few() -> None:
    assert sum(benchmark(name).seconds(parameters) for name, parameters in steps("quick")) < 21
    assert 2 <= sum(len(step.primary) for step in plain_steps("quick")) <= 4
    text = suite_text("quick") + contender_tables(["debian:6.1", "debian:6.12"], numbered=False)
    timed = assemble(parse_study(text, "quick"), text, "quick")
    assert timed.blocks.max == 20 and timed.blocks.fixed is None


def test_primary_metrics_are_none_that_the_harness_fixes_and_no_maxima() -> None:
    for name in ("quick", "generations"):
        for step in plain_steps(name):
            chosen = benchmark(step.benchmark)
            for metric in chosen.metrics(chosen.read_parameters(step.parameters)):
                if metric.name in step.primary:
                    assert metric.fixed_at is None and metric.statistic != "max", (name, step.label, metric.name)


def test_generations_runs_the_published_commands() -> None:
    """Fig. 3 of the study, command by command."""
    found = study("generations")
    assert (found.settle.mode, found.settle.seconds, found.blocks.fixed) == ("fixed", 60, 10)
    assert found.machine == {"kind": "qemu", "cpus": 2, "memory": "4096M"}
    scripts = "".join(benchmark(name).script(parameters) for name, parameters in steps("generations"))
    for command in (
        "sysbench cpu --threads=1 --time=10 --cpu-max-prime=10000 run\n",
        "sysbench cpu --threads=2 --time=10 --cpu-max-prime=10000 run\n",
        "vmstat -n 1 10\n",
        " -e context-switches,cpu-migrations,task-clock sleep 5\n",
        "--file-num=128 --file-total-size=2G --file-block-size=16K --file-test-mode=seqwr --file-fsync-freq=100"
        " --file-io-mode=sync --threads=1 --time=10 run\n",
        "cyclictest -q -t2 -p80 -i1000 -l5000 ",
    ):
        assert command in scripts


def test_generations_measures_what_was_published_and_what_mends_it() -> None:
    found = {
        f"{step.benchmark}/{metric.name}"
        for step, (name, parameters) in zip(plain_steps("generations"), steps("generations"), strict=True)
        for metric in benchmark(name).metrics(parameters)
    }
    assert found >= {
        "vmstat/context-switches",
        "vmstat/context-switches-as-published",
        *(f"vmstat/context-switches-line-{number}" for number in range(1, 11)),
        "perf-stat/context-switches",
        "perf-stat/cpu-migrations",
        "perf-stat/task-clock",
        "sysbench-fileio/total-time",
        "sysbench-fileio/written",
        "sysbench-fileio/fsyncs-per-second",
        "cyclictest/latency-max",
        "cyclictest/latency-p99",
        "cyclictest/latency-p99.9",
    }
    assert {p.load for name, p in steps("generations") if name == "perf-stat"} == {"idle", "sysbench-cpu-2x"}
