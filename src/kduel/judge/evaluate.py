"""From a run's directory to its results: collect, judge, examine. What every report is made from."""

from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from kduel.core.errors import PERMIT, InputError, UnreadableError
from kduel.core.metric_results import FindingResult
from kduel.core.results import ContenderResult, Results, StudyResult, TrialResult
from kduel.core.samples import Samples, steps_of
from kduel.core.version import full_version
from kduel.explain.compare import EXPLANATION_SCHEMA, Explanation, fold_small_branches
from kduel.explain.sharing import compare as sharing
from kduel.judge.factors import effects, factor_headlines
from kduel.judge.factors.contrasts import cell_tables
from kduel.judge.lint import examine
from kduel.judge.lint.findings import changed_afterwards, machine_out, unfinished_part
from kduel.judge.lint.findings import futile as futile_run
from kduel.judge.pooled import read_merged
from kduel.judge.ranking import rankings
from kduel.judge.tails.results import shift_results, tail_results
from kduel.judge.verdict.futility import futile, futility_text
from kduel.judge.verdict.headline import headlines
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule, planned_rule
from kduel.judge.verdict.unfinished import find_unfinished
from kduel.store import integrity
from kduel.store.collect import Collector
from kduel.store.documents import RESTORE, Lock, TrialRecord, read_document, read_json
from kduel.store.fleet_state import read_state
from kduel.store.integrity import trials_of
from kduel.store.manifest import run_checksum
from kduel.store.rundir import EXPLAIN, RunDir

Environment = dict[str, Any]


def rule_of(lock: Lock) -> Rule:
    """The rule that the run was planned by: looks on the way, or one look at a fixed number of blocks."""
    return planned_rule(study_result(lock))


def judge_run(path: Path, earlier: Set[str] | None = None) -> Results:
    """A run, measured here or imported, judged again from its raw files. `earlier` chooses the directories of a state
    before the run was continued; machines out of service then are not known. Raises InputError."""
    run = RunDir.open(path)
    if run.imported:
        from kduel.judge.imported import results

        return results(path)
    if run.merged:
        return judge_merged(run)
    lock = run.lock()
    collector = Collector(run, lock)
    records = [
        one for one in trials_of(run, lock) if earlier is None or directory_of(run.directory(one.id)) in earlier
    ]
    for record in records:
        collector.add(record)
    judged = assemble(run, lock, records, collector.samples(), earlier)
    if run.exact_part is not None:
        judged.exact = judge_run(run.exact_part)
    return judged


def judge_path(path: Path) -> Results:
    """The results of a run's directory, or of a file that is imported for the moment. Raises InputError."""
    if not path.is_file():
        return judge_run(path)
    from kduel.core.temporary import temporary_directory
    from kduel.store.imported import Source, bring_in

    with temporary_directory() as place:
        bring_in([Source(path)], place / "run")
        return judge_run(place / "run")


def assemble(
    run: RunDir, lock: Lock, records: list[TrialRecord], samples: list[Samples], earlier: Set[str] | None = None
) -> Results:
    """The results of what is there so far, or was there `earlier` (see `judge_run`)."""
    checksum = run_checksum(run.trials, [record.id for record in records])
    repeated = repeated_of(run)
    results = judge_samples(
        structs.replace(study_result(lock), checksum=checksum, text=run.study_text()),
        lock,
        samples,
        [trial_result(record, run.directory(record.id)) for record in records],
        [one for one in repeated if earlier is None or one.directory in earlier],
        environments_of(run, lock, records),
        changes_of(run, lock, records),
        explanations_of(run),
    )
    if earlier is None:
        results.warnings += machines_out(run)
    return results


def machines_out(run: RunDir, part: str = "") -> list[FindingResult]:
    """A finding for each machine of a fleet that is out of service; `part` names the run where it is merged with others."""
    return [
        machine_out.PLUGIN.warning(
            f"{f'{part}: ' * bool(part)}{name} is {out.why} after {out.round} rounds: {out.message}."
        )
        for name, out in read_state(run.path).out.items()
    ]


def judge_merged(run: RunDir) -> Results:
    """The results of all parts together: blocks follow one another, machines are strata. Raises InputError."""
    found = read_merged(run.path)
    lock = found.lock
    environments: dict[str, list[Environment]] = {}
    changes, trials, repeated = [], [], []
    for part in found.parts:
        for name, captured in environments_of(part.run, part.lock, part.records).items():
            environments.setdefault(name, []).extend(captured)
        changes += [f"{part.name}: {change}" for change in changes_of(part.run, part.lock, part.records)]
        trials += [part.renumber(trial_result(record, part.run.directory(record.id))) for record in part.records]
        repeated += [part.renumber(trial) for trial in repeated_of(part.run)]
    study = structs.replace(study_result(lock), seed=None, origin=None, parts=[part.result() for part in found.parts])
    results = judge_samples(study, lock, found.samples, trials, repeated, environments, changes, [])
    for part in found.parts:
        results.warnings += machines_out(part.run, part.name)
        whole = part.result().blocks >= rule_of(part.lock).max_blocks
        if not whole and (left := find_unfinished(judge_run(part.run.path))):
            said = f"{part.name} is not finished: {left.blocks} {'is' if left.complete == 1 else 'are'} complete."
            results.warnings.append(unfinished_part.PLUGIN.warning(said))
    return results


def repeated_of(run: RunDir) -> list[TrialResult]:
    """The boots that were made again. Raises InputError for one that is damaged."""
    return [trial_result(record, directory) for directory, record in run.put_asides()]


