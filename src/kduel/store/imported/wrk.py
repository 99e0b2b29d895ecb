"""Output of wrk 4, with latencies by --latency: a trial is one call, so that calls are appended to one file."""

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.experiment import Statistic
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, check_complete, location_text, text_lines
from kduel.store.imported.values_csv import number

BEGIN = re.compile(r"Running (\S+) test @ (\S+)")
ASKED = re.compile(r" *(\d+) threads and (\d+) connections")
PERCENTILE = re.compile(r"\s+(50|99)(?:\.000)?%\s+([0-9.]+)(us|ms|s|m) *")
"""wrk pads a unit of one letter with a blank; wrk2 has decimals."""
OTHERWISE = re.compile(r"\s+(?:50|99)(?:\.000)?%\s+(\S*?)(us|ms|s|m|h) *")
"""A percentile that may be none: hours, and what is no number."""
UNCORRECTED = "Uncorrected Latency"
"""Heads wrk2's second distribution, of -U."""
RATE = re.compile(r"Requests/sec:\s+(\S+)\s*")
ERRORS = re.compile(r"\s*(Socket errors: .*|Non-2xx or 3xx responses: .*)")
MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
METRICS: dict[str, tuple[str, Statistic]] = {"50": ("latency-p50", "median"), "99": ("latency-p99", "p99")}


class Wrk(ForeignFormat):
    name = "wrk"
    summary = "what wrk --latency prints (>>FILE), a trial being one call"
    calls = True
    begins = BEGIN.pattern
    holds = (" threads and ",)

    def check(self, path: Path, contender: str | None) -> None:
        corrected = True
        for line, text in text_lines(path):
            corrected = (corrected or BEGIN.fullmatch(text) is not None) and UNCORRECTED not in text
            if corrected and (found := OTHERWISE.fullmatch(text)):
                if found[2] not in MILLISECONDS:
                    raise rounding_error(path, line, text)
                number(path, line, found[1])
            elif (found := RATE.fullmatch(text)) and not number(path, line, found[1]):
                raise InputError(
                    f"{location_text(path, line)}: no request was answered",
                    "Remove this call from the file, and repeat it.",
                )

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: dict[str, int] = {}
        place, complete, settings, corrected = "", True, list[tuple[str, str]](), True
        for line, text in text_lines(path):
            if found := BEGIN.fullmatch(text):
                check_complete(path, line, complete, "Requests/sec:")
                place, complete, settings, corrected = found[2], False, [("duration", found[1])], True
                trials[place] = trials.get(place, 0) + 1
            elif found := ASKED.fullmatch(text):
                settings += zip(("threads", "connections"), found.groups(), strict=True)
            elif found := ERRORS.fullmatch(text):
                raise InputError(
                    f"{location_text(path, line)}: a call had errors: {found[1][:80]}",
                    "Remove this call from the file, and repeat it with fewer connections.",
                )
            elif UNCORRECTED in text:
                corrected = False
            elif corrected and (found := PERCENTILE.fullmatch(text)):
                if found[3] not in MILLISECONDS:
                    raise rounding_error(path, line, text)
                metric, statistic = METRICS[found[1]]
                yield ForeignRow(
                    str(contender), trials.get(place, 0), place, metric, "ms", "lower",
                    number(path, line, found[2]) * MILLISECONDS[found[3]], line, statistic, least=0.0,
                    aspect="request-latency", settings=(*settings,),
                )  # fmt: skip
            elif found := RATE.fullmatch(text):
                complete = True
                yield ForeignRow(
                    str(contender), trials.get(place, 0), place, "requests-per-second", "1/s", "higher",
                    number(path, line, found[1]), line, "mean", least=0.0, aspect="throughput",
                    settings=(*settings,),
                )  # fmt: skip
        check_complete(path, "its end", complete, "Requests/sec:")


def rounding_error(path: Path, line: int, text: str) -> InputError:
    """The refusal of a percentile that says too little."""
    return InputError(
        f"{location_text(path, line)}: wrk rounds {text.strip()!r} to minutes or hours",
        "Remove this call from the file, and repeat it.",
    )


PLUGIN = Wrk()
