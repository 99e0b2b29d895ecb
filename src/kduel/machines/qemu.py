"""The machine `qemu`: each trial in a fresh virtual machine on this host, hardware-assisted where that works."""

from __future__ import annotations

import os
import platform
import shlex
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Unpack

from msgspec import Struct, structs

from kduel.core.cache import Cache
from kduel.core.experiment import Contender
from kduel.guest import confine, envelope, initramfs, link, priority, probe, scratch
from kduel.guest.busybox import busybox
from kduel.guest.emulator import explain_fault, qemu_version
from kduel.guest.initramfs import Base
from kduel.guest.launch import Launch, Run, Side, card_words, run
from kduel.guest.probe import no_kvm, why_closed
from kduel.guest.root import Root, check_root_kept, root_image
from kduel.guest.silent import boot_again
from kduel.guest.size import MOST_DISK, check_memory_of_host, mebibytes, why_no_memory
from kduel.guest.topology import settle_cpus
from kduel.guest.turns import BlockTurns, Seat, run_in_turns
from kduel.guest.vm import PLATFORMS, VirtualMachine, Wiring
from kduel.kernels import Kernel
from kduel.kernels.files.image import images_entered_alike, note_silent_entry
from kduel.machines import Arm, Machine, MachineKind, Means, Needs, Outcome, Trial
from kduel.machines.guests.judged import GuestMachine, QemuSettings, one_or_all
from kduel.machines.host.processors import host_cpu, host_cpus, is_virtual

TCG_WARNING = (
    "Trials ran in an emulator (QEMU TCG): a difference in time between kernels need not exist on hardware. Every "
    "instruction is translated, and times have a cost model of their own (a context switch, a page-table change or a "
    "clock read costs far more than on a real CPU). Sizes, and counts that do not depend on when "
    "tasks run, are valid; wake-ups, switches and migrations also follow the speed that the host gives to each CPU."
)

NESTED_WARNING = (
    "Trials ran by KVM in a host that is a virtual machine itself: whatever leaves the guest (a timer, an interrupt to another "
    "CPU, a halt, access to a disk) goes through two hypervisors and costs many times what it costs on hardware, so times of "
    "wake-ups, context switches between CPUs and files are theirs. A computation within one CPU is not affected."
)
CROWDED_WARNING = (
    "The guest has {guest} CPUs, and KDuel may use {host} of this host's: they are not pinned, wait for each other and move. "
    "Whatever more than {host} of them do at once is slower, by how much is chance, and what the scheduler then decides follows the host's load. "
    "Several CPUs of one speed, in virtual time, on any host: docs/exact-scheduling.md."
)
HALT_POLL = Path("/sys/module/kvm/parameters/halt_poll_ns")

KVM_CLOCK = "kvm-clock"
MAX_WAIT_PCT = {"kvm": 10.0, "tcg": 25.0}
"""By accelerator: an emulator's own threads make its CPUs wait a little on a quiet host too."""
Described = TypeVar("Described", bound=VirtualMachine)


