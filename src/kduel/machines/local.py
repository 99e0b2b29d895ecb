"""The machine `local`: the one that KDuel runs on. Without reboots for schedulers and sysctls; with them by a resume unit."""

import os
import shlex
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Unpack

import msgspec
from msgspec import Struct

from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender
from kduel.core.untrusted import NOT_JSON
from kduel.machines import Arm, Machine, Means, Needs, Outcome, Trial
from kduel.machines.remote.connection import ConnectionLost, LocalConnection, TrialRefused
from kduel.machines.remote.local_unit import ROOT, STATE, installed_for
from kduel.machines.remote.provision import Loan, boot_entries
from kduel.machines.remote.real import RealKind, RealMachine, check_commands, read_programs, survey
from kduel.machines.remote.settings import RealSettings
from kduel.machines.remote.ssh_trial import Journey, default_cmdline, look

ONE_BOOT = (
    "All trials run in one boot of this machine, on which KDuel itself runs: what differs from boot to boot is not in the "
    "intervals."
)
MOST_ATTEMPTS = 2
"""At leaving for one trial's boot."""


class LocalSettings(RealSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    boot: Literal["no", "grub-reboot", "bootctl", "kexec"] = "no"
    """"no": contenders share the boot that is there, and the study's unit is the load of a scheduler (blocks.unit =
    "load"). Else how this machine is rebooted before each trial."""

    place: ClassVar[str] = "this machine"


class Way(Struct, kw_only=True):
    """Knowledge that outlasts a reboot: STATE."""

    trial: str
    stage: Literal["leaving", "measuring"]
    boot_id: str
    attempts: int = 1


class LocalJourney(Journey):
    """A trial on this machine; across a reboot it is made in two halves, by two processes."""

    def go(self) -> Outcome:
        return self.stay() if self.boot == "no" else self.leave_or_measure()

    def stay(self) -> Outcome:
        """In the boot that is there. Raises ConnectionLost and TrialRefused."""
        now = look(self.connection)
        self.end_scripts()
        return self.measure(now)

    def leave_or_measure(self) -> Outcome:
        """Reboot, and never return; or measure where this is the boot that was left for. Raises ConnectionLost and TrialRefused."""
        now = look(self.connection)
        way = read_way()
        if way is None or way.trial != self.trial.id:
            way = Way(trial=self.trial.id, stage="leaving", boot_id=now.boot_id)
        elif way.stage == "measuring" and way.boot_id != now.boot_id:
            forget_way()
            self.facts["boot_id"] = way.boot_id
            return self.end_dead_trial()
        elif way.stage == "leaving" and way.boot_id != now.boot_id:
            keep_way(msgspec.structs.replace(way, stage="measuring", boot_id=now.boot_id))
            # Not where KDuel is interrupted, as it is by a reboot: the trial must not be made again for ever.
            try:
                outcome = self.measure(now)
            except (ConnectionLost, TrialRefused):
                forget_way()
                raise
            forget_way()
            return outcome
        elif way.stage == "leaving" and way.attempts >= MOST_ATTEMPTS:
            forget_way()
            return Outcome(void="boot-refused", message=f"The machine did not go down, {way.attempts} times.")
        else:
            # Interrupted before it went down, or while it measured: from the beginning.
            attempts = way.attempts + 1 if way.stage == "leaving" else 1
            way = Way(trial=self.trial.id, stage="leaving", boot_id=now.boot_id, attempts=attempts)
        keep_way(way)
        self.reboot(now)
        time.sleep(self.settings.boot_deadline)
        raise TrialRefused("boot-refused", f"the machine did not go down within {self.settings.boot_deadline:.0f} s")


class LocalMachine(RealMachine):
    """Made by `Local.prepare`."""

    way = LocalJourney
    broken = "no-answer"

    def __init__(self, settings: LocalSettings, *parts: Any) -> None:
        super().__init__(settings, *parts)
        self.reboots = settings.boot != "no"
        self.timing_warning = "" if self.reboots else ONE_BOOT

    def boot(self, trial: Trial) -> Outcome:
        """The script in this boot, or in a new one, which ends this process. Raises HostError if none resumes it."""
        if self.reboots and (run := installed_for()) not in trial.into.absolute().parents:
            typed = shlex.quote(str(trial.into.parent.parent))
            raise HostError(
                "this study reboots this very machine, and no unit continues it afterwards"
                + (f" (the one that is installed is for {run})" if run else ""),
                f"Install it: kduel local install {typed}. Then: kduel resume {typed}. `kduel local remove` removes it.",
            )
        return super().boot(trial)

    def close(self) -> None:
        """Take away the boot entries that were made; not while this machine goes down to boot one of them."""
        if read_way() is None:
            super().close()


class Local(RealKind[LocalSettings]):
    """Prepared by looking around."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = (
        "this very machine, as root: schedulers and sysctls without a reboot (unit load), kernels with a resume unit"
    )

    def stays(self, settings: dict[str, Any]) -> bool:
        return bool(settings.get("boot", "no") == "no")

    def check_host(self, settings: LocalSettings) -> None:
        """It is root who measures."""
        if os.geteuid() != 0:
            raise HostError(
                "measuring this machine needs root: sysctls, governors and schedulers are root's",
                "Start it with sudo.",
            )

    def check_contender(self, settings: LocalSettings, contender: Contender, spec: str) -> None:
        """It must be a kernel that is installed here, and the running one where nothing reboots."""
        running = os.uname().release
        release = running if spec == "host" else spec.removeprefix("installed:")
        if spec not in ("host", f"installed:{release}"):
            raise InputError(
                f"the machine local runs kernels that are installed on it; {spec!r} is none",
                f'Write kernel = "installed:{running}" for the one that runs now.',
            )
        if settings.boot == "no" and release != running:
            raise InputError(
                f"{contender.name} has the kernel {release}; {running} runs, and nothing reboots",
                'Give all contenders this one, or reboot between them: boot = "grub-reboot" in [machine].',
            )
        if contender.cmdline and settings.boot == "no":
            raise InputError(
                f"{contender.name} adds words to the command line, which takes a boot of its own",
                'Reboot between contenders: boot = "grub-reboot" in [machine].',
            )

    def check_needs(self, settings: LocalSettings, needs: Needs) -> None:
        check_commands(LocalConnection(), needs.commands)

    def prepare(self, settings: LocalSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        connection = LocalConnection()
        try:
            now = look(connection)
        except ConnectionLost as error:
            raise HostError(
                f"this machine cannot be examined: {error}", "A shell must find cat, cut, date and uname: see PATH."
            ) from error
        for arm in arms:
            self.check_contender(settings, arm.contender, arm.kernel.spec)
        self.check_host(settings)
        facts = survey(connection, settings, arms, boot=settings.boot, commands=needs.commands)
        loan = Loan(settings, connection, means["progress"])
        entries = boot_entries(loan, arms, now)
        if settings.boot == "kexec":
            facts["cmdline"] = default_cmdline(now)
        return LocalMachine(
            settings, connection, entries, facts, read_programs(needs, now.architecture, means["cache"]), loan
        )


def read_way() -> Way | None:
    """Knowledge from before the reboot; None where nothing is, or it is damaged: then the trial begins again."""
    try:
        return msgspec.json.decode((ROOT / STATE).read_bytes(), type=Way)
    except (OSError, *NOT_JSON):
        return None


def keep_way(way: Way) -> None:
    """Whole, or not at all, and on the disk before anything reboots. Raises TrialRefused where it cannot be kept."""
    fresh = (ROOT / STATE).with_suffix(".new")
    try:
        with fresh.open("wb") as stream:
            stream.write(msgspec.json.encode(way))
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(ROOT / STATE)
    except OSError as error:
        raise TrialRefused("setup-failed", f"{ROOT / STATE} cannot be written: {error.strerror}") from error


def forget_way() -> None:
    (ROOT / STATE).unlink(missing_ok=True)


PLUGIN = Local()
