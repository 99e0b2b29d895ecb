"""Height and weight of the report's page of each kind of run: python perf/page_sizes.py [CHECKOUT...].

Makes the pages of `tests/support/pages.py` with the code of each checkout of KDuel (this one alone by default), opens
them in Chromium in windows of 1280 and 400 columns, and prints a table of docs/evidence/pages.md: pixels of the whole
page, and pixels above the first part that is folded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/support")]

from browser import PROGRAMS, Browser  # noqa: E402

WIDTHS = (1280, 400)
MAKE = """
import sys
from pathlib import Path
from pages import KINDS
from kduel.report import report_format
for kind, make in KINDS.items():
    page = report_format("html").render(make(Path(sys.argv[1]) / kind))
    (Path(sys.argv[1]) / f"{kind}.html").write_text(page, "utf-8")
"""
HEIGHTS = """(() => {
  const folds = [...document.querySelectorAll("details:not([open])")].filter((one) => one.checkVisibility());
  const whole = document.documentElement.scrollHeight;
  return [whole, Math.round(folds.length ? folds[0].getBoundingClientRect().top + scrollY : whole)];
})()"""


def make_pages(checkout: Path, into: Path) -> None:
    """Make the pages with the code of a checkout."""
    found = os.environ | {"PYTHONPATH": os.pathsep.join(str(checkout / one) for one in ("src", "tests/support"))}
    subprocess.run([sys.executable, "-P", "-c", MAKE, into], env=found, check=True)


def measure_pages(place: Path, browser: Browser) -> dict[str, list[int]]:
    """By kind, bytes, then pixels of the whole and above the first fold, in each window."""
    sizes = {}
    for page in sorted(place.glob("*.html")):
        sizes[page.stem] = [page.stat().st_size]
        for width in WIDTHS:
            browser.resize(width, 900)
            browser.open(page)
            sizes[page.stem] += browser.evaluate(HEIGHTS)
    return sizes


def main(checkouts: list[Path]) -> None:
    """Print the table."""
    found = []
    executable = next(filter(None, map(shutil.which, PROGRAMS)))
    with tempfile.TemporaryDirectory() as name, Browser(executable) as browser:
        for number, checkout in enumerate(checkouts):
            place = Path(name) / str(number)
            place.mkdir()
            make_pages(checkout.resolve(), place)
            found.append(measure_pages(place, browser))
    heads = ["kB", *(f"{what} at {width}" for width in WIDTHS for what in ("height", "open"))]
    print(f"| kind | {' | '.join(heads)} |\n|---|{'--:|' * len(heads)}")
    for kind in dict.fromkeys(kind for sizes in found for kind in sizes):
        cells = [sizes.get(kind, [None] * len(heads)) for sizes in found]
        rows = [
            [f"{size / 1000:.0f}" if size else "–", *("–" if one is None else f"{one:,}" for one in rest)]
            for size, *rest in cells
        ]
        print(f"| {kind} | {' | '.join(' → '.join(column) for column in zip(*rows, strict=True))} |")


if __name__ == "__main__":
    main([Path(one) for one in sys.argv[1:]] or [ROOT])
