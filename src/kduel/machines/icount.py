"""The machine `icount`: virtual machines whose clock counts instructions, so that a trial is the same every time.

One vCPU, QEMU's instruction-counting virtual clock, no entropy and no time of the host's, no address randomisation.
Root and scratch are in memory: the initial RAM disk alone, or the usual root as persistent memory where benchmarks
need packages. Nothing in the guest waits for the host: devices answer in the instruction that asks them (virtio
without ioeventfd), so a busy host makes a trial longer and changes nothing in it.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from msgspec import Meta, structs

from kduel.benchmarks.boot_instructions import GUEST_FILE
from kduel.core.cache import Cache, told_as_cache_trouble
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory, told_as_temporary_trouble
from kduel.guest import confine, initramfs, programs
from kduel.guest.console import read_console
from kduel.guest.cpio import Cpio
from kduel.guest.launch import run
from kduel.guest.root import Root, root_image
from kduel.guest.vm import VirtualMachine
from kduel.kernels.files.image import pvh_entry, uncompressed
from kduel.machines import Arm, Machine, MachineKind, Needs, Outcome, Seconds, Trial
from kduel.machines.qemu import QemuMachine, QemuSettings, Size, mebibytes, qemu_version

CPU = "max,-rdrand,-rdseed,-erms,-fsrm,-la57"
"""No entropy; no fast string instructions, whose every byte would count as one; page tables of four levels."""
MODULES = ("virtio_pci", "virtio_console")
PMEM_MODULES = ("nd_e820", "nd_pmem", "squashfs", "overlay")
PMEM_STEP = 128
"""MiB: the kernel takes persistent memory in whole sections."""
ROOT, PLUGIN_FILE, COUNTS = "@ROOT@", "@PLUGIN@", "@COUNTS@"
"""Stand for files in QEMU's arguments."""
QUIET = "cryptomgr.notests"
STILL = "nokaslr norandmaps"


