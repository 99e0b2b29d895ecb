"""boot-timeline: how long each stage of the trial's own boot took, by the host's clock."""

from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.bootlog import INIT, MARKS, STAGES, Init, console_lines, timeline
from kduel.core.experiment import Metric

Stage = Literal["load", "kernel", "start", "userspace"]
ABOUT = {
    "load": "From the machine's start, or the boot loader's line about loading, to the line 'Linux version'.",
    "kernel": "From 'Linux version' to 'Freeing unused kernel memory'.",
    "start": "From there to the start of the first process: {}.",
    "userspace": "From there to `login:`, or to the beginning of the trial's script.",
}
SHOWN = 6
"""Lines of a console that an error quotes at most."""


class BootTimelineParameters(Parameters, frozen=True):
    """`stages`: leave out `start` and `userspace` where the console does not report when init starts; what lies between
    two stages that are asked for belongs to the first. `init` is the line that marks it, the same for all
    contenders: "kernel" is `Run ... as init process`, which kernels before 4.18 do not print; "greeting" is the
    first output of init itself."""

    stages: tuple[Stage, ...] = ("load", "kernel", "start", "userspace")
    init: Init = "kernel"


class BootTimeline(Benchmark[BootTimelineParameters]):
    """The stages add up to the whole. They are reported one by one: sums hide that one of them was quicker."""

    name = "boot-timeline"
    summary = "Stages of the boot by the host's clock: load, kernel, start of init, userspace"
    trial_files = ("console.log",)
    label_template = "boot"
    duration = 0.1

    def metrics(self, parameters: BootTimelineParameters) -> tuple[Metric, ...]:
        between = "difference of two of the console's times"
        whole = Metric(
            "total", "s", "lower", "From the first to the last of these moments.", derived=between, aspect="boot-time"
        )
        return (
            whole,
            *(
                Metric(stage, "s", "lower", ABOUT[stage].format(INIT[parameters.init][1]), derived=between)
                for stage in STAGES
                if stage in parameters.stages
            ),
        )

    def script(self, parameters: BootTimelineParameters) -> str:
        # The host has seen it all by now.
        return ":\n"

    def parse(self, raw: Raw, parameters: BootTimelineParameters) -> dict[str, float]:
        if "console.log" not in raw.files:
            raise ParseError("this machine keeps no console log, so the start of each stage is unknown")
        lines = console_lines(raw.files["console.log"])
        moments = timeline(lines, parameters.init).moments
        wanted = [STAGES[stage] for stage in STAGES if stage in parameters.stages]
        if not wanted:
            raise ParseError("no stage is asked for")
        edges = [start for start, _ in wanted] + [wanted[-1][1]]
        told = {name: words for name, _, words in MARKS} | {"begin": MARKS[0][2], "init": INIT[parameters.init][1]}
        missing = [edge for edge in edges if edge not in moments]
        if missing:
            shown = "; ".join(line.text[:100] for line in lines[-SHOWN:] if line.text) or "nothing"
            # A kernel that does not print the line is not one that did not get there.
            other = 'it has one of init itself: for all contenders, set init = "greeting"; '
            hint = other if missing == ["init"] and "init" in timeline(lines, "greeting").moments else ""
            raise ParseError(
                f"the console has no line {told[missing[0]]!r} in its place; {hint}it ends with: {shown}"
            )
        names = [stage for stage in STAGES if stage in parameters.stages]
        values = {"total": moments[edges[-1]] - moments[edges[0]]}
        return values | {name: moments[edges[n + 1]] - moments[edges[n]] for n, name in enumerate(names)}


PLUGIN = BootTimeline()