class InQemu(GuestMachine):
    """A guest that QEMU boots, each trial in a fresh virtual machine on this host."""

    accelerator: str
    root: Root
    disk: Path | None
    """The scratch disk's template; None where the study needs none."""
    pin: list[int]
    """The host's CPUs for the virtual ones; empty where they are not pinned."""
    peer: Peer | None = None
    """The guest at the other end of the link; None where no step needs one."""
    by_image: bool = False
    """True if kernels are booted by their own images, since one printed nothing where QEMU entered it directly."""
    looks_again: bool = True
    """False where a silent kernel is expected, and no second boot asks why."""

    @property
    def raised(self) -> bool:
        """True if QEMU gets weight against other work on the host."""
        return self.settings.priority == "high" and priority.is_wanted()

    @abstractmethod
    def describe(self, arm: Arm, initrd: Path, disk: Path | None) -> VirtualMachine:
        """The virtual machine of an arm."""

    def make_guest(self, kind: type[Described], arm: Arm, initrd: Path, **particulars: Any) -> Described:
        """A virtual machine of that kind with what the settings and the arm determine, and its own particulars."""
        settings = self.settings_of(arm)
        return kind(
            architecture=arm.kernel.architecture, accelerator=self.accelerator, cpus=settings.cpus,
            topology=settings.planned_topology, memory_mib=mebibytes(settings.memory, "memory"),
            kernel=self.booted_file(arm.kernel), initrd=initrd, cmdline=self.cmdline(arm), **particulars,
        )  # fmt: skip

    def booted_file(self, kernel: Kernel) -> Path:
        return kernel.image if self.by_image else self.images[kernel.sha256]

    def judge(self, trial: Trial, done: Run) -> Outcome:
        """Outcome of a run. A kernel that never printed anything is booted again, and where it begins by its own image, all are
        booted so from then on: only the block of its first trial may hold both ways."""
        outcome, kernel = super().judge(trial, done), trial.arm.kernel
        if "kernel" in done.timings:
            self.heard.add(kernel.sha256)
        if outcome.void != "no-console" or done.ended == "partner" or not self.looks_again:
            return outcome
        machine = self.describe(trial.arm, Path(os.devnull), None)
        begins, told = boot_again(machine, kernel.image, self.settings.boot_deadline)
        if begins and machine.kernel != kernel.image and kernel.sha256 not in self.heard:
            self.by_image = True
            note_silent_entry(kernel, self.cache)
            told += "\nQEMU cannot enter this kernel directly: from now on all kernels are booted by their images."
        return structs.replace(outcome, message=f"{outcome.message} {told}")

    def fault_of_emulator(self, arm: Arm, console: Sequence[str]) -> str:
        """By the known faults of QEMU's versions."""
        cpus = self.settings_of(arm).cpus
        return explain_fault(console, qemu=self.facts["qemu"], accelerator=self.accelerator, cpus=cpus)

    def boot(self, trial: Trial) -> Outcome:
        """One boot in a fresh virtual machine, with the peer in another one."""
        if self.peer is None:
            (trial.into / "rerun.sh").write_text(self.by_hand(trial.arm))
            return self.judge(trial, self.launch(trial))
        peer, into = self.peer, trial.into / envelope.PEER
        into.mkdir()
        seconds = trial.deadline + link.LEAVE_SECONDS
        second = structs.replace(trial, arm=peer.arm, script=link.peer_script(seconds), deadline=seconds, into=into)
        (into / "guest.sh").write_text(second.script, "utf-8")
        pins = self.pin, peer.machine.pin
        done = link.run_pair(
            lambda side: self.launch(trial, side), lambda side: peer.machine.launch(second, side), pins
        )
        own, other = self.judge(trial, done.trial), peer.machine.judge(second, done.peer)
        void = link.judge_pair(done, own.why, other.why, into)
        facts = own.facts | {"peer": other.facts | {"timings": other.timings}}
        return structs.replace(own, facts=facts, void=void.code if void else "", message=void.message if void else "")

    def boot_block(self, trials: Sequence[Trial], turns: BlockTurns) -> list[Outcome]:
        """Each trial in a fresh virtual machine, all alive at once, one of which runs at any moment of a step."""
        cpus = min(len(self.pin_of(trial.arm)) or len(os.sched_getaffinity(0)) for trial in trials)
        for trial in trials:
            (trial.into / "rerun.sh").write_text(self.by_hand(trial.arm))
        guests = [partial(self.launch, trial, None) for trial in trials]
        done = run_in_turns(guests, turns, cpus=cpus, raised=self.raised)
        return [
            structs.replace(self.judge(trial, one), turns=seat.steps)
            for trial, one, seat in zip(trials, done, turns.seats, strict=True)
        ]

    def launch(self, trial: Trial, side: Side | None = None, seat: Seat | None = None) -> Run:
        """One run of a fresh virtual machine, on its `side` of a link, or in its `seat` among those that take turns."""
        with ExitStack() as held:
            initrd = held.enter_context(confine.nameless(self.boot_files(trial)))
            disk = held.enter_context(scratch.fresh_copy(self.disk, self.cache)) if self.disk else None
            return run(
                self.describe(trial.arm, initrd, Path(f"/proc/self/fd/{disk.fileno()}") if disk else None),
                trial.into / "console.log",
                Launch(
                    boot_deadline=self.settings.boot_deadline,
                    deadline=trial.deadline,
                    pin=self.pin_of(trial.arm),
                    handles=[disk] if disk else [],
                    raised=self.raised,
                    side=side,
                    seat=seat,
                ),
            )

    def pin_of(self, arm: Arm) -> list[int]:
        """The host's CPUs for an arm's virtual ones."""
        cpus = self.settings_of(arm).cpus
        return self.pin if cpus == self.settings.cpus else host_cpus(cpus)

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
        machine = self.describe(arm, Path("@WORK@/initrd"), Path("@WORK@/scratch") if self.disk else None)
        quoted = shlex.join(self.argv_of(machine)).replace("@WORK@", '"$work"')
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


