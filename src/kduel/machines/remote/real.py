"""Real machines: they are examined, receive what a run needs, and are restored afterwards."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.guest.conditions import check as check_bands
from kduel.guest.link import declared_lines
from kduel.kernels import InstalledKernel, Kernel
from kduel.kernels.files.modules import modules_digest
from kduel.machines import ONE_BY_ONE, Arm, Machine, MachineKind, Needs, Outcome, Trial
from kduel.machines.remote.connection import REMEDIES, Connection, ConnectionLost, TrialRefused, run_or_fail
from kduel.machines.remote.grub import MenuEntry
from kduel.machines.remote.provision import Loan, LoanSettings
from kduel.machines.remote.settings import RealSettings
from kduel.machines.remote.ssh_trial import Journey


class RealMachine(Machine):
    """A machine that was there before the run, and will be there after it."""

    way: ClassVar[type[Journey]] = Journey
    """Of a trial."""
    broken: ClassVar[str] = "unreachable"
    """The name of a void trial in which the connection to the machine was lost."""
    records_inside = True

    def __init__(
        self,
        settings: RealSettings,
        connection: Connection,
        entries: dict[str, MenuEntry],
        facts: dict[str, Any],
        programs: Mapping[str, bytes],
        loan: Loan,
    ) -> None:
        self.settings, self.connection, self.entries, self.programs = settings, connection, entries, programs
        self.facts, self.loan = facts, loan
        peer = settings.peer
        if peer.address:
            self.link = declared_lines(peer.address, peer.own_address, peer.shell)

    def modules(self, kernel: Kernel) -> str | None:
        """Digest of all modules brought with the kernel: which of them are loaded is up to the machine."""
        return None if isinstance(kernel, InstalledKernel) else modules_digest(kernel.modules)

    def boot(self, trial: Trial) -> Outcome:
        """The arm's kernel, the script, its files."""
        journey = self.way(
            self.settings, self.connection, trial, boot=self.facts["boot"], entries=self.entries,
            cmdline=self.facts.get("cmdline", ""), programs=self.programs,
        )  # fmt: skip
        try:
            outcome = journey.go()
        except TrialRefused as error:
            outcome = cut_off(error.void, str(error), in_boot="launched" in journey.timings)
        except ConnectionLost as error:
            outcome = cut_off(self.broken, str(error), in_boot="launched" in journey.timings)
        (trial.into / "console.log").write_text("".join(journey.log), "utf-8", errors="replace")
        return msgspec.structs.replace(outcome, timings=journey.timings, facts=journey.facts)

    def close(self) -> None:
        """Take away the kernels and boot entries that were put there."""
        self.loan.give_back()


R = TypeVar("R", bound=RealSettings)


class RealKind(MachineKind[R]):
    """A kind of machines that exist: with kernels of their own, and a peer that is declared."""

    installed_kernels: ClassVar[bool] = True
    no_turns: ClassVar[str] = ONE_BY_ONE
    records_host: ClassVar[bool] = False

    def read_settings(self, table: dict[str, Any]) -> R:
        """The typed settings, with a value for each condition that is to be set."""
        settings = super().read_settings(table)
        check_bands(settings.conditions)
        return settings

    def why_no_peer(self, settings: R) -> str:
        return settings.peer.lacks


def cut_off(void: str, message: str, *, in_boot: bool) -> Outcome:
    """A trial whose machine could not be reached, or refused something. `in_boot`: when it had gone down for the
    contender's kernel. A machine that does not answer from there may do so for that kernel's sake."""
    return Outcome(
        void="no-answer" if in_boot and void in REMEDIES else void,
        message=f"{message}. {REMEDIES.get(void, '')}".strip(),
    )


class SurveySettings(LoanSettings, Protocol):
    @property
    def free_mib(self) -> int: ...