class IcountSettings(MachineKind.Settings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The [machine] table of a study with kind = "icount"."""

    memory: Size = "512M"
    cpu: str = CPU
    """QEMU's CPU model and what is left out of it; without the entropy instructions trials can be repeated."""
    workers: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Trials at once; 0: as many as the host has CPUs."""
    layouts: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """Above 0: address layouts are random, from the number of the block modulo this; each block has its own."""
    cmdline: str = ""
    """Words added to every contender's command line."""
    boot_deadline: Seconds = 600.0
    """Seconds of the host's from start to the script."""


class IcountMachine(QemuMachine):
    """Made by `Icount.prepare`. `boot` may be called from several threads."""

    exact = True

    def __init__(
        self,
        settings: IcountSettings,
        root: Root,
        bases: Mapping[str, Path],
        images: Mapping[str, Path],
        cache: Cache,
        *,
        whole_root: bool = False,
    ) -> None:
        memory, pmem = mebibytes(settings.memory, "memory"), 0
        where = "kduel.root=ram"
        if whole_root:
            pmem = -(-root.image.stat().st_size // (PMEM_STEP << 20)) * PMEM_STEP
            # Below the last section: at the memory's end are ACPI's tables, and 6.1 takes no region that is not aligned.
            start = max(memory - PMEM_STEP, PMEM_STEP)
            where = f"kduel.root=/dev/pmem0 memmap={pmem}M!{start}M"
        inner = QemuSettings(
            cpus=1,
            memory=f"{memory + pmem}M",
            accel="tcg",
            cmdline=" ".join(filter(None, [where, QUIET, "" if settings.layouts else STILL, settings.cmdline])),
            boot_deadline=settings.boot_deadline,
        )
        super().__init__(inner, "tcg", root, bases, images, None, cache)
        self.pin = []
        self.timing_warning = ""
        self.parallel = settings.workers or len(os.sched_getaffinity(0))
        self.icount = settings
        self.root_at = start << 20 if whole_root else None
        self.facts = {
            "accelerator": "tcg",
            "clock": "icount: one nanosecond of the guest is one instruction",
            "qemu": qemu_version(),
            "cpus": 1,
            "cpu": settings.cpu,
            "memory_mib": memory,
            "layouts": settings.layouts,
            "busybox": root.packages.get("busybox-static", ""),
        }
        if whole_root:
            self.facts["root"] = {"sha256": root.sha256, "suite": root.suite, "packages": root.packages}
        self._proof = threading.Lock()
        self._proved = False
        self._boots: dict[str, str] = {}

    def describe(self, arm: Arm, initrd: Path, disk: Path | None) -> VirtualMachine:
        """As of a timing machine, without any disk."""
        return structs.replace(super().describe(arm, initrd, disk), root=None)

    def expected(self, arm: Arm) -> dict[str, Any]:
        """What the environment of a valid trial says; a guest this quick looks at itself when its clock source is
        still called tsc-early."""
        return {key: value for key, value in super().expected(arm).items() if key != "clocksource"}

    def boot(self, trial: Trial) -> Outcome:
        """One boot. The first good one is repeated at the same time, and must come out the same bit for bit.

        Raises NotMeasuredError, naming what differs, where it does not.
        """
        with self._proof:
            first, self._proved = not self._proved, True
        if not first:
            return self.boot_once(trial)
        with temporary_directory() as place:
            twin_outcome: list[Outcome | BaseException] = []

            def boot_twin() -> None:
                try:
                    with told_as_temporary_trouble(place):
                        twin_outcome.append(self.boot_once(structs.replace(trial, into=place)))
                except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
                    twin_outcome.append(error)

            thread = threading.Thread(target=boot_twin, daemon=True)
            thread.start()
            outcome = self.boot_once(trial)
            thread.join()
            twin = twin_outcome[0]
            if isinstance(twin, BaseException):
                raise twin
            if outcome.void:
                self._proved = False
                return outcome
            if twin.void:
                raise NotMeasuredError(
                    f"the machine is not exact: of two equal trials one is good, the other {twin.void}: {twin.message}"
                )
            compared = compare(trial.into, place)
        outcome.facts["proof"] = f"a second trial gave the same {compared} files, bit for bit"
        return outcome

    def boot_once(
        self,
        trial: Trial,
        extra: Sequence[str] = (),
        *,
        reads: Mapping[str, Path] = MappingProxyType({}),
        writes: Mapping[str, Path] = MappingProxyType({}),
        symbols: bool = False,
    ) -> Outcome:
        """One boot, with further arguments for QEMU, in which the keys of `reads` and `writes` stand for files. With
        `symbols` the kernel's come home too, as `kallsyms`."""
        head = self.carried(trial)
        notes = {"/kduel/symbols": "yes" if symbols else "no."}
        if GUEST_FILE in trial.script and (count := self.boot_instructions(trial, head, notes)):
            notes[GUEST_FILE] = count
        with confine.nameless(head + _archive(notes)) as initrd:
            done = run(
                self.describe(trial.arm, initrd, None),
                trial.into / "console.log",
                boot_deadline=self.settings.boot_deadline,
                deadline=max(trial.deadline, self.settings.boot_deadline),
                extra=[*self.fixed(trial.block), *extra],
                reads={**self.read_always, **reads},
                writes=writes,
                linger=self.settings.boot_deadline,
            )
        return self.judge(trial, done)

    def fixed(self, block: int) -> list[str]:
        """QEMU's arguments that take the host's time and entropy out of the guest."""
        cpu, seed = self.icount.cpu, 1
        if self.icount.layouts:
            # The guest takes its layout from these instructions, and QEMU what they give from the seed.
            cpu = cpu.replace(",-rdrand", "").replace(",-rdseed", "")
            seed = 1 + (block - 1) % self.icount.layouts
        words = [
            *("-cpu", cpu, "-icount", "shift=0,sleep=off", "-seed", str(seed)),
            *("-rtc", "base=2026-01-01T00:00:00,clock=vm"),
            *("-global", "virtio-serial-pci.ioeventfd=off"),
        ]
        if self.root_at is not None:
            words += ["-device", f"loader,file={ROOT},addr={self.root_at:#x},force-raw=on"]
        return words

    @property
    def read_always(self) -> dict[str, Path]:
        """The files that stand in `fixed`."""
        return {} if self.root_at is None else {ROOT: self.root.image}

    def boot_instructions(self, trial: Trial, head: bytes, notes: dict[str, str]) -> str:
        """How many instructions this boot takes up to init, counted in one that is the same but for the count itself;
        always as long. Empty where the kernel has no entry that QEMU knows."""
        arm = trial.arm
        with told_as_cache_trouble(self.cache.root):
            entry = pvh_entry(self.images[arm.kernel.sha256].read_bytes())
        if entry is None:
            return ""
        nothing = f"{0:015}"
        key = hashlib.sha256(head + repr((self.cmdline(arm), self.fixed(trial.block))).encode()).hexdigest()
        if key not in self._boots:
            plugin = programs.build_plugin(api=plugin_api(self.facts["qemu"]), cache=self.cache)
            content = head + _archive({**notes, GUEST_FILE: nothing})
            with temporary_directory() as place, confine.nameless(content) as initrd:
                count = place / "count"
                run(
                    self.describe(arm, initrd, None),
                    place / "console.log",
                    boot_deadline=self.settings.boot_deadline,
                    deadline=self.settings.boot_deadline,
                    extra=[*self.fixed(trial.block), "-plugin", f"{PLUGIN_FILE},out={COUNTS},boot={entry:#x}"],
                    reads={**self.read_always, PLUGIN_FILE: plugin},
                    writes={COUNTS: count},
                )
                self._boots[key] = f"{int(text):015}" if (text := count.read_text().strip()) else nothing
        return self._boots[key]


def _archive(notes: Mapping[str, str]) -> bytes:
    """Small files for the guest, by their paths."""
    archive = Cpio()
    for path, text in notes.items():
        archive.file(path.lstrip("/"), f"{text}\n".encode())
    return archive.finish()


def plugin_api(qemu: str) -> int:
    """The version of the plug-in interface to build for, by QEMU's own version."""
    major, minor = (int(number) for number in qemu.split(".")[:2])
    return 1 if (major, minor) < (9, 1) else 3


def compare(one: Path, other: Path) -> int:
    """How many files two trials left, if they are the same bit for bit; the consoles less the host's times.

    Raises NotMeasuredError that names what differs.
    """
    names = {str(path.relative_to(top)) for top in (one, other) for path in top.rglob("*") if path.is_file()}
    names -= {"console.log", "guest.sh", "rerun.sh"}
    for name in sorted(names):
        contents = [path.read_bytes() if path.is_file() else None for path in (one / name, other / name)]
        if contents[0] != contents[1]:
            raise NotMeasuredError(
                f"the machine is not exact here: two equal trials differ in {name}: {_difference(*contents)}",
                "Nothing was counted. Tell us QEMU's version and this file; another QEMU may do.",
            )
    consoles = ["\n".join(_measured(read_console(top / "console.log"))).encode() for top in (one, other)]
    if consoles[0] != consoles[1]:
        raise NotMeasuredError(
            f"the machine is not exact here: two equal trials differ in what they print: {_difference(*consoles)}",
            "Nothing was counted. Tell us QEMU's version and this line; another QEMU may do.",
        )
    return len(names) + 1


def _measured(console: list[str]) -> list[str]:
    """The console up to the script's end; from then on the guest waits for the host to take its results."""
    ends = (number for number, line in enumerate(console) if "kduel: script ended" in line)
    return console[: next(ends, len(console))]


def _difference(one: bytes | None, other: bytes | None) -> str:
    """The first line that differs."""
    if one is None or other is None:
        return "only one of them has it"
    for number, (a, b) in enumerate(zip(one.splitlines(), other.splitlines(), strict=False), 1):
        if a != b:
            return f"line {number} is {a[:120]!r} and {b[:120]!r}"
    return f"one is {len(one)} bytes long, the other {len(other)}"


class Icount(MachineKind):
    """Exact machines on this host."""

    name: ClassVar[str] = "icount"
    summary: ClassVar[str] = (
        "a deterministic virtual machine that counts instructions: exact, on any host, in parallel"
    )
    Settings = IcountSettings

    def read_settings(self, table: dict[str, Any]) -> Any:
        """As for other machines; before any kernel is fetched."""
        settings = super().read_settings(table)
        memory = mebibytes(settings.memory, "memory")
        if not PMEM_STEP <= memory <= 1024 or memory % PMEM_STEP:
            raise InputError(
                f"machine icount: memory = {settings.memory!r} cannot be", "Give 128M to 1024M in steps of 128M."
            )
        return settings

    def prepare(
        self,
        settings: Any,
        arms: Sequence[Arm],
        needs: Needs,
        *,
        cache: Cache,
        progress: Progress,
        offline: bool = False,
    ) -> Machine:
        """Make the root, the programs and the initial RAM disks."""
        architectures = {arm.kernel.architecture for arm in arms}
        if architectures != {"x86_64"}:
            raise InputError(
                f"machine icount runs x86_64 kernels, not {', '.join(sorted(architectures - {'x86_64'}))}"
            )
        qemu_version()
        root = root_image(needs.packages, cache=cache, progress=progress, offline=offline)
        modules = (*MODULES, *PMEM_MODULES) if needs.packages else MODULES
        files = needs.brought("x86_64", cache=cache)
        kernels = {arm.kernel.sha256: arm.kernel for arm in arms}
        images = {
            sha: (None if settings.layouts else uncompressed(kernel, cache)) or kernel.image
            for sha, kernel in kernels.items()
        }
        bases = {
            sha: initramfs.base_archive(kernel, root.busybox, cache=cache, programs=files, modules=modules)
            for sha, kernel in kernels.items()
        }
        return IcountMachine(settings, root, bases, images, cache, whole_root=bool(needs.packages))


PLUGIN = Icount()
