"""The machine `qemu`: each trial in a fresh virtual machine on this host, hardware-assisted where that works."""

from __future__ import annotations

import copy
import os
import platform
import shlex
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Unpack

from msgspec import Meta, structs

from kduel.core import untrusted
from kduel.core.cache import Cache, as_cache_error
from kduel.core.experiment import EMULATOR_FAULT
from kduel.guest import confine, envelope, initramfs, priority, probe, scratch
from kduel.guest.busybox import busybox
from kduel.guest.console import read_console
from kduel.guest.diagnosis import diagnose, findings_in
from kduel.guest.emulator import explain_fault, qemu_version
from kduel.guest.environment import environments_in, read_environment
from kduel.guest.gates import clock_trouble, gate
from kduel.guest.initramfs import Base
from kduel.guest.launch import Run, run
from kduel.guest.root import Root, root_image
from kduel.guest.size import Size, mebibytes
from kduel.guest.vm import PLATFORMS, VirtualMachine, Wiring
from kduel.kernels import Kernel
from kduel.kernels.files.image import images_entered_alike
from kduel.machines import Arm, Machine, MachineKind, MachineSettings, Means, Needs, Outcome, Seconds, Trial
from kduel.machines.host.processors import host_cpu, host_cpus, is_virtual

TCG_WARNING = (
    "Trials ran in an emulator (QEMU TCG): a difference in time between kernels need not exist on hardware. Every "
    "instruction is translated, and times have a cost model of their own (a context switch, a page-table change or a "
    "clock read costs far more than on a real CPU). Counts, sizes and behaviour are valid."
)

NESTED_WARNING = (
    "Trials ran by KVM in a host that is a virtual machine itself: whatever leaves the guest (a timer, an interrupt to another "
    "CPU, a halt, access to a disk) goes through two hypervisors and costs many times what it costs on hardware, so times of "
    "wake-ups, context switches between CPUs and files are theirs. A computation within one CPU is not affected."
)
HALT_POLL = Path("/sys/module/kvm/parameters/halt_poll_ns")

MAX_WAIT_PCT = {"kvm": 10.0, "tcg": 25.0}
"""By accelerator: an emulator's own threads make its CPUs wait a little on a quiet host too."""
Described = TypeVar("Described", bound=VirtualMachine)


