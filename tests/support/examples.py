"""Results of many kinds to write reports of: the published study, a long run, an exact one, broken and hostile ones.

The judge's own arithmetic is not the matter here; `rough` fills verdicts in plainly enough for a report to have all cases.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy import stats

from kduel.core.experiment import MachineRecord, Void
from kduel.core.metric_results import AspectRanking, FindingResult, MetricResult, Rank, Verdict
from kduel.core.results import ContenderResult, Difference, Results, SourceFile, StudyResult, TrialResult

ROOT = Path(__file__).parents[2]
HOSTILE = (
    '<script>alert("x")</script> `tick` | pipe \\input{/etc/passwd} $x$ %& #1 _a_ ^b ~c {d} *e* [f](javascript:g) '
    "\x1b]0;pwned\x07\x1b[31mred\x1b[0m \u202egnp.exe \u2066bidi\u2069 \x9b2J zero\u200bwidth\r\nsecond line '\"</style><!--"
)

Values = dict[str, list[float | None]]


PANIC = Void("panic", "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b")


def rough(
    benchmark: str,
    metric: str,
    unit: str,
    better: Any,
    values: Values,
    *,
    baseline: str,
    contender: str,
    primary: bool = True,
    delta: float = 1.0,
    warnings: tuple[tuple[str, str], ...] = (),
) -> MetricResult:
    """A metric judged by one plain paired t interval."""
    pairs = [
        (a, b) for a, b in zip(values[baseline], values[contender], strict=True) if a is not None and b is not None
    ]
    a, b = (np.array([pair[side] for pair in pairs], float) for side in (0, 1))
    n = len(pairs)
    effect = low = high = None
    if n > 1:
        logs = np.log(b / a)
        half = stats.t.ppf(0.9975, n - 1) * logs.std(ddof=1) / math.sqrt(n)
        effect, low, high = (float(100 * np.expm1(logs.mean() + s * half)) for s in (0, -1, 1))
    elif n == 1:
        effect = float(100 * (b[0] / a[0] - 1))
    verdict: Verdict = "undecided"
    if low is not None and high is not None:
        if -delta <= low and high <= delta and n >= 10:
            verdict = "equivalent"
        elif low > 0 or high < 0:
            words: dict[tuple[str, bool], Verdict] = {
                ("higher", True): "faster",
                ("higher", False): "slower",
                ("lower", True): "slower",
                ("lower", False): "faster",
                ("none", True): "higher",
                ("none", False): "lower",
            }
            verdict = words[better, low > 0]
    return MetricResult(
        benchmark=benchmark,
        metric=metric,
        unit=unit,
        better=better,
        role="primary" if primary else "exploratory",
        about=f"what {metric} says",
        baseline=baseline,
        contender=contender,
        n=n,
        baseline_mean=float(a.mean()) if n else None,
        baseline_sd=float(a.std(ddof=1)) if n > 1 else None,
        mean=float(b.mean()) if n else None,
        sd=float(b.std(ddof=1)) if n > 1 else None,
        baseline_median=float(np.median(a)) if n else None,
        median=float(np.median(b)) if n else None,
        effect_pct=effect,
        ci_low_pct=low,
        ci_high_pct=high,
        verdict=verdict,
        told="",
        decided_at=n if verdict != "undecided" else None,
        blocks_more=14 if verdict == "undecided" and n > 1 else None,
        mde_pct=None if low is None or high is None else (high - low) / 2 * 1.4,
        unseen_mode_pct=100 * (1 - 0.05 ** (1 / n)) if verdict == "equivalent" else None,
        beside={"p_wilcoxon": 0.04, "p_permutation": 0.03, "cliffs_delta": -0.4} if n > 1 else {},
        warnings=[FindingResult(code=code, message=message) for code, message in warnings],
        values=values,
    )


def published() -> Results:
    """The study of two kernels in ten boots each, from its printed tables."""
    names = ["linux-4.19.309", "linux-6.6.0"]
    tables: dict[tuple[str, str, str, str], Values] = {}
    with (ROOT / "studies/published/generations.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            place = row["benchmark"], row["metric"], row["unit"], row["better"]
            tables.setdefault(place, {name: [] for name in names})[row["contender"]].append(float(row["value"]))
    notes = {
        "task_clock": (
            (
                "fixed-by-harness",
                "perf's task-clock is the window x CPUs: 5 s x 2 = 10,000 ms. It measures the harness.",
            ),
        ),
        "total_time": (("fixed-by-harness", "sysbench stops after 10 s: all 20 values lie within 0.1 % of it."),),
        "cpu_migrations": (("ties", "17 of 20 values are 2: a count this small has no room for a difference."),),
        "max_latency": (
            (
                "single-trial",
                "Trial 1 of linux-6.6.0 (968 us) carries the difference alone: without it the sign turns.",
            ),
            ("maximum", "A maximum grows with the duration of the test. Prefer p99 or p99.9."),
        ),
    }
    return Results(
        study=StudyResult(
            name="generations",
            title="Linux 4.19 and 6.6 in QEMU",
            imported=True,
            source=[SourceFile(name="generations.csv", sha256="cd" * 32, format="csv")],
        ),
        machine=MachineRecord(kind="imported"),
        contenders=[ContenderResult(name=name, kernel=name) for name in names],
        trials=[],
        metrics=[
            rough(
                *place, values, baseline=names[0], contender=names[1], primary=False, warnings=notes.get(place[1], ())
            )
            for place, values in tables.items()
        ],
        warnings=[
            FindingResult(
                code="not-interleaved", message="The trials were imported: whether they were interleaved is unknown."
            )
        ],
        blocks=list(range(1, 11)),
    )


def simulated(
    *,
    contenders: tuple[str, ...] = ("debian-6.1", "debian-6.12"),
    blocks: int = 12,
    metrics: int = 8,
    shift: Callable[[int, int], float] = lambda metric, arm: (
        (0.0, 4.0, -6.0, 0.1, 0.4, 1.5, -0.3, 12.0)[metric % 8] * arm
    ),
    voids: bool = False,
    seed: int = 7,
) -> Results:
    """A run in randomised blocks, as this tool makes them."""
    random = np.random.default_rng(seed)
    kinds = [
        ("sysbench-cpu-2t", "events_per_second", "events/s", "higher", 6480.0, 0.2),
        ("perf-bench-sched-pipe", "microseconds_per_operation", "us", "lower", 11.4, 1.5),
        ("hackbench-10g", "seconds", "s", "lower", 0.831, 2.0),
        ("cyclictest-idle", "latency_p99", "us", "lower", 61.0, 6.0),
        ("fio-randread-4k", "iops", "IO/s", "higher", 81_234.0, 3.0),
        ("perf-stat-load", "context_switches", "count", "none", 10_233.0, 4.0),
        ("boot", "seconds_to_shell", "s", "lower", 2.31, 1.0),
        ("stress-ng-vm", "bogo_ops", "ops/s", "higher", 120_551.0, 2.5),
    ]
    plan = [(block, name) for block in range(1, blocks + 1) for name in random.permutation(contenders)]
    trials = []
    broken: set[tuple[int, str]] = set()
    for position, (block, name) in enumerate(plan):
        void = voids and position in (5, 9)
        if void:
            broken.add((block, name))
        trials.append(
            TrialResult(
                id=f"{position:04d}-b{block:02d}-{name}",
                block=block,
                position=position,
                contender=str(name),
                status="void" if void else "partial" if voids and position == 14 else "ok",
                void=PANIC if void else None,
                reason=str(PANIC) if void else "",
                failed_steps={"fio-randread-4k": "it ended with status 1"} if voids and position == 14 else {},
                started=f"2026-03-14T{9 + position // 60 % 14:02d}:{position % 60:02d}:00Z",
                seconds=41.0 + float(random.normal()),
                directory=f"trials/{position:04d}-b{block:02d}-{name}",
            )
        )
    results: list[MetricResult] = []
    for number in range(metrics):
        benchmark, metric, unit, better, level, noise = kinds[number % len(kinds)]
        suffix = "" if number < len(kinds) else f"-{number // len(kinds)}"
        values: Values = {
            name: [
                None if (block, name) in broken else float(f"{value:.7g}")
                for block, value in enumerate(
                    level * (1 + shift(number, arm) / 100) * np.exp(random.normal(0, noise / 100, blocks)), 1
                )
            ]
            for arm, name in enumerate(contenders)
        }
        for name in contenders[1:]:
            results.append(
                rough(
                    benchmark + suffix,
                    metric,
                    unit,
                    better,
                    values,
                    baseline=contenders[0],
                    contender=name,
                    primary=number < 3,
                )
            )
    return Results(
        study=StudyResult(name="quick", max=20, seed=seed, origin="quick", unit="boot", order="fixed", edition=2),
        machine=MachineRecord(kind="qemu", facts={"accelerator": "tcg"}, timing_warning=(
            "The machine was emulated (TCG): times follow the emulator's costs, not a processor's. Read them as a test of the method.")),
        contenders=[
            ContenderResult(name=name, kernel=name.replace("-", ":"), release=f"{name}-cloud-amd64", sha256="ab" * 32,
                            cmdline="mitigations=auto") for name in contenders
        ],
        trials=trials,
        metrics=results,
        differences=[
            Difference(group="clocksource", key="current_clocksource", values=dict(zip(contenders, ["hpet", "tsc", "tsc"], strict=False)), declared=False),
            Difference(group="mitigations", key="spectre_v2", values=dict(zip(contenders, ["Mitigation: Retpolines", "Mitigation: IBRS", "Mitigation: IBRS"], strict=False)), declared=False),
            *(
                Difference(group="config", key=f"CONFIG_OPTION_{i}", values=dict(zip(contenders, ["y", None, "m"], strict=False)), declared=True)
                for i in range(60)
            ),
        ],
        blocks=list(range(1, blocks + 1)),
        environment={
            name: {"uname": f"Linux kduel {name} #1 SMP x86_64", "clocksource": "tsc", "cpus": 2, "memory": {"total_kib": 4032112}}
            for name in contenders
        },
    )  # fmt: skip


def three() -> Results:
    """Two contenders against a baseline."""
    return simulated(contenders=("debian-6.1", "debian-6.12", "debian-7.1"))


def broken() -> Results:
    """Panics and a benchmark that failed."""
    return simulated(voids=True)


def undecided() -> Results:
    """Noise, and nothing else."""
    return simulated(blocks=6, metrics=5, shift=lambda metric, arm: 0.05 * arm)  # noqa: ARG005


def single() -> Results:
    """One trial of each, imported."""
    found = simulated(blocks=1, metrics=6)
    source = SourceFile(name="footprint.csv", sha256="cd" * 32, format="csv")
    found.study = StudyResult(name="footprint", imported=True, source=[source])
    found.machine = MachineRecord(kind="imported")
    found.trials = []
    found.differences = []
    found.environment = {}
    for metric in found.metrics:
        metric.role = "exploratory"
        metric.warnings = [
            FindingResult(code="one-trial", message="One trial of each contender: chance cannot be told from effect.")
        ]
    return found


def exact(*contenders: str) -> Results:
    """Instructions counted on a deterministic machine."""
    names = contenders or ("parent", "patched")
    rows: list[tuple[str, str, Any, float, float]] = [
        ("getpid", "instructions_per_call", "lower", 1_204, 1_211),
        ("context-switch", "instructions_per_switch", "lower", 5_871, 5_702),
        ("fork", "instructions_per_fork", "lower", 1_204_551, 1_204_551),
        ("boot", "instructions", "none", 9_120_455_120, 9_131_002_344),
    ]
    return Results(
        study=StudyResult(name="exact", title="The cost of a patch", delta=0.1),
        machine=MachineRecord(kind="qemu-icount", exact=True),
        contenders=[ContenderResult(name=name, kernel=f"tree:{name}") for name in names],
        trials=[
            TrialResult(id=f"000{i}-b01-{name}", block=1, position=i, contender=name, status="ok", directory=f"trials/000{i}-b01-{name}")
            for i, name in enumerate(names)
        ],
        metrics=[
            MetricResult(
                benchmark=benchmark, metric=metric, unit="instructions", better=better, role="primary", baseline=names[0],
                contender=names[1], n=1, baseline_mean=a, baseline_sd=None, mean=b, sd=None, scale="exact", effect_pct=None,
                ci_low_pct=None, ci_high_pct=None, effect=b - a, verdict="equal" if a == b else "more" if b > a else "fewer",
                values={names[0]: [a], names[1]: [b]},
            )
            for benchmark, metric, better, a, b in rows
        ],
        blocks=[1],
    )  # fmt: skip


def hostile() -> Results:
    """Every string that a guest, a study or an import can set, set to harm."""
    found = simulated(contenders=(f"a {HOSTILE}", f"b {HOSTILE}"), blocks=6, metrics=3, voids=True)
    source = SourceFile(name=HOSTILE, sha256=HOSTILE, format=HOSTILE)
    found.study = msgspec.structs.replace(
        found.study,
        title=HOSTILE,
        name=HOSTILE,
        about=HOSTILE,
        origin=HOSTILE,
        kduel=HOSTILE,
        text=HOSTILE,
        source=[source],
    )
    found.machine = MachineRecord(
        kind=HOSTILE,
        timing_warning=HOSTILE,
        facts={"accelerator": HOSTILE, HOSTILE: HOSTILE},
        settings={HOSTILE: HOSTILE},
    )
    found.warnings = [FindingResult(code=HOSTILE, message=HOSTILE)]
    found.environment = {name: {HOSTILE: HOSTILE, "uname": HOSTILE} for name in found.environment}
    for contender in found.contenders:
        contender.kernel = contender.release = contender.sha256 = contender.cmdline = HOSTILE
        contender.scheduler = contender.policy = HOSTILE
        contender.facts = {HOSTILE: HOSTILE}
    for trial in found.trials:
        trial.id += HOSTILE
        trial.reason = HOSTILE
        trial.void = Void(HOSTILE, HOSTILE)
        trial.directory = f"trials/{HOSTILE}"
        trial.failed_steps = {HOSTILE: HOSTILE}
    for number, metric in enumerate(found.metrics):
        metric.benchmark = f"{HOSTILE} {number}"
        metric.metric = metric.unit = metric.about = metric.told = HOSTILE
        metric.warnings = [FindingResult(code=HOSTILE, message=HOSTILE)]
        metric.beside = {HOSTILE: 1.0}
    names = [contender.name for contender in found.contenders]
    found.rankings = [
        AspectRanking(
            aspect="throughput",
            metrics=[HOSTILE, HOSTILE],
            left_out=[HOSTILE],
            ranks=[
                *(Rank(contender=name, first=1, last=2) for name in names),
                Rank(contender=HOSTILE, first=None, last=None, reason=HOSTILE),
            ],
            results=found.metrics[:1],
        )
    ]
    for difference in found.differences:
        difference.group = difference.key = HOSTILE
        difference.values = dict.fromkeys(difference.values, HOSTILE)
    return found


def empty() -> Results:
    """A run in which nothing was measured."""
    found = simulated(blocks=2, metrics=0)
    for trial in found.trials:
        trial.status, trial.reason = "void", "hang: no console output for 60 s"
    return found


def large() -> Results:
    """A thousand trials of two hundred metrics."""
    return simulated(blocks=500, metrics=200)


ALL: dict[str, Callable[[], Results]] = {
    made.__name__: made for made in (published, simulated, three, broken, undecided, single, exact, hostile, empty)
}
