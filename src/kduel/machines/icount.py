"""The machine `icount`: virtual machines whose clock counts instructions, so that a trial is the same every time.

QEMU's instruction-counting virtual clock, no entropy and no time of the host's, no address randomisation. One vCPU; or several,
which take turns in one thread of QEMU, for the cache lines that move between them (plug-in `sharing`).
Root and scratch are in memory: the initial RAM disk alone, or the usual root as persistent memory where benchmarks
need packages. Nothing in the guest waits for the host: devices answer in the instruction that asks them (virtio
without ioeventfd), so a busy host makes a trial longer and changes nothing in it.
"""

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Unpack

from msgspec import Meta, structs

from kduel.benchmarks.boot_instructions import GUEST_FILE
from kduel.benchmarks.boot_instructions import PLUGIN as BOOT
from kduel.benchmarks.kbench import PLUGIN as KBENCH
from kduel.benchmarks.lines import FOOTPRINTS
from kduel.benchmarks.lines import PLUGIN as TOUCHING
from kduel.benchmarks.request import PLUGIN as REQUEST
from kduel.benchmarks.request import SHARES
from kduel.benchmarks.sharing import PLUGIN as SHARING
from kduel.benchmarks.sharing import SHARED_LINES
from kduel.core.cache import Cache, as_cache_error
from kduel.core.errors import InputError
from kduel.core.experiment import RESOLUTION, Contender
from kduel.guest import confine, initramfs, priority, programs
from kduel.guest.busybox import busybox
from kduel.guest.cpio import Cpio
from kduel.guest.emulator import qemu_version
from kduel.guest.initramfs import Base
from kduel.guest.launch import Launch, run
from kduel.guest.processor import cpu_model, known_features, plugin_api
from kduel.guest.root import Root, check_root_kept, root_image
from kduel.guest.size import Size, mebibytes
from kduel.guest.topology import settle_cpus
from kduel.guest.vm import TOPOLOGY_READ, VirtualMachine
from kduel.kernels.files.image import pvh_entry, uncompressed_kernel
from kduel.machines import Arm, Machine, MachineKind, MachineSettings, Means, Needs, Outcome, Seconds, Trial
from kduel.machines.guests import turns
from kduel.machines.guests.judged import QemuSettings, one_or_all
from kduel.machines.guests.proofs import Proofs, check_not_killed
from kduel.machines.qemu import QemuMachine

MODULES = ("virtio_pci", "virtio_console")
PMEM_MODULES = ("nd_e820", "nd_pmem", "squashfs", "overlay")
PMEM_STEP = 128
"""MiB: the kernel takes persistent memory in whole sections."""
ROOT, PLUGIN_FILE, COUNTS, LINES, SPENT, TOUCHED = "@ROOT@", "@PLUGIN@", "@COUNTS@", "@LINES@", "@SPENT@", "@TOUCHED@"
"""Stand for files in QEMU's arguments."""
QUIET = "cryptomgr.notests"
STILL = "nokaslr norandmaps"
APART = "slab_nomerge"
"""With several vCPUs: objects of each kind in pages of their own, so that a line's name can be told from its place."""


