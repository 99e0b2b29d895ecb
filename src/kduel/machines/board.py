"""The machine `board`: each trial in a fresh boot of an embedded board (kduel.machines.boards), emulated by QEMU or
real, with a root of ours: in the initial RAM disk, or mounted by the kernel from a disk or over NFS."""

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, Unpack

from msgspec import Meta, structs

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.host_packages import install_command
from kduel.guest import initramfs
from kduel.guest.busybox import busybox
from kduel.guest.confine import SANDBOX, Handles
from kduel.guest.emulator import qemu_version
from kduel.guest.size import Size, mebibytes
from kduel.guest.vm import RESULTS_PORT, VirtualMachine, Wiring, chardev
from kduel.kernels import Kernel
from kduel.kernels.files.image import images_entered_alike, kernel_contents
from kduel.machines import ONE_BY_ONE, Arm, Machine, MachineKind, MachineSettings, Means, Needs, Seconds
from kduel.machines.boards import ROOT_FILE, Board, EmulatorSettings, board, known_boards
from kduel.machines.boards.described import DescribedBoard
from kduel.machines.guests.judged import QemuSettings
from kduel.machines.host.processors import host_cpus
from kduel.machines.qemu import TCG_WARNING, InQemu

BUILT_IN = {"disk": "CONFIG_EXT4_FS", "nfs": "CONFIG_ROOT_NFS"}
"""What a kernel must have built in to mount a root."""


class BoardSettings(MachineSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    place: str = ""
    """Which board: a name that `kduel list boards` knows, or a file of your own (MINE.toml)."""
    lab_place: str = ""
    """labgrid's place, in place of the one in the board's description, where @PLACE@ stands for it."""
    memory: Size = ""
    """RAM; by default that of the board's description."""
    cpus: Annotated[int, Meta(ge=0, le=255)] = 0
    """0: as in the board's description."""
    cmdline: str = ""
    """Words added to every contender's command line."""
    boot_deadline: Seconds = 300.0
    """Seconds from start to the script."""


AT = "@PLACE@"


class BoardGuest(VirtualMachine, frozen=True, kw_only=True):
    """A board as QEMU is to make it."""

    emulated: EmulatorSettings
    ram_disk: bool = True
    """True if what a boot brings along is its initial RAM disk, and not the disk of its root, or nothing."""

    def with_open_files(self, given: Handles) -> Self:
        """With the files that the description's further arguments name by their absolute paths, too."""
        extra = []
        for before, word in zip(("", *self.emulated.extra), self.emulated.extra, strict=False):
            match = re.search(r"(?:^|(?<=file=))/[^,]+", word)
            if match and (path := Path(match[0])).is_file():
                handed = given.disk(path) if before in ("-drive", "-blockdev") else given.reading(path)
                word = word.replace(match[0], str(handed))
            extra.append(word)
        return structs.replace(super().with_open_files(given), emulated=structs.replace(self.emulated, extra=extra))

    def argv(self, wiring: Wiring, *, paused: bool = False) -> list[str]:
        """QEMU's arguments: nothing of the host but the files named here, no network, no reboot."""
        emulated = self.emulated
        out = [
            emulated.program,
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *SANDBOX),
            *("-machine", f"{emulated.machine},accel={self.accelerator}", "-cpu", emulated.cpu),
            *("-smp", str(self.cpus), "-m", f"{self.memory_mib}M"),
            *("-kernel", str(self.kernel), *(("-initrd", str(self.initrd)) if self.ram_disk else ())),
            *("-append", self.cmdline),
            *("-chardev", chardev(wiring.console, "console"), "-serial", "chardev:console"),
            *("-chardev", chardev(wiring.results, "results")),
        ]
        if emulated.results == "virtio":
            out += ["-device", "virtio-serial-pci"]
            out += ["-device", f"virtserialport,chardev=results,name={RESULTS_PORT}"]
        else:
            out += ["-serial", "chardev:results"]
        for name, line in (("monitor", wiring.monitor), ("observer", wiring.observer)):
            if line:
                out += ["-chardev", chardev(line, name), "-mon", f"chardev={name},mode=control"]
        root = str(self.initrd).replace(",", ",,")
        extra = [word.replace(ROOT_FILE, root) for word in emulated.extra]
        return [*out, *extra, *(["-S"] if paused else [])]


class BoardMachine(DescribedBoard, InQemu):
    """An emulated board, made by `Boards.prepare`."""

    def set_up(self, place: str) -> None:
        """EmulatorSettings by QEMU, in TCG."""
        emulated, settings = self.board.qemu, self.settings
        assert emulated is not None
        self.accelerator, self.disk, self.pin = "tcg", None, host_cpus(settings.cpus)
        self.root = self.box.root
        self.timing_warning, self.emulated = TCG_WARNING, True
        self.facts |= {
            "accelerator": "tcg",
            "qemu": qemu_version(emulated.program),
            "emulated": {"machine": emulated.machine, "cpu": emulated.cpu},
            "pinned": self.pin,
        }

    def describe(self, arm: Arm, initrd: Path, disk: Path | None) -> VirtualMachine:
        assert self.board.qemu is not None
        emulated, ram_disk = self.board.qemu, self.board.root == "ram"
        return self.make_guest(BoardGuest, arm, initrd, emulated=emulated, ram_disk=ram_disk)

    def by_hand(self, arm: Arm) -> str:
        """Script as for other guests; but the guest's busybox does not run here, so that packing takes the host's cpio."""
        script = super().by_hand(arm).replace(f"{self.root.busybox} cpio", "cpio")
        if self.board.root == "ram":
            return script
        root = shlex.quote(self.board.tree) if self.board.tree else '"$work/root"'
        base = shlex.quote(str(self.bases[arm.kernel.parts].archive))
        made = [
            f"for name in kduel run tmp scratch; do mkdir -p {root}/$name; done",
            f"(cd {root} && cpio -idmu --quiet -f dev/console) <{base}",
            f'cp "$here/guest.sh" {root}/kduel/guest.sh',
            *(['mke2fs -q -F -t ext4 -d "$work/root" "$work/initrd" 256M'] if self.board.root == "disk" else []),
        ]
        *before, qemu = script.splitlines()
        return "\n".join([*before, *made, qemu, ""])


