"""Kernels of a few bytes, each run once through /dev/kvm: what KDuel says of each, as JSON. Runs in the test machine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import tiny_kernels as tiny

from kduel.guest.console import read_console
from kduel.guest.diagnosis import diagnose
from kduel.guest.launch import Launch, run
from kduel.guest.vm import VirtualMachine

CASES = {
    "off": (1, tiny.POWER_OFF),
    "triple fault": (1, tiny.TRIPLE_FAULT),
    "spins, interrupts off": (1, tiny.SPIN),
    "sleeps, interrupts off": (1, tiny.SLEEP_FOR_EVER),
    "spins, its other CPU never started": (2, tiny.SPIN_OPEN),
    "runs where no memory is": (1, tiny.RUN_IN_DEVICE),
}
"""CPUs and code."""


def tell(place: Path, cpus: int, code: bytes) -> dict[str, object]:
    """How one of them ended."""
    place.mkdir()
    initrd, console = place / "initrd", place / "console.log"
    initrd.write_bytes(b"x")
    kernel = tiny.kernel(place / "kernel", tiny.say(b"starting\n") + code)
    machine = VirtualMachine(accelerator="kvm", cpus=cpus, memory_mib=64, kernel=kernel, initrd=initrd, cmdline="")
    done = run(machine, console, Launch(boot_deadline=60, deadline=20))
    found = diagnose(
        read_console(console),
        ended=done.ended,
        ready=True,
        seconds=done.timings["off"],
        stderr=done.stderr,
        stuck=done.stuck,
    )
    return {
        "ended": done.ended, "status": done.exit_status, "stuck": done.stuck, "void": found.void, "message": found.message,
        "seconds": done.timings["off"],
    }  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps({name: tell(Path(made) / str(at), *case) for at, (name, case) in enumerate(CASES.items())}))
