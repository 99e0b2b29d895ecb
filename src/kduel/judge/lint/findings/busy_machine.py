"""Other work on a real machine that delays only the contenders without a real-time policy."""

from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.core.text import visible
from kduel.judge.lint.finding import Finding
from kduel.schedulers.policy import is_realtime

BUSY = 0.5
"""Load average before the first trials, from which on it is said: KDuel's own start makes less."""


def busy_machine(results: Results, _samples: list[Samples]) -> Iterator[str]:
    """The load before the first trial of each contender, the least of them: later ones have the benchmarks' own."""
    loads = [load for one in results.environment.values() if (load := load_of(one)) is not None]
    realtime = [visible(one.name, 200) for one in results.contenders if is_realtime(one.policy)]
    others = [visible(one.name, 200) for one in results.contenders if not is_realtime(one.policy)]
    if loads and min(loads) >= BUSY and realtime and others:
        yield (
            f"Other work ran on the machine (a load of {min(loads):g} before the first trials). It takes time from "
            f"{', '.join(others)}, and hardly from {', '.join(realtime)}, whose real-time policy goes first: the difference has "
            "that in it."
        )


def load_of(environment: dict[str, object]) -> float | None:
    """The load average that a trial's conditions have; None where there is none."""
    moving = environment.get("temperatures")
    text = moving.get("load") if isinstance(moving, dict) else None
    try:
        return float(str(text))
    except ValueError:
        return None


PLUGIN = Finding(
    name="busy-machine", cause="Other work hit only some of the contenders", weight=78,
    meaning="A real machine had other work before the first trials, and some contenders have a real-time policy and some have not: "
    "tasks of a real-time policy run before that work, the others beside it. The difference is that of the policies on a busy "
    "machine.",
    remedy="End the other work, or give a limit, `load_below = 0.3` in `[machine.conditions]`, and measure again.",
    check_run=busy_machine,
)  # fmt: skip
