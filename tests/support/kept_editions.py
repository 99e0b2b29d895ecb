"""Each edition of the rule: its record, and the verdicts of a kept run after each number of blocks.

    PYTHONPATH=src .venv/bin/python -P tests/support/kept_editions.py

adds the present edition to tests/judge/verdict/kept_editions.json, once: what is there is never changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from kduel.core.editions import EDITION, EDITIONS
from kduel.core.samples import Samples
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule

KEPT = Path(__file__).parents[1] / "judge/verdict/kept_editions.json"
"""Values of a run, and for each edition its record and its verdicts after each number of blocks, written when it was made."""


def verdicts(tables: list[Samples], edition: int, blocks: int) -> list[list[Any]]:
    """By metric: verdict, the look that decided, and the interval, of the first blocks of a run."""
    cut = [
        msgspec.structs.replace(
            one,
            blocks=one.blocks[:blocks],
            values={name: values[:blocks] for name, values in one.values.items()},
            order={name: order[:blocks] for name, order in one.order.items()},
            covariates={
                name: {arm: values[:blocks] for arm, values in arms.items()} for name, arms in one.covariates.items()
            },
        )
        for one in tables
    ]
    found = judge(cut, Rule.of_edition(edition, covariates=("other-work",)))
    return [[one.verdict, one.decided_at, one.ci_low_pct, one.ci_high_pct] for one in found]


def main() -> None:
    """Add the present edition."""
    kept = json.loads(KEPT.read_text())
    editions = kept["editions"]
    if str(EDITION) in editions:
        raise SystemExit(f"kept_editions.py: edition {EDITION} is kept already, and a kept one is never changed")
    tables = msgspec.convert(kept["samples"], list[Samples])
    editions[str(EDITION)] = {blocks: verdicts(tables, EDITION, int(blocks)) for blocks in editions[str(EDITION - 1)]}
    kept["records"][str(EDITION)] = msgspec.to_builtins(EDITIONS[EDITION])
    KEPT.write_text(json.dumps(kept) + "\n")
    print(f"edition {EDITION} is kept in {KEPT}")


if __name__ == "__main__":
    main()
