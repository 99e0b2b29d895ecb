"""Kinds of run whose pages differ: what the tests of the page look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from examples import Results, exact, published, simulated, three
from factor_runs import HEAD, JOB, KERNELS, SIZE, THP, make_factor_run, with_interaction
from msgspec import structs
from tail_boots import SHAPES, draw_boots

from kduel.analysis.matrix.shape import tables
from kduel.core.experiment import Aspect, Bound, Metric
from kduel.core.host import HostStep
from kduel.core.metric_results import MetricResult
from kduel.core.results import Difference
from kduel.core.samples import Samples
from kduel.core.slices import SliceValue, slice_label
from kduel.judge.evaluate import judge_path, judge_run
from kduel.judge.ranking import rankings
from kduel.judge.tails.results import quantile_of, shift_results, tail_results
from kduel.judge.verdict.headline import headlines
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import planned_rule

ROOT = Path(__file__).resolve().parents[2]


def with_exact(_: Path) -> Results:
    """A timed run with an exact part, during which the host had other work."""
    whole = simulated()
    whole.exact = exact(*(one.name for one in whole.contenders))
    for number, trial in enumerate(whole.trials):
        trial.host = {"cpu": HostStep(seconds=2.0, vcpu_run_s=3.0, vcpu_wait_s=number / 10, other_work=0.25)}
    return whole


OPERATIONS = [
    ("getpid", "context-switch", "fork", "boot"),
    ("read-4k", "pipe", "exec", "boot-with-initramfs"),
    ("open", "futex", "clone", "boot-with-modules"),
    ("stat", "epoll", "mmap", "boot-with-network"),
    ("write-4k", "signal", "thread", "boot-with-swap"),
    ("close", "eventfd", "brk", "boot-with-serial"),
]
"""Names of six times as many counts."""


def counted_as(metric: MetricResult, name: str, number: int) -> MetricResult:
    """The count as that of another operation, with another change."""
    before, after = metric.baseline_mean or 0.0, metric.mean or 0.0
    after = float(round(before + (after - before) * (1 + number / 4)))
    values = dict(zip((metric.baseline, metric.contender), ([before], [after]), strict=True))
    return structs.replace(metric, benchmark=name, mean=after, effect=after - before, values=values)


def in_turns() -> Results:
    """As large as a whole run of the default suite: two Debian kernels in turns, twenty blocks, after exact counts."""
    whole = with_tails(simulated(blocks=20, metrics=26), None)
    whole.exact = exact(*(one.name for one in whole.contenders))
    whole.study.turns, whole.study.slices = 50, 4
    counts = whole.exact.metrics
    whole.exact.metrics = [
        counted_as(one, name, n)
        for n, names in enumerate(OPERATIONS)
        for one, name in zip(counts, names, strict=True)
    ]
    for metric in whole.exact.metrics[8:]:
        metric.role = "exploratory"
    aspects: list[Aspect] = ["throughput", "scheduling", "scheduling", "wakeup-latency"]
    for metric, aspect in zip(whole.metrics, aspects, strict=False):
        metric.aspect = aspect
    for metric in whole.metrics[:3]:
        metric.slices = {
            name: [[SliceValue(10.0 + 7 * n, (value or 0) * (0.97 + 0.02 * n)) for n in range(4)] for value in column]
            for name, column in metric.values.items()
        }
        for trial in whole.trials:
            for number in range(1, 5):
                record = HostStep(seconds=2.0, vcpu_run_s=3.0, vcpu_wait_s=trial.position % 7 / 10, other_work=0.25)
                trial.host[slice_label(metric.benchmark, number)] = record
    ways = [
        (None, "y"),
        (None, "m"),
        ("n", "m"),
        ("m", None),
        ("y", None),
        ("n", "y"),
        *(("y", f"{n}") for n in range(40)),
    ]
    names = [contender.name for contender in whole.contenders]
    whole.differences = [
        Difference(
            group="config",
            key=f"DRIVER_OR_OPTION_{number}",
            values=dict(zip(names, ways[number % 6 if number > 40 else number], strict=True)),
            declared=True,
        )
        for number in range(852)
    ]
    for captured in whole.environment.values():
        captured["files"] = {f"/sys/kernel/setting/{number}": f"value {number}" for number in range(40)}
        captured["cpu"] = {f"fact {number}": f"of the processor, {number}" for number in range(40)}
    return whole


def matrix(_: Path) -> Results:
    """Three policies, three loads, three numbers of processes."""
    return judge_path(ROOT / "studies/published/policies.csv")


def factors(place: Path) -> Results:
    """Two kernels, two settings, three sizes."""
    job = JOB + 'command = "job"\n'
    return judge_run(
        make_factor_run(place / "factors", HEAD + KERNELS + THP + SIZE + job, with_interaction, blocks=6)
    )


def merged(place: Path) -> Results:
    """Two runs on three machines, as one."""
    from simulated import Clock, Machine, SimulatedFleet, run

    from kduel.store.merged import merge

    parts = []
    for seed, names in enumerate(("ab", "bc"), 1):
        parts.append(place / f"part{seed}")
        run(SimulatedFleet({name: Machine(void=0.0) for name in names}, Clock()), parts[-1], "fixed = 12", seed=seed)
    merge(parts, place / "merged")
    return judge_run(place / "merged")


def contradicting(place: Path) -> Results:
    """Equivalent on the mean of two machines, +5 % on one and -5 % on the other."""
    from made_runs import make_run

    from kduel.store.merged import merge

    merge([make_run(place / "a", 5, place="rack1"), make_run(place / "b", -5, place="rack2", seed=2)], place / "both")
    return judge_run(place / "both")


def ranked(_: Path) -> Results:
    """Four contenders in two aspects, one of which has two metrics."""
    whole = simulated(contenders=("debian-6.1", "debian-6.12", "debian-7.1", "debian-7.1-rt"))
    aspects: list[Aspect] = ["throughput", "scheduling", "scheduling"]
    values, metrics = tables(whole)
    samples = [
        Samples(
            benchmark=benchmark,
            metric=structs.replace(metrics[benchmark][name], aspect=aspect),
            primary=True,
            blocks=whole.blocks,
            values=held,
        )
        for ((benchmark, name), held), aspect in zip(values.items(), aspects, strict=False)
    ]
    whole.rankings = rankings(samples, planned_rule(whole.study))
    return whole


def tailed(_: Path) -> Results:
    """Three kernels whose single measurements of a latency were kept and decide, with a bound: one in 1,000 above 150 us at most."""
    whole = three()
    for metric in whole.metrics:
        metric.role = "exploratory"
    whole = with_tails(whole, Bound(metric="latency", limit="150 us", share=1e-3))
    samples = [structs.replace(one, primary=True, distributions={}) for one in latencies(whole)]
    whole.metrics = [*judge(samples, planned_rule(whole.study)), *whole.metrics]
    whole.headlines = headlines(whole)
    return whole


def with_tails(whole: Results, bound: Bound | None) -> Results:
    """The run with single measurements of a latency."""
    samples = latencies(whole)
    rule = planned_rule(whole.study)
    whole.tails, whole.shifts = tail_results(samples, rule, bound), shift_results(samples, rule)
    return whole


def latencies(whole: Results) -> list[Samples]:
    """A latency's 99th percentile in each boot, and its single measurements."""
    names = [contender.name for contender in whole.contenders]
    draw = np.random.default_rng(3)
    boots = {
        name: draw_boots(SHAPES[shape], draw, len(whole.blocks), 2000)
        for name, shape in zip(names, ("exponential", "Pareto", "lognormal"), strict=False)
    }
    return [
        Samples(
            benchmark="cyclictest-idle",
            metric=Metric("latency-p99", "us", "lower", aspect="wakeup-latency"),
            blocks=whole.blocks,
            values={name: [quantile_of(boot, 0.99) for boot in column] for name, column in boots.items()},
            distributions=dict(boots),
        )
    ]


KINDS: dict[str, Callable[[Path], Results]] = {
    "default": with_exact,
    "turns": lambda _: in_turns(),
    "exact": lambda _: exact(),
    "three": lambda _: three(),
    "ranking": ranked,
    "tails": tailed,
    "matrix": matrix,
    "factors": factors,
    "import": lambda _: published(),
    "merged": merged,
    "contradicting": contradicting,
}
