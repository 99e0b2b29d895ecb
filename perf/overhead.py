"""What a trial costs besides booting, settling and benchmarks; and boot to shell against virtme-ng, side by side.

    python perf/overhead.py [--kernel debian:6.1] [--trials 5] [--memory 4096M] [--scratch] [--virtme-ng]

With --virtme-ng, version 1.42 is installed from the package index into a throw-away environment. Its guest has the same
kernel, CPUs, memory and accelerator, and runs `true`; each tool's time is from its start to its end, the guest's
power-off included, and the two take turns; both show the whole console.

Own overhead is the wall time of Machine.boot less: booting (QEMU started until the script begins), settling, and the
steps' own seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kduel.core.cache import Cache
from kduel.core.experiment import Contender, Settle
from kduel.core.progress import Progress
from kduel.guest.script import ScriptStep, compose
from kduel.kernels import resolve
from kduel.machines import Arm, Machine, Needs, Trial
from kduel.machines.qemu import PLUGIN

LIMIT = 0.3
"""Seconds of own overhead that a trial may have."""


class Loud(Progress):
    """Says warnings on standard error."""

    def warn(self, text: str) -> None:
        print(f"warning: {text}", file=sys.stderr)


def one_trial(machine: Machine, arm: Arm, script: str) -> dict[str, float]:
    """Where the seconds of one trial went."""
    with tempfile.TemporaryDirectory() as name:
        into = Path(name)
        began = time.monotonic()
        outcome = machine.boot(Trial(id="overhead", arm=arm, script=script, deadline=300, into=into))
        wall = time.monotonic() - began
        if outcome.void:
            sys.exit(f"{outcome.void}: {outcome.message}")
        settled = json.loads((into / "settle.json").read_text())["seconds"]
        steps = sum(json.loads(path.read_text())["seconds"] for path in into.glob("[0-9]*/exit.json"))
    at = outcome.timings
    return {
        "before QEMU": wall - at["off"],
        "boot": at["ready"],
        "script, less settling and steps": at["done"] - at["ready"] - settled - steps,
        "results home": at["home"] - at["done"],
        "power off": at["off"] - at["home"],
        "own overhead": wall - at["ready"] - settled - steps,
        "boot, empty script, off": wall - settled - steps,
    }


def virtme(environment: Path, place: Path, image: Path, cpus: int, memory: str) -> float:
    """Seconds that virtme-ng takes to boot the kernel, run `true` and end."""
    command = [
        *(str(environment / "bin/vng"), "--run", str(image), "--disable-kvm"),
        *("--cpus", str(cpus), "--memory", memory, "--verbose", "--exec", "true"),
    ]
    reach = {**os.environ, "PATH": f"{environment}/bin:{os.environ['PATH']}"}
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=place, env=reach, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600
    )
    seconds = time.monotonic() - began
    # Where the host has no udev, its guest finds no port for the script's output and status: ask the console instead.
    said = done.stdout + done.stderr
    if done.returncode and "script exited with code 0" not in said:
        sys.exit(f"virtme-ng ended with {done.returncode}: {said[-2000:]}")
    return seconds


def install_virtme(environment: Path) -> None:
    """Version 1.42, by itself."""
    subprocess.run([sys.executable, "-I", "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin/pip", "install", "--quiet", "virtme-ng==1.42"], check=True)


def main() -> None:
    """Measure and print; ends with 1 where the own overhead is above its limit."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--kernel", default="debian:6.1")
    arguments.add_argument("--trials", type=int, default=5)
    arguments.add_argument("--memory", default="4096M")
    arguments.add_argument("--accel", default="tcg")
    arguments.add_argument("--scratch", action="store_true")
    arguments.add_argument("--virtme-ng", action="store_true")
    asked = arguments.parse_args()

    cache, progress = Cache(), Loud()
    kernel = resolve(asked.kernel, cache=cache, progress=progress)
    arm = Arm(Contender(kernel=asked.kernel), kernel)
    settings = PLUGIN.read_settings({"accel": asked.accel, "memory": asked.memory})
    began = time.monotonic()
    machine = PLUGIN.prepare(settings, [arm], Needs(scratch=asked.scratch), cache=cache, progress=progress)
    print(f"{kernel.release}, {machine.facts['accelerator']}, QEMU {machine.facts['qemu']}")
    print(f"load average {os.getloadavg()[0]:.1f}; preparing (cached) {time.monotonic() - began:.2f} s")
    script = compose([ScriptStep(label="empty", script="true", timeout=60)], settle=Settle(mode="fixed", seconds=5))

    rows: list[dict[str, float]] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if asked.virtme_ng:
            install_virtme(place / "venv")
            (place / "root/boot").mkdir(parents=True)
            image = Path(shutil.copy(kernel.image, place / f"root/boot/vmlinuz-{kernel.release}"))
            if kernel.modules:
                shutil.copytree(kernel.modules, place / f"root/lib/modules/{kernel.release}", symlinks=True)
            virtme(place / "venv", place, image, settings.cpus, asked.memory)  # writes its caches
        for _ in range(asked.trials):
            rows.append(one_trial(machine, arm, script))
            if asked.virtme_ng:
                theirs.append(virtme(place / "venv", place, image, settings.cpus, asked.memory))
    for name in rows[0]:
        values = [row[name] for row in rows]
        print(f"{name:32} median {statistics.median(values):6.2f} s  ({min(values):.2f} to {max(values):.2f})")
    if theirs:
        print(f"{'virtme-ng 1.42, same kernel':32} median {statistics.median(theirs):6.2f} s  "
              f"({min(theirs):.2f} to {max(theirs):.2f})")  # fmt: skip
    if statistics.median(row["own overhead"] for row in rows) > LIMIT:
        sys.exit(f"the own overhead is above {LIMIT} s")


if __name__ == "__main__":
    main()