class IcountSettings(MachineSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    memory: Size = "512M"
    cpus: Annotated[int, Meta(ge=1, le=16)] = 1
    """Above 1: the cache lines that move between so many CPUs are counted, in place of instructions; or with `scheduling`
    they all run at one speed."""
    topology: str = ""
    """Of the CPUs, as on the machine qemu. It determines cpus, and what schedulers see; memory and caches cost nothing."""
    scheduling: bool = False
    """True if all CPUs execute all the time, in turns, for what schedulers do on several CPUs."""
    quantum: turns.Quantum = turns.QUANTUM
    """With `scheduling`: instructions in a CPU's turn. What is shorter than a turn of each CPU is not resolved."""
    online: Literal["ascending", "descending", "both"] = "ascending"
    """With `scheduling`: the order in which CPUs come online; `both`: descending in each second block."""
    cpu: str = ""
    """QEMU's CPU model and what is left out of it; by default that of kduel.guest.processor."""
    workers: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Trials at once; 0: as many as the host has CPUs."""
    layouts: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """Above 0: address layouts are random, from the number of the block modulo this; each block has its own."""
    cmdline: str = ""
    """Words added to every contender's command line."""
    priority: Literal["high", "normal"] = "high"
    """As of the machine qemu: no count depends on it, but beside guests with more weight a count takes many times as long."""
    boot_deadline: Seconds = 600.0
    """Seconds of the host's from start to the script, less those in which the guest waits for a CPU of the host."""


class IcountMachine(QemuMachine):
    """Made by `Icount.prepare`. `boot` may be called from several threads."""

    exact = True
    shares = touches = False
    """True if the plug-in counts the instructions of each request, and the lines of each call."""

    def __init__(
        self,
        settings: IcountSettings,
        root: Root,
        bases: Mapping[str, Base],
        images: Mapping[str, Path],
        cache: Cache,
        arms: Sequence[Arm] = (),
        *,
        whole_root: bool = False,
        trial_files: Sequence[str] = (),
    ) -> None:
        memory, pmem = mebibytes(settings.memory, "memory"), 0
        where = "kduel.root=ram"
        if whole_root:
            pmem = -(-root.image.stat().st_size // (PMEM_STEP << 20)) * PMEM_STEP
            # Below the last section: at the memory's end are ACPI's tables, and 6.1 takes no region that is not aligned.
            start = max(memory - PMEM_STEP, PMEM_STEP)
            where = f"kduel.root=/dev/pmem0 memmap={pmem}M!{start}M"
        inner = QemuSettings(
            cpus=settings.cpus,
            topology=settings.topology,
            memory=f"{memory + pmem}M",
            accel="tcg",
            cmdline=" ".join(
                filter(
                    None,
                    [
                        where,
                        QUIET,
                        "" if settings.layouts else STILL,
                        turns.CMDLINE if settings.scheduling else APART if settings.cpus > 1 else "",
                        settings.cmdline,
                    ],
                )
            ),
            priority=settings.priority,
            boot_deadline=settings.boot_deadline,
        )
        super().__init__(inner, "tcg", root, bases, images, None, cache, arms)
        self.max_wait_pct, self.behaviour_only = None, False
        self.timing_warning = turns.warning(self.most_cpus, settings.quantum) if settings.scheduling else ""
        self.parallel = settings.workers or len(os.sched_getaffinity(0))
        self.icount = settings
        self.cpu = settings.cpu or cpu_model(known_features())
        self.root_at = start << 20 if whole_root else None
        self.shares, self.touches = SHARES in trial_files, FOOTPRINTS in trial_files
        self.facts = {
            "accelerator": "tcg",
            "clock": "icount: one nanosecond of the guest is one instruction"
            + (f", of {self.most_cpus} CPUs each executes one in {self.most_cpus} ns" if settings.scheduling else ""),
            "qemu": qemu_version(),
            "cpus": one_or_all(one.cpus for one in self.each),
            "cpu": self.cpu,
            "memory_mib": memory,
            "layouts": settings.layouts,
            "busybox": root.packages.get("busybox-static", ""),
        }
        if settings.scheduling:
            self.facts["scheduling"] = {"quantum": settings.quantum, "online": settings.online}
            self.facts[RESOLUTION] = turns.resolution(self.most_cpus, settings.quantum)
        if whole_root:
            self.facts["root"] = {"sha256": root.sha256, "suite": root.suite, "packages": root.packages}
        api = plugin_api(self.facts["qemu"])
        plugin = "turns" if settings.scheduling else "sharing" if settings.cpus > 1 else "counter"
        self.plugin = programs.build_plugin(plugin, api=api, cache=cache)
        """Counts in the marked regions, or gives the CPUs their turns, and reports every halt to the guard."""
        self.guard = programs.build_plugin("guard", api=api, cache=cache)
        self._slots = threading.BoundedSemaphore(self.parallel)

    def why_no_turns(self) -> str:
        """Counts do not depend on what the host does meanwhile."""
        return Icount.no_turns

    def pin_of(self, arm: Arm) -> list[int]:
        """None: no count depends on the host."""
        return []

    def shift_of(self, arm: Arm) -> int:
        """Logarithm of the nanoseconds that an instruction takes, so that CPUs have one speed whatever their number is."""
        return (self.most_cpus // self.settings_of(arm).cpus).bit_length() - 1 if self.icount.scheduling else 0

    def describe(self, arm: Arm, initrd: Path, disk: Path | None) -> VirtualMachine:
        """Virtual machine as for timing, without any disk."""
        return structs.replace(super().describe(arm, initrd, disk), root=None)

    def expected_environment(self, arm: Arm) -> dict[str, Any]:
        """A valid trial's environment; in so quick a guest the clock source may still be called tsc-early."""
        return {key: value for key, value in super().expected_environment(arm).items() if key != "clocksource"}

    def boot(self, trial: Trial) -> Outcome:
        """One boot, proved by a repetition. Raises HostError where the host ended it."""
        return Proofs(self.cache, self.key(trial), self.boot_once).prove(trial)

    def key(self, trial: Trial) -> str:
        """Hash of all that determines a trial: kernel, programs, script, command line, QEMU and its arguments."""
        settings = self.settings_of(trial.arm)
        return digest(
            self.facts["qemu"], self.fixed_options(trial), self.cmdline(trial.arm), trial.arm.kernel.sha256,
            self.bases[trial.arm.kernel.parts].archive.parent.name, str(settings.memory),
            *([settings.cpus] if settings.cpus > 1 else []), *([settings.topology] if settings.topology else []),
            *([self.icount.quantum, self.descends(trial)] if self.icount.scheduling else []), self.plugin.parent.name,
            self.guard.parent.name, trial.script,
        )  # fmt: skip

    def boot_once(
        self,
        trial: Trial,
        counting: str = "",
        *,
        writes: Mapping[str, Path] = MappingProxyType({}),
        symbols: bool = False,
        variables: bool = False,
    ) -> Outcome:
        """One boot; it waits until one of `parallel` places is free. `counting` are the plug-in's options, in which the
        keys of `writes` stand for files. With `symbols` those of the kernel's functions come home too, as `kallsyms`; with
        `variables` all."""
        with self._slots:
            return self.boot_now(trial, counting, writes, "all" if variables else "yes" if symbols else "no.")

    def boot_now(self, trial: Trial, counting: str, writes: Mapping[str, Path], symbols: str) -> Outcome:
        """Boot as `boot` does, without waiting for a turn."""
        cpus = self.settings_of(trial.arm).cpus
        if self.icount.scheduling:
            online = turns.bring_online(cpus, descending=self.descends(trial))
            trial = structs.replace(trial, script=online + trial.script)
        head = self.boot_files(trial)
        notes = {"/kduel/symbols": symbols}
        if GUEST_FILE in trial.script and (count := self.boot_instructions(trial, head, notes)):
            notes[GUEST_FILE] = count
        if self.icount.scheduling:
            counting += f",out={SPENT},quantum={self.icount.quantum}"
            writes = {**writes, SPENT: trial.into / turns.TURNS}
        elif cpus > 1:
            counting += f",out={LINES}" + ("" if self.icount.layouts else ",linear=on")
            writes = {**writes, LINES: trial.into / SHARED_LINES}
        else:
            if self.shares:
                counting += f",shares={SPENT}"
                writes = {**writes, SPENT: trial.into / SHARES}
            # What explain counts beside needs the table of lines for itself.
            if self.touches and COUNTS not in writes:
                counting += f",footprint={TOUCHED}"
                writes = {**writes, TOUCHED: trial.into / FOOTPRINTS}
        with confine.nameless(head + _archive(notes)) as initrd:
            done = run(
                self.describe(trial.arm, initrd, None),
                trial.into / "console.log",
                Launch(
                    boot_deadline=self.settings.boot_deadline,
                    deadline=max(trial.deadline, self.settings.boot_deadline),
                    extra=[*self.fixed_options(trial), "-plugin", PLUGIN_FILE + counting],
                    reads={**self.read_always, PLUGIN_FILE: self.plugin},
                    writes=writes,
                    linger=self.settings.boot_deadline,
                    preload=self.guard,
                    record_host=False,
                    raised=self.raised,
                    own_time=True,
                ),
            )
        outcome = self.judge(trial, done)
        if self.icount.scheduling and not outcome.void:
            account = trial.into / turns.TURNS
            if why := turns.why_uneven(account, cpus, self.icount.quantum):
                return structs.replace(outcome, void=turns.UNEVEN, message=f"The CPUs did not have one speed: {why}.")
            outcome.facts[RESOLUTION] = turns.resolution_of_trial(account, cpus) << self.shift_of(trial.arm)
        return outcome

    def descends(self, trial: Trial) -> bool:
        """True if the trial's CPUs come online from the last to the first."""
        return self.icount.online == "descending" or (self.icount.online == "both" and trial.block % 2 == 0)

    def fixed_options(self, trial: Trial) -> list[str]:
        """QEMU's arguments that take the host's time and entropy out of the guest."""
        cpu, seed = self.cpu, 1
        if self.settings_of(trial.arm).topology:
            cpu = f"{cpu},{TOPOLOGY_READ}"
        if self.icount.layouts:
            # The guest takes its layout from these instructions, and QEMU what they give from the seed.
            cpu = cpu.replace(",-rdrand", "").replace(",-rdseed", "")
            seed = 1 + (trial.block - 1) % self.icount.layouts
        words = [
            *("-cpu", cpu, "-icount", f"shift={self.shift_of(trial.arm)},sleep=off", "-seed", str(seed)),
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

    def entry(self, arm: Arm) -> int | None:
        """The address of the kernel's first instruction; None where QEMU does not enter it itself."""
        with as_cache_error(self.cache.root):
            return pvh_entry(self.booted_file(arm.kernel).read_bytes())

    def boot_instructions(self, trial: Trial, head: bytes, notes: dict[str, str]) -> str:
        """Number of instructions that this boot takes up to init, counted in one that is the same but for the count itself;
        always as long. Empty where the kernel has no entry that QEMU can boot."""
        arm = trial.arm
        entry = self.entry(arm)
        if entry is None:
            return ""
        nothing = f"{0:015}"

        def build(into: Path) -> None:
            count = into / "count"
            with confine.nameless(head + _archive({**notes, GUEST_FILE: nothing})) as initrd:
                done = run(
                    self.describe(arm, initrd, None),
                    into / "console.log",
                    Launch(
                        boot_deadline=self.settings.boot_deadline,
                        deadline=self.settings.boot_deadline,
                        extra=[*self.fixed_options(trial), "-plugin", f"{PLUGIN_FILE},out={COUNTS},boot={entry:#x}"],
                        reads={**self.read_always, PLUGIN_FILE: self.plugin},
                        writes={COUNTS: count},
                        preload=self.guard,
                        record_host=False,
                        raised=self.raised,
                        own_time=True,
                    ),
                )
            check_not_killed(done.killed_by, "a boot")
            if not count.read_text().strip():
                count.write_text(nothing)

        key = digest(head.hex(), notes, self.key(trial))
        return f"{int((self.cache.entry('boot-counts', key, build) / 'count').read_text()):015}"


def digest(*words: object) -> str:
    """A hash of what determines something, for a key of the cache."""
    return hashlib.sha256(repr(words).encode()).hexdigest()[:32]


def _archive(notes: Mapping[str, str]) -> bytes:
    """Small files for the guest, by their paths."""
    archive = Cpio()
    for path, text in notes.items():
        archive.file(path.lstrip("/"), f"{text}\n".encode())
    return archive.finish()


class Icount(MachineKind[IcountSettings]):
    name: ClassVar[str] = "icount"
    exact: ClassVar[bool] = True
    no_turns: ClassVar[str] = "its counts do not depend on the host, and each trial is a boot of its own"
    timed_on_host: ClassVar[bool] = False
    architectures: ClassVar[frozenset[str]] = frozenset({"x86_64"})
    of_contenders: ClassVar[tuple[str, ...]] = ("cpus", "topology")
    summary: ClassVar[str] = (
        "a deterministic virtual machine that counts instructions: exact, on any host, in parallel; or, with scheduling = true, "
        "2 to 16 CPUs of one speed, for schedulers"
    )

    def read_settings(self, table: dict[str, Any]) -> IcountSettings:
        settings = super().read_settings(settle_cpus(table, self.name))
        memory = mebibytes(settings.memory, "memory")
        if not PMEM_STEP <= memory <= 1024 or memory % PMEM_STEP:
            raise InputError(
                f"machine icount: memory = {settings.memory!r} cannot be", "Give 128M to 1024M in steps of 128M."
            )
        if settings.scheduling and settings.layouts:
            raise InputError(
                "machine icount: scheduling has no layouts: with random addresses boots of several CPUs are not tried",
                "Leave one of both out.",
            )
        for name in ("quantum", "online"):
            if name in table and not settings.scheduling:
                raise InputError(
                    f"machine icount: {name} belongs to scheduling", "Give scheduling = true, or leave it out."
                )
        return settings

    def read_all_settings(self, table: dict[str, Any], contenders: Sequence[Contender]) -> list[IcountSettings]:
        """The settings as for all machines; different numbers of CPUs must be comparable."""
        found = super().read_all_settings(table, contenders)
        own = self.read_settings(table)
        if not own.scheduling and any((one.cpus > 1) != (own.cpus > 1) for one in found):
            raise InputError(
                "machine icount: one CPU counts instructions, and several count shared lines: [machine] has "
                f"{own.cpus}, contenders {', '.join(str(one.cpus) for one in found)}",
                "Give [machine] a number of the same kind, such as --machine icount:cpus=2, or scheduling = true.",
            )
        turns.check_numbers(sorted({one.cpus for one in found}), scheduling=found[0].scheduling)
        return found

    def check_host(self, settings: IcountSettings) -> None:
        """QEMU, and the priority that the environment asks for."""
        qemu_version()
        priority.is_wanted()

    def never(self, settings: dict[str, Any], benchmark: str) -> str:
        """The boot is counted from a fixed address; several CPUs share lines, and their clock counts the instructions of all."""
        several = settle_cpus(settings, self.name).get("cpus", 1) != 1
        if settings.get("scheduling"):
            alone = (BOOT.name, KBENCH.name, REQUEST.name, SHARING.name, TOUCHING.name)
            why = (
                "with scheduling = true nothing is counted but time: CPUs work together in -b kload:kind=messages and "
                "-b hackbench; what two share in an operation is counted by --suite exact-sharing"
            )
            return why if benchmark in alone else ""
        if benchmark == SHARING.name and not several:
            return "the cache lines that CPUs share take two CPUs at least: --machine icount:cpus=2, or cpus = 2 in [machine]"
        if several and benchmark != SHARING.name:
            # A CPU is the faster the more of the others are idle: no time means anything.
            return (
                "with several CPUs only shared cache lines are counted (benchmark sharing), unless scheduling = true"
            )
        if benchmark == BOOT.name and settings.get("layouts"):
            return "the boot cannot be counted with layouts, in which the kernel's addresses are random"
        return ""

    def check_kept(self, settings: IcountSettings, needs: Needs, cache: Cache) -> None:
        """The root, where benchmarks need packages."""
        if needs.packages:
            check_root_kept(needs.packages, cache=cache)

    def prepare(self, settings: IcountSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        """Make the root where benchmarks need packages, the programs and the initial RAM disks."""
        for arm in arms:
            self.check_architecture(settings, arm.kernel.spec, arm.kernel.architecture)
        cache = means["cache"]
        qemu_version()
        root = root_image(needs.packages, **means) if needs.packages else busybox("x86_64", **means).root
        modules = (*MODULES, *PMEM_MODULES) if needs.packages else MODULES
        files = needs.files_and_programs("x86_64", cache=cache)
        kernels = {arm.kernel.sha256: arm.kernel for arm in arms}
        images = {
            sha: (None if settings.layouts else uncompressed_kernel(kernel, cache)) or kernel.image
            for sha, kernel in kernels.items()
        }
        bases = {
            parts: initramfs.base_archive(
                kernel, root.busybox, cache=cache, programs=files, modules=modules, carried=needs.modules
            )
            for parts, kernel in {arm.kernel.parts: arm.kernel for arm in arms}.items()
        }
        return IcountMachine(
            settings, root, bases, images, cache, arms, whole_root=bool(needs.packages), trial_files=needs.trial_files
        )


PLUGIN = Icount()
