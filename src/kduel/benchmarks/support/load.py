"""Background loads that an observing benchmark (vmstat, perf-stat, cyclictest) may run under, selected by name."""

from __future__ import annotations

from typing import Literal

Load = Literal["idle", "sysbench-cpu", "sysbench-cpu-2x", "hackbench"]

COMMANDS = {
    "sysbench-cpu": 'sysbench cpu --threads="$(nproc)" --time=0 run',
    "sysbench-cpu-2x": 'sysbench cpu --threads="$((2 * $(nproc)))" --time=0 run',
    "hackbench": "hackbench -g 2 -f 5 -l 1000000000",
}
"""One endless thread a CPU; two a CPU, so that the scheduler must choose; 20 processes that pass messages."""
PACKAGES = ("sysbench", "rt-tests")


def described(load: Load) -> str:
    """The load in the meaning of a metric."""
    return "idle" if load == "idle" else f"under {load}"


def under(load: Load, lines: str) -> str:
    """Shell lines that run `lines` while the load runs. They fail where the load ends before `lines` do."""
    if load == "idle":
        return lines
    return f"""\
setsid {COMMANDS[load]} >/dev/null &
load=$!
trap 'kill -KILL "-$load" || :' EXIT
trap 'exit 143' TERM
sleep 1
{lines}\
kill -0 "$load" || {{ echo "the load {load} ended before the measurement did" >&2; exit 1; }}
kill -TERM "-$load"
wait "$load" 2>/dev/null || :
trap - EXIT
"""


def seconds(load: Load) -> float:
    """What the load adds to the time of a script."""
    return 0.0 if load == "idle" else 1.5
