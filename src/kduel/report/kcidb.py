"""The verdicts as test results for KernelCI's database (KCIDB, schema 5.0, by kcidb-submit): one for each primary
metric of each contender. `build_id` is the image's SHA-256, or the contender's name; builds are others' to submit."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec

from kduel.core.format import effect_with_interval
from kduel.core.metric_results import SET_BY_HARNESS, MetricResult
from kduel.core.results import ContenderResult, Results, first_date
from kduel.core.text import visible
from kduel.core.validation import in_utc
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.factors import factor_groups
from kduel.report.content.reproduce import reproduction

VERSION = {"major": 5, "minor": 0}
WIDTH = 900
"""Of commands: longer texts are cut."""
Status = Literal["FAIL", "PASS", "DONE", "MISS"]


class KcidbFormat(Format):
    """One test for each gating metric: FAIL where it is slower, PASS where it is not, DONE where that is open."""

    name: ClassVar[str] = "kcidb"
    summary: ClassVar[str] = "test results for KernelCI's KCIDB (JSON, schema 5.0)"
    suffix: ClassVar[str] = ".json"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        contenders = {one.name: one for one in results.contenders}
        tests = [
            test(
                results,
                metric,
                contenders.get(metric.contender) or ContenderResult(name=metric.contender, kernel=""),
                options.origin,
                effect,
            )
            for metric, effect in gating_verdicts(results)
        ]
        document = clean_document({"version": VERSION, "tests": tests})
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


PLUGIN = KcidbFormat()


def gating_verdicts(results: Results) -> Iterator[tuple[MetricResult, str]]:
    """The verdicts that decide; of factors each with its effect's name, what it depends on and what it cannot be told from."""
    groups = factor_groups(results)
    if not groups:
        yield from ((metric, "") for metric in results.gating)
    for found in groups:
        for one, row in zip(found.effects, found.rows, strict=True):
            if one.result in results.gating:
                yield one.result, row.benchmark


def test(
    results: Results, metric: MetricResult, contender: ContenderResult, origin: str, effect: str = ""
) -> dict[str, Any]:
    """A test of the schema; `effect` is the name of an effect of factors. What is not known is null."""
    path = ".".join(["kduel", *map(schema_name, filter(None, (metric.benchmark, metric.metric, effect)))])
    own = [trial for trial in results.trials if trial.contender == contender.name]
    started = in_utc(first_date(trial.started for trial in own))
    run = results.study.checksum or hashlib.sha256(msgspec.json.encode(results.metrics)).hexdigest()
    identity = "\0".join(
        (run, metric.baseline, metric.contender, metric.benchmark, metric.metric, *filter(None, [effect]))
    )
    again = reproduction(results)
    seconds = [trial.seconds for trial in own]
    # As the schema takes it, and another one for each name.
    named = f"{schema_name(contender.name)}-{hashlib.sha256(contender.name.encode()).hexdigest()[:12]}"
    return {
        "id": f"{origin}:{hashlib.sha256(identity.encode()).hexdigest()}",
        "origin": origin,
        "build_id": f"{origin}:{contender.sha256 or named}",
        "path": path,
        "status": status(metric),
        "comment": visible(
            (f"{effect}: " if effect else f"{metric.contender} against {metric.baseline}: ")
            + ("" if metric.role == "primary" else f"{metric.role}: ")
            + (
                SET_BY_HARNESS
                if metric.by_harness
                else ", ".join(filter(None, (metric.label, effect_with_interval(metric))))
            )
            + (f" ({metric.withheld})" if metric.withheld and not metric.by_harness else ""),
            1000,
        ),
        "environment": {
            "comment": visible(f"machine {results.machine.kind}", 200),
            "misc": {"machine": results.machine.kind, "settings": results.machine.settings},
        },
        "misc": {
            "kduel": {
                "version": visible(results.study.kduel or "", 40),
                "baseline": visible(metric.baseline, 200),
                "contender": visible(metric.contender, 200),
                "verdict": metric.status,
                "better": metric.better,
                "delta_pct": results.study.delta,
                "blocks": metric.n,
                "reproduce": again.lines(WIDTH) if again else [],
                "study": again.study.splitlines() if again else [],
                "run_sha256": results.study.checksum or None,
                "effect_pct": metric.effect_pct,
                "ci_low_pct": metric.ci_low_pct,
                "ci_high_pct": metric.ci_high_pct,
            }
        },
        "number": None if metric.mean is None else {"value": metric.mean, "unit": visible(metric.unit, 60) or None},
        "start_time": started,
        "duration": None if None in seconds or not own else round(sum(filter(None, seconds)), 3),
    }


def status(metric: MetricResult) -> Status:
    """FAIL: surely slower or more, by more than may be neglected. PASS: surely not. DONE: measured, and neither is sure,
    or it is a hint, or nothing follows as the benchmark sets the value or machines contradict each other. MISS: no
    value, so that nothing is known."""
    if not metric.n:
        return "MISS"
    if not metric.claimed or metric.hint:
        return "DONE"
    if metric.verdict in ("slower", "more") and not metric.below_delta:
        return "FAIL"
    return "PASS" if metric.verdict in ("faster", "slower", "more", "fewer", "equivalent", "equal") else "DONE"


def schema_name(name: str) -> str:
    """A name as the schema's paths and identifiers take it."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "unnamed"


def clean_document(values: Any) -> Any:
    """A document with every text made safe, and without nulls."""
    if isinstance(values, dict):
        return {visible(str(key), 100): clean_document(value) for key, value in values.items() if value is not None}
    if isinstance(values, list | tuple):
        return [clean_document(value) for value in values if value is not None]
    return visible(values, 1000) if isinstance(values, str) else values
