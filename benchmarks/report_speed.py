"""How long a report of a long run takes: python benchmarks/report_speed.py [BLOCKS METRICS].

Makes results of 2 x BLOCKS trials in memory (500 blocks and 200 metrics by default), writes them in every format, and
prints seconds (by the clock, and of processor time) and bytes. The page's script is put together once per installation; its cost is printed apart.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/report")]

from examples import simulated  # noqa: E402

from kduel.report import report_format  # noqa: E402
from kduel.report.bundle import vega_script  # noqa: E402

LIMIT = 2.0
"""Seconds that a report of 1,000 trials may take, loading and judging not counted."""


def main(blocks: int, metrics: int) -> None:
    """Time every format."""
    results = simulated(blocks=blocks, metrics=metrics)
    began = time.perf_counter()
    vega_script()
    print(f"the page's script, first time or from the cache: {time.perf_counter() - began:.2f} s")
    print(f"{2 * blocks} trials, {metrics} metrics; at most {LIMIT} s each")
    for name in ("text", "json", "csv", "markdown", "latex", "mail", "html"):
        began, busy = time.perf_counter(), time.process_time()
        size = len(report_format(name).render(results).encode())
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        print(f"{name:10} {seconds:6.2f} s {busy:6.2f} s {size / 1e6:8.2f} MB{'' if busy < LIMIT else '  TOO SLOW'}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3] or ("500", "200")))
