"""From a run's directory to its results: collect, judge, examine. What every report is made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kduel.core.results import ContenderResult, Results, TrialResult
from kduel.core.samples import Samples
from kduel.explain.compare import Explanation, slim
from kduel.judge.lint import examine
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule, planned_rule
from kduel.store.collect import Collector
from kduel.store.rundir import Lock, RunDir, TrialRecord, read_json

Environment = dict[str, Any]


def rule_of(lock: Lock) -> Rule:
    """The rule that the run was planned by: looks on the way, or one look at a fixed number of blocks."""
    return planned_rule(lock.study | {"edition": lock.edition, "covariates": lock.covariates})


def judge_run(path: Path) -> Results:
    """A run, measured here or imported, judged anew from its raw files. Raises InputError where it is none."""
    run = RunDir.open(path)
    if run.imported:
        from kduel.judge.imported import results

        return results(path)
    lock = run.lock()
    collector = Collector(run, lock)
    records = run.records()
    for record in records:
        collector.add(record)
    return assemble(run, lock, records, collector.samples())


def assemble(run: RunDir, lock: Lock, records: list[TrialRecord], samples: list[Samples]) -> Results:
    """The results of what is there so far."""
    metrics = judge(samples, rule_of(lock), exact=bool(lock.machine.get("exact")))
    environments = environments_of(run, lock, records)
    results = Results(
        study=lock.study
        | {
            "edition": lock.edition,
            "covariates": lock.covariates,
            "seed": lock.seed,
            "origin": lock.origin,
            "kduel": lock.kduel,
        },
        machine=lock.machine,
        contenders=[
            ContenderResult(
                name=contender.name,
                kernel=contender.kernel,
                release=kernel.get("release"),
                sha256=kernel.get("sha256"),
                cmdline=contender.cmdline,
                scheduler=contender.scheduler,
                policy=contender.policy,
                facts=kernel,
            )
            for contender, kernel in zip(lock.contenders, lock.kernels, strict=True)
        ],
        trials=[trial_result(record) for record in records],
        metrics=metrics,
        blocks=samples[0].blocks if samples else [],
        environment={name: found[0] for name, found in environments.items() if found},
        explanations=explanations_of(run),
    )
    # In a guest whose root, or busybox alone, is the same for all arms, nothing but the kernel set these.
    own_defaults = ("sysctl", "settings") if {"root", "busybox"} & lock.machine.get("facts", {}).keys() else ()
    examine(results, samples, environments, lock.contenders, declared=own_defaults)
    return results


def explanations_of(run: RunDir) -> list[dict[str, Any]]:
    """What `kduel explain` kept in the run, made small enough for a report. Raises InputError for a damaged file."""
    found = []
    for path in sorted((run.path / "explain").glob("*.json")):
        explanation: Explanation = read_json(path, Explanation)
        small: dict[str, Any] = msgspec.to_builtins(slim(explanation))
        found.append(small)
    return found


def trial_result(record: TrialRecord) -> TrialResult:
    """A trial as reports show it."""
    return TrialResult(
        id=record.id,
        block=record.block,
        position=record.position,
        contender=record.contender,
        status=record.status,
        reason=record.reason,
        started=record.started or None,
        seconds=record.seconds,
        directory=f"trials/{record.id}",
        failed_steps=record.failed_steps,
    )


def environments_of(run: RunDir, lock: Lock, records: list[TrialRecord]) -> dict[str, list[Environment]]:
    """By contender, the environment of each trial that is not void.

    What trials have in common (a kernel's configuration, above all) is one object: a thousand trials fit in memory.
    """
    found: dict[str, list[Environment]] = {contender.name: [] for contender in lock.contenders}
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    decoded: dict[bytes, Any] = {}
    for record in records:
        path = run.directory(record.id) / "environment.json"
        if record.status != "void" and path.is_file():
            parts = {key: bytes(part) for key, part in read_json(path, decoder).items()}
            for part in parts.values():
                if part not in decoded:
                    decoded[part] = msgspec.json.decode(part)
            found[record.contender].append({key: decoded[part] for key, part in parts.items()})
    return found
