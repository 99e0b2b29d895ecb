"""The virtual machine, in one place: from a description to QEMU's arguments."""

from pathlib import Path
from typing import Self

from msgspec import Struct, structs

from kduel.guest.confine import SANDBOX, Handles
from kduel.guest.topology import Topology

RESULTS_PORT = "kduel.results"
ROOT_SERIAL = "kduel-root"
SCRATCH_SERIAL = "kduel-scratch"
TOPOLOGY_READ = "vendor=GenuineIntel"
"""With it every kernel reads the emulated CPU's threads and caches."""


class Platform(Struct, frozen=True):
    """Differences between architectures."""

    binary: str
    machine: str
    console: str
    processor: dict[str, str]
    """CPU model by accelerator."""


PLATFORMS = {
    # A vendor of GenuineIntel would make every kernel trust the TSC, but also bring Intel's mitigations into the
    # emulated CPU; `tsc=reliable` (see kduel.guest.cmdline) does the same for all kernels without that.
    "x86_64": Platform("qemu-system-x86_64", "q35", "ttyS0", {"tcg": "max", "kvm": "host,migratable=no,+invtsc"})
}


class Wiring(Struct, frozen=True):
    """Destinations of the guest's lines: QEMU chardev backends, such as `socket,fd=7`, `stdio`, `file,path=x`."""

    console: str
    results: str
    monitor: str = ""
    observer: str = ""
    """A second monitor, for a look at a machine that does not end."""


class VirtualMachine(Struct, frozen=True, kw_only=True):
    """A guest to be: hardware, kernel and disks."""

    architecture: str = "x86_64"
    accelerator: str
    """`kvm` or `tcg`."""
    cpus: int
    topology: Topology | None = None
    """None: so many packages of one CPU each."""
    memory_mib: int
    kernel: Path
    initrd: Path
    cmdline: str
    root: Path | None = None
    """A read-only image."""
    scratch: Path | None = None
    """A raw disk of this boot alone."""
    disk_cache: str = "writeback"

    @property
    def board(self) -> Platform:
        return PLATFORMS[self.architecture]

    @property
    def processor(self) -> str:
        """QEMU's CPU model. The emulated one has AMD's name without AMD's leaves for threads and caches; with Intel's name
        every kernel reads both (and takes Intel's mitigations for its own)."""
        model = self.board.processor[self.accelerator]
        return f"{model},{TOPOLOGY_READ}" if self.topology and self.accelerator == "tcg" else model

    def with_open_files(self, given: Handles) -> Self:
        """Copy of the machine with its files as QEMU is handed them. Raises HostError."""
        root = given.reading(self.root) if self.root else None
        return structs.replace(self, kernel=given.reading(self.kernel), initrd=given.reading(self.initrd), root=root)

    def argv(self, wiring: Wiring, *, paused: bool = False) -> list[str]:
        """QEMU's arguments: nothing of the host but the files named here, no network, no reboot."""
        board = self.board
        out = [
            board.binary,
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *SANDBOX),
            *("-machine", f"{board.machine},accel={self.accelerator}"),
            *("-cpu", self.processor),
            *(self.topology.argv(self.memory_mib) if self.topology else ("-smp", str(self.cpus))),
            *("-m", f"{self.memory_mib}M"),
            *("-kernel", str(self.kernel), "-initrd", str(self.initrd), "-append", self.cmdline),
            *("-chardev", f"{chardev(wiring.console, 'console')}", "-serial", "chardev:console"),
            *("-device", "virtio-serial-pci", "-chardev", chardev(wiring.results, "results")),
            *("-device", f"virtserialport,chardev=results,name={RESULTS_PORT}"),
        ]
        if self.root:
            out += _disk("root", self.root, ROOT_SERIAL, "read-only=on")
        if self.scratch:
            out += _disk(
                "scratch", self.scratch, SCRATCH_SERIAL, f"cache={self.disk_cache},discard=unmap,werror=report"
            )
        for name, backend in (("monitor", wiring.monitor), ("observer", wiring.observer)):
            if backend:
                out += ["-chardev", chardev(backend, name), "-mon", f"chardev={name},mode=control"]
        return [*out, "-S"] if paused else out


def chardev(specification: str, name: str) -> str:
    """A character device of that name, as -chardev takes it."""
    kind, comma, options = specification.partition(",")
    return f"{kind},id={name}{comma}{options}"


def _disk(name: str, file: Path, serial: str, options: str) -> list[str]:
    escaped = str(file).replace(",", ",,")
    drive = f"if=none,id={name},format=raw,file={escaped},{options}"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name},serial={serial}"]