class Boards(MachineKind[BoardSettings]):
    name: ClassVar[str] = "board"
    no_turns: ClassVar[str] = ONE_BY_ONE
    records_host: ClassVar[bool] = False
    summary: ClassVar[str] = "board:NAME: an embedded board, with our own programs alone: " + ", ".join(
        known_boards()
    )

    def read_settings(self, table: dict[str, Any]) -> BoardSettings:
        """The typed settings, of a board that is there. Raises InputError, or HostError for a missing emulator."""
        settings = super().read_settings(table)
        if settings.memory != "":
            mebibytes(settings.memory, "memory")
        emulated = board(settings.place).qemu
        if emulated is None:
            from kduel.machines.labgrid import board as labgrid_board

            labgrid_board.check_installed()
        elif shutil.which(emulated.program) is None:
            raise HostError(
                f"the board {settings.place} needs {emulated.program}, which is not installed",
                f"Install it: {install_command(emulated.program, emulated.package)}.",
            )
        return settings

    def check_architecture(self, settings: BoardSettings, spec: str, architecture: str) -> None:
        """By the board's description."""
        wanted = board(settings.place).architecture
        if architecture != wanted:
            raise InputError(
                f"the board {settings.place} is {wanted}, {spec} is a kernel for {architecture}",
                "Debian's kernels of other architectures are named like debian:6.1-arm64, debian:6.12-riscv64.",
            )

    def check_needs(self, settings: BoardSettings, needs: Needs) -> None:
        """Nothing of a distribution."""
        wanted = [*needs.packages, *(["a scratch disk"] if needs.scratch else [])]
        if wanted:
            raise InputError(
                f"the study's benchmarks need {', '.join(wanted)}, and a board has nothing of a distribution",
                "Use those that are our own programs: kbench, lmbench, memory, boot-timeline, wakeup, load.",
            )

    def prepare(self, settings: BoardSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        """Fetch the busybox, build the programs for the architecture, make the initial RAM disks."""
        cache = means["cache"]
        described = at_place(board(settings.place), settings.lab_place)
        for arm in arms:
            self.check_architecture(settings, arm.kernel.spec, arm.kernel.architecture)
        self.check_needs(settings, needs)
        check_root(settings.place, described, arms)
        inner = QemuSettings(
            cpus=settings.cpus or described.cpus, memory=settings.memory or described.memory, accel="tcg",
            clocksource=described.clocksource, cmdline=settings.cmdline, boot_deadline=settings.boot_deadline,
        )  # fmt: skip
        mebibytes(inner.memory, "memory")
        box = busybox(described.architecture, described.busybox, **means)
        files = needs.files_and_programs(described.architecture, cache=cache)
        kernels = {arm.kernel.sha256: arm.kernel for arm in arms}
        bases = {
            parts: initramfs.base_archive(
                kernel, box.file, cache=cache, programs=files, modules=described.modules, carried=needs.modules
            )
            for parts, kernel in {arm.kernel.parts: arm.kernel for arm in arms}.items()
        }
        images = plain_images(kernels, cache)
        if described.labgrid:
            from kduel.machines.labgrid.board import LabgridMachine

            return LabgridMachine(settings.place, described, inner, box, bases, images, cache)
        machine = BoardMachine(settings.place, described, inner, box, bases, images, cache)
        machine.facts["argv"] = machine.argv_by_contender(arms)
        return machine


def at_place(described: Board, place: str) -> Board:
    """The description for another place of the lab, if one is given. Raises InputError for a board in no lab."""
    if not place:
        return described
    if described.labgrid is None:
        raise InputError("lab_place is for boards in a lab", "The board's description has no table [labgrid].")
    real = described.labgrid
    own = structs.replace(
        real,
        place=place,
        environment=real.environment.replace(AT, place),
        files=real.files.replace(AT, place),
        commands=[line.replace(AT, place) for line in real.commands],
    )
    return structs.replace(described, labgrid=own)


def check_root(place: str, described: Board, arms: Sequence[Arm]) -> None:
    """Raises InputError for a kernel that cannot mount the root."""
    for arm in arms:
        option = BUILT_IN.get(described.root)
        if option and arm.kernel.config and f"\n{option}=y\n" not in arm.kernel.config.read_text():
            raise InputError(
                f"the board {place} has its root on {described.root}, and {arm.kernel.spec} cannot mount one: it is not "
                f"built with {option}=y",
                f"Build one that is: debian-source:6.1,config=tinyconfig+guest+{option.removeprefix('CONFIG_')}=y+...; "
                "docs/boards.md has a complete one.",
            )


def plain_images(kernels: Mapping[str, Kernel], cache: Cache) -> dict[str, Path]:
    """The kernels' images as every QEMU and boot loader takes them: not packed, and not in an EFI program."""
    if any(kernel.architecture == "x86_64" for kernel in kernels.values()):
        return images_entered_alike(kernels, cache)

    def unpack(kernel: Kernel) -> Path:
        def build(into: Path) -> None:
            (into / "Image").write_bytes(kernel_contents(kernel.image))

        return cache.entry("board-image", kernel.sha256, build) / "Image"

    return {sha: unpack(kernel) for sha, kernel in kernels.items()}


PLUGIN = Boards()