def check_commands(connection: Connection, commands: Sequence[tuple[str, str, str]]) -> None:
    """Raises HostError where a machine lacks one of `Needs.commands`."""
    missing = missing_of(connection, [command for command, *_ in commands])
    if found := next((one for one in commands if one[0] in missing), None):
        command, package, step = found
        packages = " ".join(sorted({other for name, other, _ in commands if name in missing}))
        raise HostError(
            f"{connection.place} lacks {command}, which {step} runs",
            f"Install the package {package} there; all that is missing, in Debian: apt install {packages}"
            if packages != package
            else f"Install it there; in Debian: apt install {package}",
        )


def missing_of(connection: Connection, commands: Sequence[str]) -> list[str]:
    """Those of the commands that the machine's shell does not find. Raises HostError."""
    script = f"for t in {' '.join(commands)}; do command -v $t >/dev/null || echo $t; done"
    return run_or_fail(connection, script, "it cannot be examined").split() if commands else []


def survey(
    connection: Connection,
    settings: SurveySettings,
    arms: Sequence[Arm],
    *,
    boot: str,
    commands: Sequence[tuple[str, str, str]] = (),
) -> dict[str, Any]:
    """Facts about the machine for the whole run. Raises HostError for what it lacks."""
    tools = ["setsid", "tar", "sha256sum", "awk"]
    tools += {"no": ["ps"], "slurm": []}.get(boot, ["systemctl", boot])
    if missing := missing_of(connection, sorted(tools)):
        raise HostError(f"{settings.place} lacks {', '.join(missing)}", "Install them there.")
    check_commands(connection, commands)
    free = run_or_fail(
        connection, f"df -Pk {shlex.quote(settings.directory)}", f"there is no {settings.directory}"
    ).split()[-3]
    if int(free) < settings.free_mib * 1024:
        raise HostError(
            f"{settings.place}: {settings.directory} has {int(free) // 1024} MiB free, {settings.free_mib} are required",
            "Free some space there, or give another directory.",
        )
    extended = next((arm for arm in arms if arm.contender.scheduler), None)
    if boot == "no" and extended is not None and connection.run("test -d /sys/kernel/sched_ext").status:
        raise HostError(
            f"{settings.place}: its kernel has no sched_ext (there is no /sys/kernel/sched_ext), which "
            f"{extended.contender.name} needs",
            "Boot a kernel with CONFIG_SCHED_CLASS_EXT there: Debian's 6.18 and later have it.",
        )
    images = {}
    for arm in arms:
        if boot in ("no", "slurm") or not isinstance(arm.kernel, InstalledKernel):
            continue
        path = f"/boot/vmlinuz-{arm.kernel.release}"
        found = run_or_fail(connection, f"ls /boot; sha256sum {path} 2>/dev/null || true", "its /boot cannot be read")
        words = found.splitlines()[-1].split()
        if len(words) != 2 or words[1] != path:
            if boot == "bootctl":
                # It may lie on the EFI system partition alone; its entry is looked for later.
                continue
            there = [w.removeprefix("vmlinuz-") for w in found.split() if w.startswith("vmlinuz-")]
            raise HostError(
                f"{settings.place} has no kernel {arm.kernel.release}; it has {', '.join(there)}", "Install it there."
            )
        images[arm.kernel.release] = words[0]
    cpu = run_or_fail(connection, "grep -m1 '^model name' /proc/cpuinfo || true", "its CPU cannot be read")
    product = run_or_fail(
        connection, "cat /sys/class/dmi/id/product_name 2>/dev/null || true", "it cannot be examined"
    )
    return {
        "place": settings.place,
        "boot": boot,
        "cpu": cpu.partition(":")[2].strip(),
        "product": product.strip(),
        "images": images,
    }


def read_programs(needs: Needs, architecture: str, cache: Cache) -> dict[str, bytes]:
    """The programs that trials bring along, by name: the cache may be cleared while the run lasts."""
    return {name: path.read_bytes() for name, path in needs.files_and_programs(architecture, cache=cache)}