class QemuSettings(MachineSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The [machine] table of a study with kind = "qemu"."""

    cpus: Annotated[int, Meta(ge=1, le=255)] = 2
    memory: Size = "4096M"
    disk: Size = "8G"
    """The scratch disk, fresh for each trial; sparse on the host."""
    disk_cache: Literal["writeback", "none", "unsafe"] = "writeback"
    """QEMU's cache mode of the scratch disk; `unsafe` leaves the host's disk out of what fsync costs."""
    accel: Literal["auto", "kvm", "tcg"] = "auto"
    clocksource: str = "tsc"
    """Asked of every kernel by its command line; a trial that has another one is void."""
    cmdline: str = ""
    """Words added to every contender's command line."""
    priority: Literal["high", "normal"] = "high"
    """True if QEMU gets weight against other work on the host, as far as the host permits."""
    boot_deadline: Seconds = 180.0
    """Seconds from start to the script."""
    suite: str = "bookworm"
    """Of the guest root."""


class GuestMachine(Machine):
    """A machine whose trials boot a guest of KDuel's own, which runs one script and sends an envelope of results.

    How the guest is booted is for the subclasses: in QEMU (`InQemu`), or on a real board.
    """

    def __init__(
        self, settings: QemuSettings, bases: Mapping[str, Base], images: Mapping[str, Path], cache: Cache
    ) -> None:
        """`bases` are the initial RAM disks by the kernel's parts, and `images` the kernels by SHA-256."""
        self.settings, self.bases, self.images, self.cache = settings, bases, images, cache

    def with_settings(self, **settings: Any) -> Self:
        """This machine with other settings; `close` the original only."""
        other = copy.copy(self)
        other.settings = structs.replace(self.settings, **settings)
        return other

    def modules(self, kernel: Kernel) -> str | None:
        """Digest of the modules in its initial RAM disk: it loads no others."""
        return self.bases[kernel.parts].modules

    @abstractmethod
    def cmdline(self, arm: Arm) -> str:
        """The kernel's command line: the same for all arms, then what the contender adds."""

    def boot_files(self, trial: Trial) -> bytes:
        """Initial RAM disk of a trial."""
        with as_cache_error(self.cache.root):
            base = self.bases[trial.arm.kernel.parts].archive.read_bytes()
        return base + initramfs.trial_archive(trial.script)

    def judge(self, trial: Trial, done: Run) -> Outcome:
        """Unpack the results of a run, or give the reason why there are none."""
        console = read_console(trial.into / "console.log")
        facts: dict[str, Any] = {
            "argv": done.argv,
            "pinned": done.pinned,
            "priority": done.priority,
            "ended": done.ended,
        }
        if done.killed_by:
            facts["killed_by"] = done.killed_by
        try:
            marks = envelope.bring_in(done.results, trial.into).marks
        except envelope.BrokenEnvelope as error:
            found = diagnose(
                console,
                ended=done.ended,
                ready="ready" in done.timings,
                seconds=done.timings["off"] - done.waited,
                waited=done.waited,
                stderr=done.stderr,
                stuck=done.stuck,
            )
            void, message = found.void, found.message
            if void == "oops" and (fault := self.fault_of_emulator(console)):
                void, message = EMULATOR_FAULT, f"{fault} {message}"
            if void == "silent-exit" and "done" in done.timings:
                void, message = "broken-envelope", f"The results did not arrive completely: {error}."
            return Outcome(void=void, message=message, timings=done.timings, facts=facts, host=done.host)
        if trouble := findings_in(trial.into):
            facts["console_findings"] = trouble
        status = marks.get("DONE", (0.0, None))[1]
        void, message = "", ""
        if not self.exact and (reason := why_clock_wrong(marks, done.timings)):
            void, message = "wrong-clock", f"The guest's clock is wrong: {reason}."
        elif status:
            void, message = "setup-failed", self.why_setup_failed(trial.into, status)
        elif reason := self.why_wrong(trial):
            void, message = "wrong-machine", f"The guest is not what was planned: {reason}."
        return Outcome(void=void, message=message, timings=done.timings, facts=facts, host=done.host)

    def fault_of_emulator(self, console: Sequence[str]) -> str:
        """Reason why an oops is the emulator's fault and not the kernel's; empty where it is not known to be."""
        return ""

    def why_wrong(self, trial: Trial) -> str:
        """Properties of the guest that differ from the plan; a boot may have captured its environment several times."""
        captured = environments_in(trial.into)
        expected = self.expected_environment(trial.arm)
        reasons = [gate(read_environment(path), expected) for path in captured] or [
            "it recorded nothing of its environment"
        ]
        return next((reason for reason in reasons if reason), "")

    @staticmethod
    def why_setup_failed(into: Path, status: int) -> str:
        """From the output of the setup lines."""
        return f"The setup lines failed; the script ended with {status}: {untrusted.read_end(into / 'setup' / 'stderr', 2000)}"

    def expected_environment(self, arm: Arm) -> dict[str, Any]:
        """Facts in the environment of a valid trial."""
        clock = self.settings.clocksource
        return {
            "release": arm.kernel.release,
            "architecture": arm.kernel.architecture,
            "cpus": self.settings.cpus,
            "clocksource": clock,
            "clocksource_end": clock,
        }


class InQemu(GuestMachine):
    """A guest that QEMU boots, each trial in a fresh virtual machine on this host."""

    accelerator: str
    root: Root
    disk: Path | None
    """The scratch disk's template; None where the study needs none."""
    pin: list[int]
    """The host's CPUs for the virtual ones; empty where they are not pinned."""

    @abstractmethod
    def describe(self, arm: Arm, initrd: Path, disk: Path | None) -> VirtualMachine:
        """The virtual machine of an arm."""

    def make_guest(self, kind: type[Described], arm: Arm, initrd: Path, **particulars: Any) -> Described:
        """A virtual machine of that kind with what the settings and the arm determine, and its own particulars."""
        return kind(
            architecture=arm.kernel.architecture,
            accelerator=self.accelerator,
            cpus=self.settings.cpus,
            memory_mib=mebibytes(self.settings.memory, "memory"),
            kernel=self.images[arm.kernel.sha256],
            initrd=initrd,
            cmdline=self.cmdline(arm),
            **particulars,
        )

    def fault_of_emulator(self, console: Sequence[str]) -> str:
        """By the known faults of QEMU's versions."""
        return explain_fault(console, qemu=self.facts["qemu"], accelerator=self.accelerator, cpus=self.settings.cpus)

    def boot(self, trial: Trial) -> Outcome:
        """One boot in a fresh virtual machine."""
        with ExitStack() as held:
            initrd = held.enter_context(confine.nameless(self.boot_files(trial)))
            (trial.into / "rerun.sh").write_text(self.by_hand(trial.arm))
            disk = held.enter_context(scratch.fresh_copy(self.disk, self.cache)) if self.disk else None
            done = run(
                self.describe(trial.arm, initrd, Path(f"/proc/self/fd/{disk.fileno()}") if disk else None),
                trial.into / "console.log",
                boot_deadline=self.settings.boot_deadline,
                deadline=trial.deadline,
                pin=self.pin,
                handles=[disk] if disk else [],
                raised=self.settings.priority == "high",
            )
        return self.judge(trial, done)

    def argv_by_hand(self, arm: Arm) -> list[str]:
        """QEMU's arguments for an arm, less the wiring to us; what is made for a trial is below @WORK@."""
        return self.argv_of(self.describe(arm, Path("@WORK@/initrd"), Path("@WORK@/scratch") if self.disk else None))

    @staticmethod
    def argv_of(machine: VirtualMachine) -> list[str]:
        """QEMU's arguments, with the console on the terminal and the results in a file."""
        return machine.argv(Wiring(console="stdio,signal=off", results="file,path=results"))

    def argv_by_contender(self, arms: Sequence[Arm]) -> dict[str, list[str]]:
        """QEMU's arguments for lock.json: what each contender gets, with names in place of the cache's paths."""
        return {arm.contender.name: self.argv_of(self.with_named_files(arm)) for arm in arms}

    def with_named_files(self, arm: Arm) -> VirtualMachine:
        """The virtual machine of an arm with names for its files, wherever the cache is."""
        machine = self.describe(arm, Path("@WORK@/initrd"), Path("@WORK@/scratch") if self.disk else None)
        return structs.replace(machine, kernel=Path("@KERNEL@"), root=Path("@ROOT@") if machine.root else None)

    def by_hand(self, arm: Arm) -> str:
        """A shell script that boots an arm's guest as a trial does, with the console on the terminal."""
        quoted = shlex.join(self.argv_by_hand(arm)).replace("@WORK@", '"$work"')
        base, busybox = shlex.quote(str(self.bases[arm.kernel.parts].archive)), shlex.quote(str(self.root.busybox))
        return "\n".join(
            [
                "#!/bin/sh",
                "# Boots this trial's guest again: sh rerun.sh. What it sends home goes to the file results.",
                "set -eu",
                'here=$(cd "$(dirname "$0")" && pwd)',
                "work=$(mktemp -d)",
                "trap 'rm -rf \"$work\"' EXIT",
                'mkdir "$work/kduel"',
                'cp "$here/guest.sh" "$work/kduel/guest.sh"',
                f'cat {base} >"$work/initrd"',
                f'(cd "$work" && printf \'kduel\\nkduel/guest.sh\\n\' | {busybox} cpio -o -H newc) >>"$work/initrd"',
                *([f'cp --sparse=always {shlex.quote(str(self.disk))} "$work/scratch"'] if self.disk else []),
                quoted,
                "",
            ]
        )


class QemuMachine(InQemu):
    """Made by `Qemu.prepare`."""

    def __init__(
        self,
        settings: QemuSettings,
        accelerator: str,
        root: Root,
        bases: Mapping[str, Base],
        images: Mapping[str, Path],
        disk: Path | None,
        cache: Cache,
    ) -> None:
        super().__init__(settings, bases, images, cache)
        self.accelerator, self.root, self.disk = accelerator, root, disk
        self.pin = host_cpus(settings.cpus)
        self.max_wait_pct = MAX_WAIT_PCT[accelerator]
        self.emulated = accelerator == "tcg"
        self.timing_warning = TCG_WARNING if self.emulated else NESTED_WARNING if is_virtual() else ""
        self.facts = {
            "accelerator": accelerator,
            "qemu": qemu_version(),
            "cpus": settings.cpus,
            "memory_mib": mebibytes(settings.memory, "memory"),
            "clocksource": settings.clocksource,
            "pinned": self.pin,
            "root": {"sha256": root.sha256, "suite": root.suite, "packages": root.packages},
            "host": {"cpu": host_cpu(), "cpus": os.cpu_count(), "kernel": platform.release()},
        }
        if accelerator == "kvm" and HALT_POLL.is_file():
            # How long this host's kernel waits for a guest's CPU that went idle, before it sleeps: it makes wake-ups quicker.
            self.facts["halt_poll_ns"] = int(HALT_POLL.read_text())

    def describe(self, arm: Arm, initrd: Path, disk: Path | None) -> VirtualMachine:
        """The virtual machine of an arm."""
        return self.make_guest(
            VirtualMachine,
            arm,
            initrd,
            root=self.root.image,
            scratch=disk,
            disk_cache=self.settings.disk_cache,
        )

    def cmdline(self, arm: Arm) -> str:
        """The kernel's command line: the same for all arms, then what the contender adds."""
        clock = self.settings.clocksource
        words = [
            f"console={PLATFORMS[arm.kernel.architecture].console}",
            "panic=-1 oops=panic reboot=t",
            # As a kernel does by itself under KVM: on a busy host too few emulated ticks come in time, and it panics.
            "no_timer_check" if arm.kernel.architecture == "x86_64" else "",
            f"clocksource={clock}" + (" tsc=reliable" if clock == "tsc" else ""),
            self.settings.cmdline,
            arm.contender.cmdline,
        ]
        return " ".join(word for word in words if word)


def why_clock_wrong(marks: Mapping[str, tuple[float, int | None]], timings: Mapping[str, float]) -> str:
    """From the guest's marks and the host's times of them; empty where one is missing."""
    if {"READY", "DONE"} <= marks.keys() and {"ready", "done"} <= timings.keys():
        return clock_trouble(marks["DONE"][0] - marks["READY"][0], timings["done"] - timings["ready"])
    return ""


class Qemu(MachineKind[QemuSettings]):
    """Virtual machines on this host."""

    name: ClassVar[str] = "qemu"
    architectures: ClassVar[frozenset[str]] = frozenset({"x86_64"})
    summary: ClassVar[str] = "a fresh virtual machine per trial on this host; KVM where it works, else emulated"

    def read_settings(self, table: dict[str, Any]) -> QemuSettings:
        """Read and check the table, before any kernel is fetched."""
        settings = super().read_settings(table)
        mebibytes(settings.memory, "memory")
        mebibytes(settings.disk, "disk")
        return settings

    def prepare_early(self, settings: QemuSettings, needs: Needs, **means: Unpack[Means]) -> None:
        """First the small part, on which counting and probing KVM wait."""
        busybox("x86_64", **means)
        root_image(needs.packages, suite=settings.suite, **means)

    def emulates(self, settings: QemuSettings, arms: Sequence[Arm], **means: Unpack[Means]) -> bool:
        """True if guests will be emulated, as `prepare` will find."""
        kernels = {arm.kernel.sha256: arm.kernel for arm in arms}
        images, box = images_entered_alike(kernels, means["cache"]), busybox("x86_64", **means)
        found = probe.choose_accelerator(
            settings.accel, next(iter(images.values())), box.file, means["cache"], means["progress"]
        )
        return found == "tcg"

    def prepare(self, settings: QemuSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        """Probe KVM; make the root, the programs, the initial RAM disks and the scratch disk's template."""
        for arm in arms:
            self.check_architecture(arm.kernel)
        cache = means["cache"]
        qemu_version()
        root = root_image(needs.packages, suite=settings.suite, **means)
        files = needs.files_and_programs("x86_64", cache=cache)
        kernels = {arm.kernel.sha256: arm.kernel for arm in arms}
        images = images_entered_alike(kernels, cache)
        modules = initramfs.MODULES + (initramfs.SCRATCH_MODULES if needs.scratch else ())
        bases = {
            parts: initramfs.base_archive(
                kernel, root.busybox, cache=cache, programs=files, modules=modules, carried=needs.modules, quick=True
            )
            for parts, kernel in {arm.kernel.parts: arm.kernel for arm in arms}.items()
        }
        disk = scratch.template(mebibytes(settings.disk, "disk"), cache=cache) if needs.scratch else None
        accelerator = probe.choose_accelerator(
            settings.accel, next(iter(images.values())), root.busybox, cache, means["progress"]
        )
        machine = QemuMachine(settings, accelerator, root, bases, images, disk, cache)
        machine.facts["priority"] = priority.find_obtainable() if settings.priority == "high" else []
        machine.facts["argv"] = machine.argv_by_contender(arms)
        return machine


PLUGIN = Qemu()
