"""A machine whose trials boot a guest of KDuel's own: its settings, and how a boot's results are judged."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct, structs

from kduel.core import untrusted
from kduel.core.cache import Cache, as_cache_error
from kduel.core.experiment import EMULATOR_FAULT
from kduel.guest import envelope, initramfs, link
from kduel.guest.console import read_console
from kduel.guest.diagnosis import diagnose, findings_in
from kduel.guest.environment import environments_in, read_environment
from kduel.guest.gates import clock_trouble, gate
from kduel.guest.initramfs import Base
from kduel.guest.launch import Run
from kduel.guest.size import Size
from kduel.guest.topology import Topology, parse_topology, settle_cpus, why_other_topology
from kduel.kernels import Kernel
from kduel.machines import Arm, Machine, MachineSettings, Outcome, Seconds, Trial


class PeerSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [machine.peer]: the second guest, where a step needs one. It is the same for all contenders."""

    kernel: str = ""
    """Its kernel, as of a contender; by default the baseline's, without what the contender adds to it."""
    cpus: Annotated[int, Meta(ge=1, le=255)] = 1
    memory: Size = "1024M"


class QemuSettings(MachineSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    cpus: Annotated[int, Meta(ge=1, le=255)] = 2
    topology: str = ""
    """Of the CPUs: "2 nodes x 2 llc x 4 cores x 2 threads", or a preset (smt, two-llc, epyc, two-sockets, server). It determines
    cpus. A trial whose guest sees another one is void."""
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
    peer: PeerSettings = PeerSettings()

    @property
    def planned_topology(self) -> Topology | None:
        """The topology that was asked for. Raises InputError."""
        return parse_topology(self.topology) if self.topology else None


class GuestMachine(Machine):
    """A machine whose trials boot a guest of ours, in QEMU (`InQemu`) or on a board, that sends an envelope."""

    def __init__(
        self, settings: QemuSettings, bases: Mapping[str, Base], images: Mapping[str, Path], cache: Cache
    ) -> None:
        """`bases` are the initial RAM disks by the kernel's parts, and `images` the kernels by SHA-256."""
        self.settings, self.bases, self.images, self.cache = settings, bases, images, cache
        self.heard: set[str] = set()
        """Kernels that have printed something, by SHA-256."""

    def with_settings(self, **settings: Any) -> Self:
        """This machine with other settings; `close` the original only."""
        other = copy.copy(self)
        other.settings = structs.replace(self.settings, **settings)
        return other

    def settings_of(self, arm: Arm) -> QemuSettings:
        """The settings of an arm's guests: the machine's, and in their place those of the contender."""
        own = arm.contender.machine
        return structs.replace(self.settings, **settle_cpus(own, "guest")) if own else self.settings

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
                console, ended=done.ended, ready="ready" in done.timings, seconds=done.timings["off"] - done.waited,
                waited=done.waited, stderr=done.stderr, stuck=done.stuck,
            )  # fmt: skip
            void, message = found.void, found.message
            if void in ("oops", "soft-lockup") and (fault := self.fault_of_emulator(trial.arm, console)):
                facts["excused"] = void
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
        elif status in link.VOIDS:
            lost = link.loss_of_peer(status, trial.into)
            void, message = lost.code, lost.message
        elif status:
            void, message = "setup-failed", self.why_setup_failed(trial.into, status)
        elif reason := self.why_wrong(trial):
            void, message = "wrong-machine", f"The guest is not what was planned: {reason}."
        return Outcome(void=void, message=message, timings=done.timings, facts=facts, host=done.host)

    def fault_of_emulator(self, arm: Arm, console: Sequence[str]) -> str:
        """Reason why an oops is the emulator's fault and not the kernel's; empty where it is not known to be."""
        return ""

    def why_wrong(self, trial: Trial) -> str:
        """Properties of the guest that differ from the plan; a boot may have captured its environment several times."""
        captured = environments_in(trial.into)
        expected = self.expected_environment(trial.arm)
        planned = self.settings_of(trial.arm).planned_topology
        reasons = ["" if captured else "it recorded nothing of its environment"]
        for environment in map(read_environment, captured):
            reasons.append(gate(environment, expected))
            if planned:
                reasons.append(why_other_topology(environment.get("topology", {}), planned))
        return next((reason for reason in reasons if reason), "")

    @staticmethod
    def why_setup_failed(into: Path, status: int) -> str:
        return f"The setup lines failed; the script ended with {status}: {untrusted.read_end(into / 'setup' / 'stderr', 2000)}"

    def expected_environment(self, arm: Arm) -> dict[str, Any]:
        settings = self.settings_of(arm)
        clock = settings.clocksource
        return {
            "release": arm.kernel.release,
            "architecture": arm.kernel.architecture,
            "cpus": settings.cpus,
            "clocksource": clock,
            "clocksource_end": clock,
        }


def why_clock_wrong(marks: Mapping[str, tuple[float, int | None]], timings: Mapping[str, float]) -> str:
    """From the guest's marks and the host's times of them; empty where one is missing."""
    if {"READY", "DONE"} <= marks.keys() and {"ready", "done"} <= timings.keys():
        return clock_trouble(marks["DONE"][0] - marks["READY"][0], timings["done"] - timings["ready"])
    return ""


def one_or_all(values: Iterable[int]) -> int | list[int]:
    """The one value that all guests have; else all values, in order."""
    found = sorted(set(values))
    return found[0] if len(found) == 1 else found
