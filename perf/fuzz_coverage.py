"""Fuzzes one parser or importer guided by the code that its inputs reach. Needs `pip install atheris` (CPython to 3.13).

    python perf/fuzz_coverage.py NAME [-max_total_time=60] [-max_len=65536]

NAME as in perf/fuzz_parsers.py (`schbench`, `import csv`). Begins with the captured outputs, changes them where that
reaches new branches of the parser, and holds against each result what holds of any output: no error but the parser's
own, nothing infinite or out of a metric's range, no value that is not in the text. libFuzzer's options are taken as
they are; it stops at the first finding and leaves the input in the present directory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["kduel.benchmarks", "kduel.store.imported"]):
    from fuzz_parsers import targets

    CASES = targets().get(sys.argv[1] if len(sys.argv) > 1 else "", [])

from fuzzing import Mutation, finding

PLACES = [(case, name) for case in CASES for name, text in case.texts.items() if text]


def one_input(data: bytes) -> None:
    """The first two bytes say which text of which sample the rest replaces."""
    if len(data) < 2:
        return
    case, name = PLACES[int.from_bytes(data[:2], "big") % len(PLACES)]
    text = data[2:].decode("utf-8", errors="replace")
    if fault := finding(case, Mutation("coverage", case.texts | {name: text}, strict=False)):
        raise AssertionError(f"{case}, {name}: {fault}")


def main() -> None:
    if not PLACES:
        sys.exit("Name a parser that has samples; `perf/fuzz_parsers.py --mutations 0` lists them.")
    with tempfile.TemporaryDirectory() as corpus:
        for number, (case, name) in enumerate(PLACES):
            (Path(corpus) / str(number)).write_bytes(number.to_bytes(2, "big") + case.texts[name].encode())
        atheris.Setup([sys.argv[0], corpus, *sys.argv[2:]], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
