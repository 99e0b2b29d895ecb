"""Detection rates and false alarms of the findings: python perf/lint_calibration.py [--runs N] [--write].

Simulates runs of two contenders and lets the product's own code judge and examine them. First clean data, normal and
Student's t with 3 degrees of freedom, with 10, 20 and 100 blocks: the share of runs with any finding. Then planted
flaws of a stated size: the share of runs in which the finding appears. --write puts the tables into
docs/evidence/lint-calibration.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/support")]

from flaws import PLANTED, false_alarms, sensitivity  # noqa: E402

from kduel.judge.lint.finding import catalogue  # noqa: E402

PAGE = ROOT / "docs/evidence/lint-calibration.md"
SIZES = (10, 20, 100)
SPREADS = (0.01, 0.03)
MOST = 2.0
"""Per cent of clean runs that may have any finding."""
LEAST = 90.0
"""Per cent of runs with a planted flaw in which it must be found."""


def tables(runs: int) -> str:
    """Both tables in Markdown, printed as they come."""
    lines = ["| noise | CV | blocks | runs with any finding | the most frequent ones |", "|---|--:|--:|--:|---|"]
    for kind in ("normal", "t3", "lognormal"):
        for cv in SPREADS:
            for blocks in SIZES:
                alarms = false_alarms(kind, cv, blocks, runs)
                each = ", ".join(f"{code} {share:.2f}" for code, share in list(alarms.each.items())[:3])
                mark = "" if alarms.any < MOST else " (above the limit)"
                lines.append(f"| {kind} | {100 * cv:g} % | {blocks} | {alarms.any:.2f} %{mark} | {each} |")
                print(lines[-1], flush=True)
    lines += ["", "| finding | planted flaw | blocks | found |", "|---|---|--:|--:|"]
    for code, flaw in ((code, flaw) for code, flaws in PLANTED.items() for flaw in flaws):
        share = sensitivity(code, flaw, max(200, runs // 10))
        mark = "" if share >= LEAST else " (below the limit)"
        lines.append(f"| `{code}` | {flaw.size} | {flaw.blocks} | {share:.1f} %{mark} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


HEAD = """# Findings: detection rates and false alarms

Written by `perf/lint_calibration.py --write` ({runs:,} clean runs a line, {flawed:,} for each planted flaw). A run has
two contenders and one metric; the simulation judges and examines it with the product's own code. Every check that can
raise a false alarm does so in {level:.1%} of runs, over all metrics together, so that more metrics do not raise more. At
most {most:g} % of clean runs may have any finding, and a flaw of the stated size must be found in {least:g} % of runs.
SD is the standard deviation of a trial (CV 1 %); t3 is Student's t with 3 degrees of freedom, lognormal has a sigma
of 1. [findings.md](findings.md) says what each finding means.

"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    assert PLANTED.keys() <= catalogue().keys()
    body = tables(chosen.runs)
    if chosen.write:
        from kduel.judge.lint.case import FALSE_ALARMS

        head = HEAD.format(
            runs=chosen.runs, flawed=max(200, chosen.runs // 10), level=FALSE_ALARMS, most=MOST, least=LEAST
        )
        PAGE.write_text(head + body)


if __name__ == "__main__":
    main()
