"""Background loads that a step may run under, selected by name: part of the trial, and recorded in it."""

from typing import Literal

from kduel.core.experiment import Step

Load = Literal["idle", "sysbench-cpu", "sysbench-cpu-2x", "hackbench", "disk", "timers"]

COMMANDS = {
    "sysbench-cpu": 'sysbench cpu --threads="$(nproc)" --time=0 run',
    "sysbench-cpu-2x": 'sysbench cpu --threads="$((2 * $(nproc)))" --time=0 run',
    "hackbench": "hackbench -g 2 -f 5 -l 1000000000",
    "disk": 'stress-ng --hdd 1 --hdd-bytes 16M --temp-path "${KDUEL_SCRATCH:-.}" --timeout 0',
    "timers": 'stress-ng --timer "$(nproc)" --timer-freq 5000 --timeout 0',
}
"""One endless thread a CPU; two a CPU, so that the scheduler must choose; 20 processes that pass messages; files written and
deleted on the scratch disk; a process for each CPU with a timer of 5 kHz, for interrupts and signals."""
PACKAGES = ("sysbench", "rt-tests", "stress-ng")
RECORD = "load"
"""File in the step's directory: totals of /proc/stat before and after."""
NEED_SCRATCH = ("disk",)


def of_step(step: Step, parameters: object) -> str:
    """Name of the load that a step runs under: its own, or its benchmark's parameter; `idle` or empty where there is none."""
    return step.load or str(getattr(parameters, "load", ""))


def describe(load: Load) -> str:
    """Describe the load for the meaning of a metric."""
    return "idle" if load == "idle" else f"under {load}"


def wrap(load: str, lines: str) -> str:
    """Shell lines that run `lines` while the load runs. They fail where the load ends before `lines` do."""
    if load == "idle":
        return lines
    totals = "grep -E '^(cpu |ctxt|intr|softirq)' /proc/stat | cut -c1-120"
    return f"""\
{{ echo "load {load}"; {totals}; }} >"${{KDUEL_STEP:-.}}/{RECORD}"
setsid {COMMANDS[load]} >/dev/null &
load=$!
trap 'kill -KILL "-$load" || :' EXIT
trap 'exit 143' TERM
sleep 1
{lines}\
kill -0 "$load" || {{ echo "the load {load} ended before the measurement did" >&2; exit 1; }}
{totals} >>"${{KDUEL_STEP:-.}}/{RECORD}"
kill -TERM "-$load"
wait "$load" 2>/dev/null || :
trap - EXIT
"""


def extra_seconds(load: Load) -> float:
    return 0.0 if load == "idle" else 1.5
