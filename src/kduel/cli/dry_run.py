"""`kduel run --dry-run`: what a study would do, and how long that takes at least, before anything is fetched or booted."""

from __future__ import annotations

from kduel.benchmarks import benchmark
from kduel.cli.shortage import shortage_warning
from kduel.core.format import duration
from kduel.core.text import plural, printable
from kduel.study.load import Study


def describe(study: Study, blocks: str, fleet: str = "") -> str:
    """Contenders, steps with the seconds that they measure on a real CPU, and the time of all trials; `blocks` says how many
    there are, `fleet` the kind of fleet on which they run at once, if any."""
    machine = f"the machine {study.machine}" + (f" of the fleet {fleet}" if fleet else "")
    most = study.blocks.fixed or study.blocks.max
    times = [seconds_of(step.benchmark, step.parameters) for step in study.steps]
    width = max(len(step.label) for step in study.steps)
    lines = [f"{len(study.names)} contenders, the first one is the baseline:"]
    lines += [f"  {contender.name}: {contender.kernel}" for contender in study.contenders]
    lines += ["", f"{plural(len(study.steps), 'step')} of a trial on {machine}; what decides:"]
    lines += [
        f"  {step.label:{width}}  {duration(time):>7}  {', '.join(step.primary)}".rstrip()
        for step, time in zip(study.steps, times, strict=True)
    ]
    trials = most * len(study.names)
    trial = sum(times) + (study.settle.seconds if study.settle.mode == "fixed" else 0)
    lines += [
        "",
        *study.left_out,
        *filter(None, [shortage_warning(study)]),
        f"{blocks[:1].upper()}{blocks[1:]}: at most {plural(trials, 'trial')}, each {duration(trial)} or longer; all "
        f"together {duration(trials * trial)} or longer{', divided among its machines' if fleet else ''}.",
        "Boots, settling and repetitions of disturbed trials come on top, and an emulator takes longer.",
        "Nothing was fetched or booted: leave out --dry-run to begin.",
    ]
    return printable("\n".join(lines) + "\n")


def seconds_of(name: str, parameters: dict[str, object]) -> float:
    """Seconds that a benchmark expects to take with these parameters."""
    known = benchmark(name)
    return known.seconds(known.read_parameters(parameters))