class Peer(Struct, frozen=True):
    """A machine that boots the peer, and what it boots."""

    machine: InQemu
    arm: Arm


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
        arms: Sequence[Arm] = (),
    ) -> None:
        super().__init__(settings, bases, images, cache)
        self.accelerator, self.root, self.disk = accelerator, root, disk
        self.each = [self.settings_of(arm) for arm in arms] or [settings]
        self.pin = host_cpus(settings.cpus)
        self.most_cpus = max(one.cpus for one in self.each)
        self.max_wait_pct = MAX_WAIT_PCT[accelerator]
        self.emulated = accelerator == "tcg"
        if any((one.topology or one.cpus != settings.cpus) and not host_cpus(one.cpus) for one in self.each):
            # More CPUs than the host has: for what a scheduler does, not for how long it takes.
            self.max_wait_pct, self.behaviour_only = 100.0, True
        self.timing_warning = " ".join(self.warnings())
        self.facts = {
            "accelerator": accelerator,
            "qemu": qemu_version(),
            "cpus": one_or_all(one.cpus for one in self.each),
            **({"topology": settings.topology} if settings.topology else {}),
            "memory_mib": one_or_all(mebibytes(one.memory, "memory") for one in self.each),
            "clocksource": settings.clocksource,
            "pinned": self.pin,
            "root": {"sha256": root.sha256, "suite": root.suite, "packages": root.packages},
            "host": {"cpu": host_cpu(), "cpus": os.cpu_count(), "kernel": platform.release()},
        }
        if accelerator == "kvm" and HALT_POLL.is_file():
            # How long this host's kernel waits for a guest's CPU that went idle, before it sleeps: it makes wake-ups quicker.
            self.facts["halt_poll_ns"] = int(HALT_POLL.read_text())

    def warnings(self) -> Iterator[str]:
        """Reasons why its times are not those of hardware."""
        if self.emulated:
            yield TCG_WARNING
        elif is_virtual():
            yield NESTED_WARNING
        if not host_cpus(self.most_cpus):
            yield CROWDED_WARNING.format(guest=self.most_cpus, host=len(os.sched_getaffinity(0)))

    def why_no_turns(self) -> str:
        """The guests' clocks must stand while they are held: under KVM kvm-clock is set back at `cont`, and the TSC is not. Nor is it
        enough that slices are whole: a guest is held only once it has told that its step begins, and between slices."""
        if self.peer is not None:
            return "its guests have peers, which would run on"
        others = ", ".join(sorted({one.clocksource for one in self.each} - {KVM_CLOCK}))
        if self.emulated or not others:
            return ""
        return (
            f"under KVM only {KVM_CLOCK} stands while a guest is held, and its guests have {others}: set "
            f'clocksource = "{KVM_CLOCK}" in [machine], or --machine qemu:clocksource={KVM_CLOCK}'
        )

    def why_no_room(self, guests: int) -> str:
        """All guests of a block need their whole memory at once."""
        return why_no_memory(guests, max(mebibytes(one.memory, "memory") for one in self.each))

    def join(self, peer: Peer) -> None:
        """Give the machine a peer; the host's CPUs are shared out to both."""
        pin = host_cpus(self.settings.cpus + peer.machine.settings.cpus)
        self.peer, self.link = peer, link.trial_lines()
        self.pin, peer.machine.pin = pin[: self.settings.cpus], pin[self.settings.cpus :]
        kernel = peer.arm.kernel
        self.facts |= {
            "pinned": self.pin,
            "peer": {
                "kernel": kernel.spec,
                "release": kernel.release,
                "sha256": kernel.sha256,
                "modules": self.modules(kernel),
                "cpus": peer.machine.settings.cpus,
                "memory_mib": mebibytes(peer.machine.settings.memory, "memory of the peer"),
                "pinned": peer.machine.pin,
                "argv": peer.machine.argv_of(peer.machine.with_named_files(peer.arm)),
                "link": [card_words(number, "@SOCKET@") for number in (1, 2)],
            },
        }

    def describe(self, arm: Arm, initrd: Path, disk: Path | None) -> VirtualMachine:
        return self.make_guest(
            VirtualMachine, arm, initrd, root=self.root.image, scratch=disk,
            disk_cache=self.settings_of(arm).disk_cache,
        )  # fmt: skip

    def cmdline(self, arm: Arm) -> str:
        """The kernel's command line: the same for all arms, then what the contender adds."""
        clock = self.settings_of(arm).clocksource
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


