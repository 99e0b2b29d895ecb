"""The test machine with working KVM: QEMU's emulator emulates AMD's virtualisation with nested paging.

What runs in its guests runs through /dev/kvm as on hardware; their speed is that of an emulator in an emulator.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import build_environment
from build_emulator import emulator
from build_machine import COMMAND_LINE, KERNELS
from own_machine import LATEST, Own
from real_machine import SOURCE

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import resolve

CONTENDERS = ("debian:6.1-cloud", "debian:6.12-cloud")
USER = "plain"
"""In the group kvm, and nothing else."""
CACHE = "/dev/shm/cache"
PACKED = "/dev/shm/bundle.tar"
FREQUENCY = r"""
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(void) {
    double began = now(), passed;
    unsigned long long ticks = __rdtsc();
    while ((passed = now() - began) < 1) ;
    printf("%.0f\n", (__rdtsc() - ticks) / passed / 1e3);
}
"""


def tsc_khz(place: Path) -> str:
    """Frequency of this host's TSC, which QEMU's emulator passes on, in kHz."""
    subprocess.run(["cc", "-O1", "-x", "c", "-", "-o", place / "frequency"], input=FREQUENCY, text=True, check=True)
    return subprocess.run([place / "frequency"], capture_output=True, text=True, check=True).stdout.strip()


class Facts:
    """Lines of `name: value`, where a name may come several times."""

    def __init__(self, text: str) -> None:
        self.lines = [
            (name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in text.splitlines())
        ]

    def __getitem__(self, wanted: str) -> str:
        return next(value for name, value in self.lines if name == wanted)

    def every(self, wanted: str) -> list[str]:
        """All values of that name."""
        return [value for name, value in self.lines if name == wanted]


class Process(NamedTuple):
    """A process as /proc tells it."""

    whole: Facts
    threads: list[Facts]

    @property
    def cpus(self) -> list[Facts]:
        """The threads in which a guest has run."""
        return [thread for thread in self.threads if int(thread["guest"]) > 0]


class Faulty(NamedTuple):
    """A run whose guests were harmed: its process here, the first guest's QEMU as it was, and the process id of the second one's."""

    process: subprocess.Popen[str]
    killed: Process
    hung: int


class KvmMachine(Own):
    """With KDuel, QEMU and a filled cache on it; kvm_amd is loaded, and the group `kvm` may open /dev/kvm."""

    # With a thread for each CPU, one of them was seen halted with interrupts blocked for ever (its GIF was 0).
    accelerator = "tcg,thread=single"
    memory = "6144M"
    processor = "max,+svm,+npt,-la57"
    boot_index = 1
    packages = ("cpio", "e2fsprogs", "lz4", "qemu-system-x86", "xz-utils", "zstd")

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.resets = 0
        self.emulator = emulator(Cache())
        bundle = place / "bundle.tar"
        words = [sys.executable, "-m", "kduel", "bundle", *CONTENDERS, "--quiet", "--output", str(bundle)]
        subprocess.run(words, check=True, cwd=SOURCE)
        # On a busy host its kernel measures the TSC ten times slower than it is, and tells its guests the same.
        image = resolve(KERNELS[0], cache=Cache(), progress=Progress()).image
        line = f"{COMMAND_LINE} tsc_early_khz={tsc_khz(place)}"
        self.more += ("-kernel", str(image), "-append", line)
        self.more += ("-drive", f"if=none,id=bundle,format=raw,readonly=on,file={bundle}",
                      "-device", "virtio-blk-pci,drive=bundle")  # fmt: skip

    def furnish(self) -> None:
        super().furnish()
        self.must(f"modprobe kvm_amd nested=0 vgif=0 && groupadd -f kvm && usermod -aG kvm {USER} && chmod 755 /root")
        self.must(f"cat /dev/vdb >{PACKED} && KDUEL_CACHE={CACHE} kduel bundle --unpack {PACKED} && rm {PACKED}")
        self.close_device()
        self.open_device()

    def close_device(self) -> None:
        """As a container or an odd rule of udev leaves it."""
        self.must("chgrp root /dev/kvm && chmod 600 /dev/kvm")

    def open_device(self) -> None:
        """By what KDuel advises."""
        self.must("groupadd -f kvm; chgrp kvm /dev/kvm; chmod 660 /dev/kvm")

    def must(self, command: str) -> str:
        """Run a command there that has to succeed; what it prints."""
        status, said = self.run(command)
        assert status == 0, said
        return said

    def run(self, command: str) -> tuple[int, str]:
        """Exit status and all that was said."""
        done = subprocess.run(
            self.argv(f"{{ {command}; }} 2>&1"), capture_output=True, text=True, timeout=LATEST, check=False
        )
        return done.returncode, done.stdout

    def start(self, words: str, user: str = USER, how: str = "") -> subprocess.Popen[str]:
        """Start `kduel WORDS` there, by `how`; `signal` reaches it. The cache is the user's who began last."""
        # What changes hands is hashed anew, which takes minutes there.
        self.must(f"find {CACHE} ! -user {user} -exec chown -h {user}: {{}} +; rm -f /tmp/{user}.pid")
        inner = f"echo $$ >/tmp/{user}.pid; cd /tmp; export KDUEL_CACHE={CACHE}; exec {how} kduel {words} 2>&1"
        command = f"exec runuser -u {user} -- sh -c {shlex.quote(inner)}"
        return subprocess.Popen(
            self.argv(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def kduel_as(self, user: str, words: str) -> tuple[int, str]:
        """Exit status and all that was said by `kduel WORDS` there."""
        process = self.start(words, user)
        said, _ = process.communicate(timeout=LATEST)
        return process.returncode, said

    def start_until_step(self, words: str, run: str) -> tuple[subprocess.Popen[str], int]:
        """Start a run and wait for a step of its first guest; the run's process here, and that of the guest's QEMU there."""
        while True:
            process = self.start(f"{words} --out {run}")
            try:
                return process, self.guest_in_step(run)
            except AssertionError:
                if not self.drop_if_reset(run):
                    raise

    def drop_if_reset(self, run: str) -> bool:
        """True, and the run is gone, where a guest reset itself, at most twice in a machine's life.

        One of some 30 guests did so before its first process, by QEMU 10.0.13; the cause is not known.
        """
        if not any(trial["void"] and trial["void"]["code"] == "silent-exit" for trial in self.records(run)):
            return False
        self.resets += 1
        assert self.resets <= 2, f"guests reset themselves {self.resets} times"
        warnings.warn(f"a guest of {run} reset itself", stacklevel=2)
        self.must(f"rm -rf {run}")
        return True

    def signal(self, name: str, user: str = USER) -> None:
        """Send a signal to what `start` started."""
        self.must(f"kill -{name} $(cat /tmp/{user}.pid)")

    def guest_in_step(self, run: str, user: str = USER) -> int:
        """Wait until the trial that is under way has begun a step; the process id of its QEMU."""
        step = f"grep -qs 'kduel: step' {run}/trials/.new-*/console.log"
        return self.guest_when(step, user)

    def guest_when(self, condition: str, user: str = USER) -> int:
        """Wait for a condition of the run that `start` started; the process id of its QEMU, or of the first one."""
        self.until(f"process=$(cat /tmp/{user}.pid) && {{ {condition} || ! kill -0 $process; }}")
        return int(self.must(f"pgrep -x -P $(cat /tmp/{user}.pid) qemu-system-x86").split()[0])

    def add_program(self, source: Path, path: str) -> str:
        """Bring a C program along, without libraries; its SHA-256."""
        made = self.place / source.stem
        subprocess.run(["cc", "-static", "-O1", source, "-o", made], check=True)
        with made.open("rb") as stream:
            subprocess.run(self.argv(f"cat >{path} && chmod 755 {path}"), stdin=stream, timeout=LATEST, check=True)
        return hashlib.sha256(made.read_bytes()).hexdigest()

    def run_tiny_kernels(self) -> dict[str, dict[str, Any]]:
        """What kvm_tiny.py prints there."""
        self.write("/tmp/tiny_kernels.py", Path(__file__).with_name("tiny_kernels.py").read_text())
        return self.run_here("kvm_tiny.py")

    def run_held_guests(self) -> dict[str, dict[str, Any]]:
        """What kvm_held.py prints there."""
        self.add_program(Path(__file__).with_name("kvm_clocks.c"), "/tmp/kvm-clocks")
        return self.run_here(f"kvm_held.py {CACHE}/kernels/debian-6.12*/vmlinuz /tmp/kvm-clocks")

    def run_here(self, words: str) -> dict[str, dict[str, Any]]:
        """The JSON that a program of this directory prints there, run by KDuel's Python."""
        name = words.split()[0]
        self.write(f"/tmp/{name}", Path(__file__).with_name(name).read_text())
        done = subprocess.run(
            self.argv(f"cd /tmp && PYTHONPATH=/root/src {build_environment.PLACE}/bin/python {words}"),
            stdout=subprocess.PIPE, text=True, timeout=LATEST, check=True,
        )  # fmt: skip
        found: dict[str, dict[str, Any]] = json.loads(done.stdout)
        return found

    def look_at(self, process: int) -> Process:
        """What the kernel there tells of a process."""
        script = (
            f"cd /proc/{process} && cat status && readlink fd/* | sed 's/^/file:\\t/'; tr '\\0' ' ' <cmdline | sed 's/^/argv:\\t/'; echo; "
            "for t in task/*; do echo thread; cat $t/status $t/sched; "
            "echo guest: $(sed 's/.*) //' $t/stat | cut -d' ' -f41); done"
        )
        whole, *threads = self.must(script).split("\nthread\n")
        return Process(Facts(whole), [Facts(text) for text in threads])

    def until(self, condition: str) -> str:
        """Wait for a command to succeed there; what it prints then."""
        end = time.monotonic() + LATEST
        while True:
            status, said = self.run(condition)
            if status == 0:
                return said
            assert time.monotonic() < end, said
            time.sleep(1)
