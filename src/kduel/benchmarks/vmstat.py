"""vmstat: how often the whole guest switches tasks and takes interrupts, second by second."""

from __future__ import annotations

from statistics import fmean

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Seconds
from kduel.benchmarks.support.reading import check_unique, read_whole, split_lines
from kduel.core.experiment import Metric


class VmstatParameters(Parameters, frozen=True):
    """`time` samples of one second each."""

    time: Seconds = 3
    load: load.Load = "idle"
    as_published: bool = False
    """Also give all TIME + 1 lines one by one, and their mean, the first one included."""


class Vmstat(Benchmark[VmstatParameters]):
    """The first line that vmstat prints is the average since boot, no sample: it depends on the boot, and on how long
    ago it was. The published study averaged over it; here it is dropped."""

    name = "vmstat"
    summary = "Context switches and interrupts a second of the whole guest, idle or under a load (vmstat)"
    packages = ("procps", *load.PACKAGES)
    label_template = "vmstat-{load}"
    label_formats = {"time": "{}s"}

    def metrics(self, parameters: VmstatParameters) -> tuple[Metric, ...]:
        what = load.describe(parameters.load)
        metrics = [
            Metric("context-switches", "1/s", "lower", f"Task switches of the whole guest, {what}.", "mean"),
            Metric("interrupts", "1/s", "lower", f"Interrupts, the timer's included, {what}.", "mean"),
        ]
        if parameters.as_published:
            about = "Mean with the first line, which is the average since boot: it measures the boot as well."
            metrics.append(Metric("context-switches-as-published", "1/s", "lower", about, "mean"))
        found = with_aspect("activity", *metrics, derived="mean of the lines")
        return (*found, *with_aspect("activity", *lines_metrics(parameters))) if parameters.as_published else found

    def script(self, parameters: VmstatParameters) -> str:
        return load.wrap(parameters.load, f"vmstat -n 1 {parameters.time + 1}\n")

    def parse(self, raw: Raw, parameters: VmstatParameters) -> dict[str, float]:
        lines = split_lines(raw.stdout, "the output")
        if len(lines) < 2 or not lines[0].startswith("procs ") or not {"in", "cs"} <= {*lines[1].split()}:
            raise ParseError("the output does not begin with vmstat's two lines of headings, with `in` and `cs`")
        headings = lines[1].split()
        check_unique(headings, "the column")
        rows = lines[2:]
        if len(rows) != parameters.time + 1:
            raise ParseError(f"there are {len(rows)} lines of figures; asked for were {parameters.time + 1}")
        columns: dict[str, list[float]] = {"in": [], "cs": []}
        for row in rows:
            words = row.split()
            if len(words) != len(headings):
                raise ParseError(f"a line is not {len(headings)} whole numbers: {row[:80]!r}")
            numbers = [read_whole(word, heading) for heading, word in zip(headings, words, strict=True)]
            for heading, column in columns.items():
                column.append(numbers[headings.index(heading)])
        values = {"context-switches": fmean(columns["cs"][1:]), "interrupts": fmean(columns["in"][1:])}
        if parameters.as_published:
            values["context-switches-as-published"] = fmean(columns["cs"])
            values |= {metric.name: cs for metric, cs in zip(lines_metrics(parameters), columns["cs"], strict=True)}
        return values


def lines_metrics(parameters: VmstatParameters) -> list[Metric]:
    about = ["The first line of vmstat: the average since boot."]
    about += [f"The sample of second {number}." for number in range(1, parameters.time + 1)]
    return [Metric(f"context-switches-line-{number}", "1/s", "none", text) for number, text in enumerate(about, 1)]


PLUGIN = Vmstat()
