"""The rows of a run in the index."""

import sqlite3
import statistics
from collections.abc import Iterator

import msgspec

from kduel.analysis.machine_name import UNKNOWN, machine_name
from kduel.core.results import Results, first_date, stated_date
from kduel.core.validation import in_utc
from kduel.judge.verdict.unfinished import limits_of


def add_run(connection: sqlite3.Connection, name: str, stamp: str, results: Results) -> None:
    study = results.study
    started = in_utc(first_date(trial.started for trial in results.trials) or study.imported_at or "")
    environment = results.environment
    measured = {
        c.name: in_utc(stated_date(environment.get(c.name, {}))) if study.imported else started
        for c in results.contenders
    }
    cursor = connection.execute(
        "INSERT INTO run (path, stamp, name, title, machine, started, imported, seed, kduel, delta_pct, alpha, blocks, "
        "trials, void, merged, measured, limits) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            name, stamp, study.name, study.title, machine_label(results), started, study.imported, study.seed, study.kduel,
            study.delta, study.alpha, len(results.blocks), len(results.trials),
            sum(trial.status == "void" for trial in results.trials), bool(study.parts),
            max(filter(None, measured.values()), default=None), "; ".join(limits_of(results)),
        ),
    )  # fmt: skip
    run = cursor.lastrowid
    connection.executemany(
        "INSERT INTO contender VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (run, number, c.name, c.kernel, c.release, c.sha256, c.cmdline, c.scheduler, c.policy, measured[c.name])
            for number, c in enumerate(results.contenders)
        ],
    )
    columns = [
        "benchmark", "metric", "unit", "better", "role", "baseline", "contender", "n", "baseline_mean", "baseline_sd",
        "mean", "sd", "scale", "effect_pct", "ci_low_pct", "ci_high_pct", "effect", "ci_low", "ci_high", "status",
    ]  # fmt: skip
    marks = ", ".join("?" * (len(columns) + 3))
    connection.executemany(
        f"INSERT INTO verdict (run, {', '.join(columns[:-1])}, verdict, wording, small) VALUES ({marks})",
        [(run, *(getattr(m, column) for column in columns), m.told, bool(m.size)) for m in results.metrics],
    )
    connection.executemany("INSERT INTO value VALUES (?, ?, ?, ?, ?, ?)", values(run, results))
    connection.executemany("INSERT INTO point VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", points(run, results))


def machine_label(results: Results) -> str:
    """The kind of the machine with its place, `ssh rack1`; of several how many they are."""
    names = {trial.machine for trial in results.trials if trial.machine}
    place = f"{len(names)} machines" if len(names) > 1 else results.machine.settings.get("place")
    return f"{results.machine.kind} {place}" if place else results.machine.kind


def points(run: int | None, results: Results) -> Iterator[tuple[int | str | float | None, ...]]:
    """Each contender's mean of each metric, with what makes it a point of one series and not of another."""
    units = {(metric.benchmark, metric.metric): metric.unit for metric in results.metrics}
    steps = {step.label: [step.benchmark, step.parameters] for step in results.steps}
    record = results.machine
    machine = {"kind": record.kind, "settings": record.settings, **record.facts, "exact": not record.evidence.varies}
    if results.study.in_turns:
        machine["turns"] = results.study.turns
    found: dict[tuple[str, str, str], list[float]] = {}
    for _, benchmark, metric, contender, _, value in values(run, results):
        if value is not None:
            found.setdefault((benchmark, metric, contender), []).append(value)
    for (benchmark, metric, contender), given in found.items():
        environment = results.environment.get(contender)
        name = UNKNOWN
        if environment is not None:
            name = machine_name(environment.get("machine") if results.study.imported else machine, environment)
        unit = units[benchmark, metric]
        quantity = msgspec.json.encode([unit, steps.get(benchmark)], order="sorted").decode()
        sd = statistics.stdev(given) if len(given) > 1 else None
        yield run, name, contender, benchmark, metric, unit, quantity, len(given), statistics.fmean(given), sd


def values(run: int | None, results: Results) -> Iterator[tuple[int | None, str, str, str, int, float | None]]:
    """Each measured value once, though the baseline stands in the result of every contender."""
    seen: set[tuple[str, str, str]] = set()
    for metric in results.metrics:
        for contender, column in metric.values.items():
            key = metric.benchmark, metric.metric, contender
            if key not in seen:
                seen.add(key)
                yield from ((run, *key, block, value) for block, value in zip(results.blocks, column, strict=False))