class Qemu(MachineKind[QemuSettings]):
    """Virtual machines on this host."""

    name: ClassVar[str] = "qemu"
    architectures: ClassVar[frozenset[str]] = frozenset({"x86_64"})
    of_contenders: ClassVar[tuple[str, ...]] = ("cpus", "topology", "memory", "clocksource", "disk_cache")
    summary: ClassVar[str] = "a fresh virtual machine per trial on this host; KVM where it works, else emulated"

    def read_settings(self, table: dict[str, Any]) -> QemuSettings:
        settings = super().read_settings(settle_cpus(table, self.name))
        mebibytes(settings.memory, "memory")
        mebibytes(settings.disk, "disk", MOST_DISK)
        mebibytes(settings.peer.memory, "memory of the peer")
        return settings

    def check_host(self, settings: QemuSettings) -> None:
        """QEMU; KVM, where it is requested; and the memory."""
        qemu_version()
        priority.is_wanted()
        if settings.accel == "kvm" and (why := why_closed()):
            raise no_kvm(why)
        check_memory_of_host(settings.memory)

    def check_kept(self, settings: QemuSettings, needs: Needs, cache: Cache) -> None:
        check_root_kept(needs.packages, cache=cache, suite=settings.suite)

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

    def why_no_peer(self, settings: QemuSettings) -> str:
        """It boots a second guest; this host must have a CPU for each vCPU of both."""
        wanted, there = settings.cpus + settings.peer.cpus, len(os.sched_getaffinity(0))
        if wanted <= there:
            return ""
        return f"its guests would have {wanted} CPUs ([machine] cpus, [machine.peer] cpus), and this host has {there}"

    def arm_of_peer(self, settings: QemuSettings, arms: Sequence[Arm], **means: Unpack[Means]) -> Arm:
        """Arm of the peer: the baseline's kernel, or the one of the settings."""
        chosen = settings.peer.kernel
        kernel = self.kernel(chosen, **means) if chosen else arms[0].kernel
        self.check_architecture(settings, kernel.spec, kernel.architecture)
        return Arm(Contender(kernel=kernel.spec, name="peer"), kernel)

    def prepare(self, settings: QemuSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        """Probe KVM; make the root, the programs, the initial RAM disks and the scratch disk's template."""
        for arm in arms:
            self.check_architecture(settings, arm.kernel.spec, arm.kernel.architecture)
        cache = means["cache"]
        qemu_version()
        root = root_image(needs.packages, suite=settings.suite, **means)
        files = needs.files_and_programs("x86_64", cache=cache)
        peer = self.arm_of_peer(settings, arms, **means) if needs.peer else None
        every = [*arms, *([peer] if peer else [])]
        kernels = {arm.kernel.sha256: arm.kernel for arm in every}
        images = images_entered_alike(kernels, cache)
        modules = initramfs.MODULES + (initramfs.SCRATCH_MODULES if needs.scratch else ())
        carried = (*needs.modules, *([link.MODULE] if peer else []))
        bases = {
            parts: initramfs.base_archive(
                kernel, root.busybox, cache=cache, programs=files, modules=modules, carried=carried, quick=True
            )
            for parts, kernel in {arm.kernel.parts: arm.kernel for arm in every}.items()
        }
        disk = scratch.template(mebibytes(settings.disk, "disk"), cache=cache) if needs.scratch else None
        accelerator = probe.choose_accelerator(
            settings.accel, next(iter(images.values())), root.busybox, cache, means["progress"]
        )
        machine = QemuMachine(settings, accelerator, root, bases, images, disk, cache, arms)
        if peer:
            second = structs.replace(settings, cpus=settings.peer.cpus, topology="", memory=settings.peer.memory)
            machine.join(Peer(QemuMachine(second, accelerator, root, bases, images, None, cache), peer))
        machine.facts["priority"] = priority.find_obtainable() if settings.priority == "high" else []
        machine.facts["argv"] = machine.argv_by_contender(arms)
        return machine


PLUGIN = Qemu()