def changes_of(run: RunDir, lock: Lock, records: list[TrialRecord]) -> list[str]:
    """Changes to the run after it had been measured, a sentence each. Raises UnreadableError."""
    found = integrity.examine(run, lock, records)
    if found.unreadable:
        raise UnreadableError(f"{run.path}: {found.unreadable[0]} (Permission denied)", PERMIT)
    if not found.changes:
        with suppress(InputError):  # A damaged results.json, of which verify tells.
            return integrity.find_removed(run, lock, records)
    return found.changes


def judge_samples(
    study: StudyResult,
    lock: Lock,
    samples: list[Samples],
    trials: list[TrialResult],
    repeated: list[TrialResult],
    environments: dict[str, list[Environment]],
    changes: list[str],
    explanations: list[dict[str, Any]],
) -> Results:
    """Verdicts and findings of these samples by the rule of the study."""
    rule = planned_rule(study)
    found = effects(samples, study.design) if study.design else []
    tables = [*cell_tables(samples), *(effect.table for effect in found)] if study.design else samples
    verdicts = judge(tables, rule)
    metrics = verdicts[: len(verdicts) - len(found)]
    results = Results(
        judged_by=full_version(), study=study, machine=lock.machine,
        contenders=[
            structs.replace(
                msgspec.convert(contender, ContenderResult, from_attributes=True),
                release=kernel.release,
                sha256=kernel.sha256,
                facts=msgspec.to_builtins(kernel),
            )
            for contender, kernel in zip(lock.contenders, lock.kernels, strict=True)
        ],
        trials=trials, metrics=metrics, tails=tail_results(samples, rule, study.bound),
        shifts=shift_results(samples, rule),
        effects=[effect.result(result) for effect, result in zip(found, verdicts[len(metrics) :], strict=True)],
        repeated=repeated, steps=steps_of(samples), blocks=samples[0].blocks if samples else [],
        environment={name: found[0] for name, found in environments.items() if found}, explanations=explanations,
    )  # fmt: skip
    # In a guest whose root, or busybox alone, is the same for all arms, nothing but the kernel set these.
    own_defaults = ("sysctl", "settings") if {"root", "busybox"} & lock.machine.facts.keys() else ()
    examine(results, samples, environments, lock.contenders, declared=own_defaults)
    if lock.machine.evidence.varies and not study.design:
        by_harness = {f"{metric.benchmark}/{metric.metric}" for metric in metrics if metric.by_harness}
        results.rankings = rankings(samples, rule, by_harness)
    results.warnings[:0] = [
        changed_afterwards.PLUGIN.warning(f"The run was changed afterwards: {change}.") for change in changes
    ]
    results.headlines = factor_headlines(results) or headlines(results)
    if hopeless := futile(tables, rule):
        results.warnings.append(futile_run.PLUGIN.warning(futility_text(hopeless, rule)))
    return results


def study_result(lock: Lock) -> StudyResult:
    blocks = structs.asdict(lock.blocks.follow_turns())
    return StudyResult(
        **structs.asdict(lock.study), **{key: blocks[key] for key in blocks if key in StudyResult.__struct_fields__},
        settle=lock.settle, edition=lock.edition, covariates=lock.covariates, design=lock.design, bound=lock.bound,
        seed=lock.seed, origin=lock.origin, kduel=lock.kduel,
    )  # fmt: skip


def explanations_of(run: RunDir) -> list[dict[str, Any]]:
    """Results that `kduel explain` kept in the run, made small enough for a report; of a file that cannot be read the reason."""
    found = []
    for path in sorted((run.path / EXPLAIN).glob("*.json")):
        small: Any
        try:
            if path.stem.endswith(f".{sharing.KEPT_AS}"):
                small = read_document(path, sharing.SharingExplanation, sharing.SCHEMA)
            else:
                small = fold_small_branches(read_document(path, Explanation, EXPLANATION_SCHEMA))
        except InputError as error:
            file = str(path.relative_to(run.path))
            small = {"unreadable": file, "why": str(error).replace(str(path), file)}
        found.append(msgspec.to_builtins(small))
    return found


def trial_result(record: TrialRecord, directory: Path) -> TrialResult:
    found = record.facts.get("console_findings")
    return structs.replace(
        msgspec.convert(record, TrialResult, from_attributes=True),
        reason=str(record.void or ""),
        machine=record.member,
        started=record.started or None,
        directory=directory_of(directory),
        findings={str(name): str(line) for name, line in found.items()} if isinstance(found, dict) else {},
    )


def directory_of(directory: Path) -> str:
    """The directory of a trial or of a boot that was made again, relative to the run."""
    return f"{directory.parent.name}/{directory.name}"


def environments_of(run: RunDir, lock: Lock, records: list[TrialRecord]) -> dict[str, list[Environment]]:
    """By contender, the environment of each valid trial. Equal parts are one object, so that many fit in memory."""
    found: dict[str, list[Environment]] = {contender.name: [] for contender in lock.contenders}
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    decoded: dict[bytes, Any] = {}
    for record in records:
        path = run.directory(record.id) / "environment.json"
        if record.status != "void" and path.is_file():
            parts = {key: bytes(part) for key, part in read_json(path, decoder).items()}
            for part in parts.values():
                if part not in decoded:
                    decoded[part] = decode_part(part, path)
            found[record.contender].append({key: decoded[part] for key, part in parts.items()})
    return found


def decode_part(part: bytes, path: Path) -> Any:
    """The value of a key of an environment.json. Raises InputError where it is nested too deeply to be one."""
    try:
        return msgspec.json.decode(part)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}", RESTORE) from error
