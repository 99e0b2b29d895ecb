"""The smallest RAM that a kernel boots in, by bisection: each look is a boot."""

from collections.abc import Callable

from msgspec import Struct, structs

from kduel.core.errors import HostError, InputError, NotMeasuredError
from kduel.core.experiment import Settle
from kduel.core.temporary import temporary_directory
from kduel.guest.script import compose
from kduel.guest.size import mebibytes
from kduel.machines import Arm, Outcome, Trial
from kduel.machines.qemu import InQemu

PATIENCE = 4.0
"""A boot fails when it takes so many times as long as the first one, with plenty of RAM."""
LEAST_SECONDS = 20.0


class SmallestRam(Struct, frozen=True, kw_only=True):
    boots_in: int
    """MiB."""
    not_in: int
    """MiB: the largest that was tried without success; 0 where the smallest possible did."""
    why_not: str
    """Outcome of that boot."""
    boots: int
    """Number of boots that it took."""


BootTried = Callable[[int, Outcome, int], None]
"""Called after each boot with the RAM in MiB, what became of it, and the MiB between the bounds now."""


def find_smallest_ram(machine: InQemu, arm: Arm, *, step: int, watch: BootTried) -> SmallestRam:
    """Search up to the machine's own RAM, to `step` MiB. Raises NotMeasuredError where that is too little."""
    settings = machine.settings
    high = mebibytes(settings.memory, "memory")
    if step >= high:
        raise InputError(
            f"a step of {step} MiB is no smaller than the machine's {high} MiB", "Give a smaller --step."
        )
    first = try_boot(machine, arm)
    if first.void:
        raise NotMeasuredError(
            f"{arm.contender.name} does not boot in {high} MiB: {first.void}: {first.message}",
            "Give the machine more: --machine KIND:memory=1G.",
        )
    watch(high, first, high)
    # Too little RAM is why a kernel prints nothing from here on.
    machine.looks_again = False
    deadline = min(settings.boot_deadline, max(LEAST_SECONDS, PATIENCE * first.timings.get("ready", 0)))
    low, why, boots = 0, "", 1
    while high - low > step:
        middle = (low + high) // 2 // step * step
        middle = middle if low < middle < high else low + step
        try:
            outcome = try_boot(machine.with_settings(memory=f"{middle}M", boot_deadline=deadline), arm)
        except HostError as error:
            # With more RAM it started: some boards have nowhere to put the initial RAM disk then.
            outcome = Outcome(void="no-start", message=error.message.splitlines()[0])
        boots += 1
        if outcome.void:
            low, why = middle, f"{outcome.void}: {outcome.message}"
        else:
            high = middle
        watch(middle, outcome, high - low)
    return SmallestRam(boots_in=high, not_in=low, why_not=why, boots=boots)


def try_boot(machine: InQemu, arm: Arm) -> Outcome:
    """One boot with a script that does nothing. The message of one that fails is the line that shows why."""
    script = compose([], settle=Settle(mode="fixed", seconds=0))
    with temporary_directory() as into:
        (into / "guest.sh").write_text(script, "utf-8")
        deadline = machine.settings.boot_deadline + 60
        outcome = machine.boot(Trial(id="ram", arm=arm, script=script, deadline=deadline, into=into))
    if not outcome.void or "done" in outcome.timings:
        # It came to the script's end; whatever else a trial must be does not matter here.
        return structs.replace(outcome, void="")
    # The first line of what a sign of trouble was found in, else the last that came.
    lines = outcome.message.splitlines() or [""]
    said = [line for line in lines if line.startswith("QEMU said: ")]
    telling = said or (lines[-1:] if "last lines" in lines[0] else lines[1:2]) or lines
    return structs.replace(outcome, message=telling[0].strip()[:160])
