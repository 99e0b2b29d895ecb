"""Guests of a kernel that take turns of two seconds within a step under KVM, one by the TSC, two by kvm-clock: what kvm_clocks.c
says of each, and what the turns record, as JSON. Runs in the test machine: `kvm_held.py KERNEL PROGRAM`."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import msgspec

from kduel.guest.console import read_console
from kduel.guest.cpio import Cpio
from kduel.guest.launch import Launch, Run, run
from kduel.guest.turns import BlockTurns, Seat, run_in_turns
from kduel.guest.vm import VirtualMachine
from kduel.kernels.files.image import kernel_contents

GUESTS = {"tsc": "tsc", "one": "kvm-clock", "other": "kvm-clock"}
"""Names and clocks. By the TSC a step is over as soon as its guest is let go after a wait, so the others are two."""
DEADLINE = 1800
"""Seconds: a guest of KVM in an emulator that has a seventh of a CPU was in its boot after ten minutes."""


def boot(place: Path, name: str, clock: str, seat: Seat) -> Run:
    machine = VirtualMachine(
        accelerator="kvm",
        cpus=1,
        memory_mib=256,
        kernel=place / "vmlinux",
        initrd=place / "initrd",
        cmdline=f"console=ttyS0 quiet panic=-1 no_timer_check clocksource={clock}"
        + " tsc=reliable" * (clock == "tsc"),
    )
    return run(machine, place / name / "console.log", Launch(boot_deadline=DEADLINE, deadline=DEADLINE, seat=seat))


def tell(place: Path, kernel: Path, program: Path) -> dict[str, object]:
    """By guest: how the guest ended, the longest time at once by each of its clocks, and the record of its turns."""
    made = Cpio()
    made.character_device("dev/console", 5, 1)
    made.file("init", program.read_bytes(), 0o755)
    (place / "initrd").write_bytes(made.finish())
    # As a trial boots it: the kernel's own decompression takes minutes there.
    (place / "vmlinux").write_bytes(kernel_contents(kernel))
    for name in GUESTS:
        (place / name).mkdir()
    turns = BlockTurns(len(GUESTS), {"01-a": 2.0}, "1")
    done = run_in_turns([partial(boot, place, *guest) for guest in GUESTS.items()], turns)
    found = {}
    for name, one, seat in zip(GUESTS, done, turns.seats, strict=True):
        lines = read_console(place / name / "console.log")
        told = [line.split() for line in lines if line.startswith("longest ")]
        steps = msgspec.to_builtins(seat.steps)
        longest = {clock: float(seconds) for _, clock, seconds in told}
        found[name] = {"ended": one.ended, "longest": longest, "steps": steps, "console": lines[-20:]}
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps(tell(Path(made), Path(sys.argv[1]), Path(sys.argv[2]))))
