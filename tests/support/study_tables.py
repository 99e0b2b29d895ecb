"""Rows of the tables in docs/studies, from the CSV files beside them."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean

from kduel.core.format import amount, percent

STUDIES = Path(__file__).parents[2] / "docs" / "studies"


def values(name: str) -> dict[tuple[str, str, str], float]:
    """Means by contender, benchmark and metric of a file in KDuel's own format."""
    found: dict[tuple[str, str, str], list[float]] = {}
    with (STUDIES / name).open(newline="") as stream:
        for row in csv.DictReader(stream):
            found.setdefault((row["contender"], row["benchmark"], row["metric"]), []).append(float(row["value"]))
    return {key: fmean(each) for key, each in found.items()}


def pair_rows(name: str) -> list[str]:
    """`| benchmark | metric | of each contender | change |`, each contender in the file's order, against the first."""
    found = values(name)
    contenders = list(dict.fromkeys(key[0] for key in found))
    rows = []
    for benchmark, metric in dict.fromkeys(key[1:] for key in found):
        own = [found.get((contender, benchmark, metric)) for contender in contenders]
        told = [amount(value) for value in own]
        first, last = own[0], own[-1]
        change = percent(100 * (last / first - 1)) if first and last is not None else "-"
        rows.append(f"| {benchmark} | {metric} | {' | '.join(told)} | {change} |")
    return rows


RESOLUTION = 4 * 10_000 / 1e9
"""Seconds in which each of four exact CPUs has its turn of 10,000 instructions."""


PUBLISHED_AS = {"rr:50": "SCHED_RR", "other": "SCHED_OTHER", "fifo:50": "SCHED_FIFO"}


def published_cell(cell: str) -> str:
    """`cpu-10` as the published study calls it."""
    kind, _, count = cell.partition("-")
    return "-".join((kind, {"10": "small", "100": "medium", "1000": "large"}[count]))


def policies_rows() -> list[str]:
    """A row for each of the 27 cells' nine families: involuntary switches and the change of wall time, counted and published. Exact
    CPUs resolve RESOLUTION at best."""
    counted, published = values("policies.csv"), values("../../studies/published/policies.csv")
    found = {
        (cell, policy, metric): (value, published[PUBLISHED_AS[policy], published_cell(cell), metric])
        for (policy, cell, metric), value in counted.items()
    }
    rows = []
    for kind, word in (("cpu", "CPU"), ("io", "I/O"), ("mixed", "mixed")):
        for count in (10, 100, 1000):
            cell = f"{kind}-{count}"
            switches = [
                ", ".join(f"{found[cell, policy, 'involuntary_switches'][which]:,.0f}" for policy in ("other", "rr:50", "fifo:50"))
                for which in (0, 1)
            ]  # fmt: skip
            walls = []
            for which in (0, 1):
                one, other = (found[cell, policy, "wall"][which] for policy in ("other", "rr:50"))
                same = which == 0 and abs(one - other) <= RESOLUTION
                walls.append(
                    f"the same within {1e6 * RESOLUTION:.0f} us" if same else percent(100 * (one / other - 1))
                )
            title = f"{word}, {count}{' processes' * (cell == 'cpu-10')}"
            rows.append(f"| {title} | {switches[0]} | {switches[1]} | {walls[0]} | {walls[1]} |")
    return rows
