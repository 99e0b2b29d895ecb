"""An imported run, judged: the same results as of a run of KDuel's own, with everything that is unknown about it stated."""

from pathlib import Path

import msgspec

from kduel.core.experiment import RESOLUTION, Contender, MachineRecord
from kduel.core.metric_results import MetricResult
from kduel.core.results import ContenderResult, Results, SourceFile, StudyResult
from kduel.core.samples import Samples, steps_of
from kduel.core.version import full_version
from kduel.judge.lint import examine
from kduel.judge.verdict.headline import headlines
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import UNPAIRED_EDITION, judge_unpaired
from kduel.store.imported.support.store import CAVEAT, declared_keys, environments, read_with_settings, record_of


def rule_of(run: Path) -> Rule:
    """The rule with the smallest effect of interest that the import was given."""
    return Rule.of_edition(UNPAIRED_EDITION, delta_pct=record_of(run).delta)


def results(run: Path) -> Results:
    """The run judged again from the original files. Raises InputError where they are gone or changed."""
    record = record_of(run)
    samples, gathering = read_with_settings(run)
    rule = rule_of(run)
    known = environments(run)
    for name, differing in gathering.differing_settings().items():
        known[name]["called with"] = differing
    found = Results(
        judged_by=full_version(),
        study=StudyResult(
            name=record.title,
            title=record.title,
            delta=rule.delta_pct,
            alpha=rule.alpha,
            edition=UNPAIRED_EDITION,
            imported=True,
            imported_at=record.imported,
            source=[SourceFile(name=one.name, sha256=one.sha256, format=one.format) for one in record.files],
            skipped=record.skipped,
            kduel=record.kduel,
        ),
        machine=MachineRecord(
            kind="imported",
            exact=all(table.paired for table in samples),
            facts={"caveat": CAVEAT} | ({RESOLUTION: gathering.resolution} if gathering.resolution else {}),
        ),
        contenders=[
            ContenderResult(name=name, kernel=stated or "", release=stated)
            for name in record.contenders
            for stated in (None if known[name].get("release") is None else str(known[name]["release"]),)
        ],
        trials=[],
        metrics=judge_imported(samples, rule),
        steps=steps_of(samples),
        blocks=samples[0].blocks,
        environment={name: facts for name, facts in known.items() if facts},
    )
    arms = [Contender(kernel=name, name=name) for name in record.contenders]
    examine(
        found, samples, {name: [facts] if facts else [] for name, facts in known.items()}, arms, declared_keys(run)
    )
    found.headlines = headlines(found)
    return found


def judge_imported(samples: list[Samples], rule: Rule) -> list[MetricResult]:
    """Every metric of every contender, in the order of `samples`: by the rule for values that nothing pairs, but those
    that chance has no part in as in a run, where one value of each decides."""
    paired = [table for table in samples if table.paired]
    alone = [(table, None if table.evidence.varies else equal_counts(table)) for table in samples if not table.paired]
    judged = [
        *judge(paired, rule),
        *judge([counts for _, counts in alone if counts], rule),
        *judge_unpaired([table for table, counts in alone if not counts], rule),
    ]
    found = {(m.benchmark, m.metric, m.contender): m for m in judged}
    results = []
    for table in samples:
        for contender in table.contenders[1:]:
            result = found[table.benchmark, table.metric.name, contender]
            result.values = {name: list(values) for name, values in table.values.items()}
            results.append(result)
    return results


def equal_counts(table: Samples) -> Samples | None:
    """The table with each contender's one value repeated so that every trial has its partner; None without one."""
    values = {name: [value for value in column if value is not None] for name, column in table.values.items()}
    least = min(len(column) for column in values.values())
    if not least:
        return None
    return msgspec.structs.replace(
        table,
        blocks=list(range(1, least + 1)),
        values={name: [*column[:least]] for name, column in values.items()},
        absent={},
    )
