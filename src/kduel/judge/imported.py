"""An imported run, judged: the same results as of a run of KDuel's own, and all that is not known of it, said."""

from __future__ import annotations

from pathlib import Path

from kduel.core.experiment import Contender
from kduel.core.results import ContenderResult, Results
from kduel.judge.lint import examine
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import judge_unpaired
from kduel.store.imported.support.store import CAVEAT, declared, environments, read, record_of

IMPORTED_EDITION = 1
"""Imported values have no order, and one look: of the rule's editions only the fewest values matter, which are five,
however many comparisons there are. Published data are seldom more, and nobody can add to them."""


def rule_of(run: Path) -> Rule:
    """The rule with the smallest effect of interest that the import was given."""
    return Rule.of_edition(IMPORTED_EDITION, delta_pct=record_of(run).delta)


def results(run: Path) -> Results:
    """The run judged anew from the original files. Raises InputError where they are gone or changed."""
    record = record_of(run)
    samples = read(run)
    rule = rule_of(run)
    known = environments(run)
    found = Results(
        study={
            "name": record.title,
            "title": record.title,
            "delta": rule.delta_pct,
            "alpha": rule.alpha,
            "edition": IMPORTED_EDITION,
            "imported": True,
            "imported_at": record.imported,
            "source": [
                {"name": stored.name, "sha256": stored.sha256, "format": stored.format} for stored in record.files
            ],
            "skipped": record.skipped,
            "kduel": record.kduel,
        },
        machine={"kind": "imported", "facts": {"caveat": CAVEAT}},
        contenders=[
            ContenderResult(
                name=name, kernel=str(known[name].get("release", "")), release=release(known[name].get("release"))
            )
            for name in record.contenders
        ],
        trials=[],
        metrics=judge_unpaired(samples, rule),
        blocks=samples[0].blocks,
        environment={name: facts for name, facts in known.items() if facts},
    )
    arms = [Contender(kernel=name, name=name) for name in record.contenders]
    examine(found, samples, {name: [facts] if facts else [] for name, facts in known.items()}, arms, declared(run))
    return found


def release(found: object) -> str | None:
    """The kernel's release, where the import says it."""
    return None if found is None else str(found)
