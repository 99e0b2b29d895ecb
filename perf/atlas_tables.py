"""Tables of the atlas: path lengths and shared lines of every operation by kernel, from a run's results.

    python perf/atlas_tables.py RESULTS.json[.xz] [--write]

RESULTS is results.json of a run of studies/atlas.toml. --write replaces the tables in docs/atlas.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

from verdict_calibration import table, write

from kduel.core.metric_results import COUNTED, SHARED
from kduel.core.results import Results
from kduel.judge.published import read_results

DOCUMENT = Path(__file__).parents[1] / "docs/atlas.md"


def values(results: Results, unit: str, metric: str) -> dict[str, dict[str, float | None]]:
    """By operation, the value of each kernel."""
    found: dict[str, dict[str, float | None]] = {}
    for one in results.metrics:
        if one.unit == unit and one.metric == metric:
            found.setdefault(one.benchmark, {}).update({name: row[0] for name, row in one.values.items()})
    return found


def path_lengths(results: Results, kernels: list[str]) -> list[str]:
    """Median instructions of a call."""
    rows = [
        (name, *("" if (value := row.get(kernel)) is None else f"{value:,.0f}" for kernel in kernels))
        for name, row in values(results, COUNTED, "instructions").items()
    ]
    return table(["instructions: median", *kernels], rows)


def shared_lines(results: Results, kernels: list[str]) -> list[str]:
    """Median lines of an operation, and the mean in parentheses; operations that share none at all are left out."""
    steady, means = values(results, SHARED, "lines"), values(results, SHARED, "lines-mean")
    rows = [
        (name, *(cell(row.get(kernel), means.get(name, {}).get(kernel)) for kernel in kernels))
        for name, row in steady.items()
        if any(row.get(kernel) for kernel in kernels)
    ]
    none = sorted(name for name, row in steady.items() if not any(row.get(kernel) for kernel in kernels))
    return [
        *table(["lines: median (mean)", *kernels], rows),
        "",
        *wrap(f"None by the median: {', '.join(none)}.", 120, break_on_hyphens=False),
    ]


def cell(usual: float | None, mean: float | None) -> str:
    """Both numbers; empty where there is none."""
    return "" if usual is None else f"{usual:g}" if mean is None else f"{usual:g} ({mean:.2f})"


def kernels_of(results: Results) -> list[str]:
    """Names of the kernels, in the run's order."""
    return [contender.name for contender in results.contenders]


def main() -> None:
    """Print the tables, or put them into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", action="store_true", help=f"replace the tables in docs/{DOCUMENT.name}")
    given = parser.parse_args()
    results = read_results(given.results)
    parts = {"shared-lines": shared_lines(results, kernels_of(results))}
    if results.exact is not None:
        parts["path-lengths"] = path_lengths(results.exact, kernels_of(results.exact))
    for name, lines in parts.items():
        print("\n".join([*lines, ""]))
        if given.write:
            write(name, lines, DOCUMENT)


if __name__ == "__main__":
    main()
