"""The machine `ssh`: a real one, reached by SSH, with the kernels installed; each trial in a boot of its own."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

from kduel.core.errors import HostError, InputError
from kduel.guest.conditions import check as check_bands
from kduel.kernels import InstalledKernel
from kduel.machines import Arm, Machine, MachineKind, Means, Needs
from kduel.machines.remote.connection import REMEDIES, Connection, ConnectionLost, TrialRefused
from kduel.machines.remote.provision import Loan, boot_entries, bring_kernels
from kduel.machines.remote.real import RealMachine, read_programs, survey
from kduel.machines.remote.settings import SshSettings
from kduel.machines.remote.ssh_trial import Observation, default_cmdline, look


class Ssh(MachineKind[SshSettings]):
    """Prepared by looking: what is there, whether one may reboot it, which kernels it has."""

    name: ClassVar[str] = "ssh"
    summary: ClassVar[str] = (
        "a real machine reached by SSH, rebooted into its own kernels or copied ones (grub-reboot, bootctl or kexec)"
    )
    installed_kernels: ClassVar[bool] = True
    timed_on_host: ClassVar[bool] = False

    def why_no_peer(self, settings: SshSettings) -> str:
        """It is declared."""
        return settings.peer.lacks

    def prepare(self, settings: SshSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        progress = means["progress"]
        check_arms(settings, arms)
        check_bands(settings.conditions)
        with progress.task(f"looking at {settings.place}"):
            connection, now = connect(settings)
            facts = survey(connection, settings, arms, boot=settings.boot, commands=needs.commands)
        if settings.boot == "kexec":
            facts["cmdline"] = default_cmdline(now)
        programs = read_programs(needs, now.architecture, means["cache"])
        loan = Loan(settings, connection, progress)
        try:
            bring_kernels(loan, arms, now, facts)
            entries = boot_entries(loan, arms, now)
        except BaseException:
            loan.give_back()
            raise
        facts["entries"] = {name: entry.path for name, entry in entries.items()}
        progress.info(f"{settings.place}: {facts['cpu'] or 'unknown CPU'}, {now.release}; it will be rebooted")
        return RealMachine(settings, connection, entries, facts, programs, loan)


def check_arms(settings: SshSettings, arms: Sequence[Arm]) -> None:
    """Raises InputError for contenders that this machine cannot be."""
    images: dict[str, str] = {}
    for arm in arms:
        if isinstance(arm.kernel, InstalledKernel):
            continue
        if settings.boot == "bootctl":
            raise InputError(
                f"{arm.contender.name}: with bootctl kernels must be installed there; {arm.kernel.spec!r} would be copied",
                'Install it there, then write kernel = "installed:RELEASE"; or use boot = "kexec".',
            )
        if images.setdefault(arm.kernel.release, arm.kernel.sha256) != arm.kernel.sha256:
            raise InputError(
                f"two different kernels call themselves {arm.kernel.release}: one machine cannot have both",
                "Build one of them with another CONFIG_LOCALVERSION.",
            )


def connect(settings: SshSettings) -> tuple[Connection, Observation]:
    """A connection as root, by sudo where the user is not root. Raises HostError with the remedy."""
    where = {"port": settings.port, "identity": settings.identity, "known_hosts": settings.known_hosts}
    try:
        plain = Connection(settings.place, **where)  # type: ignore[arg-type]
        user = plain.run("id -u", timeout=30)
        connection = Connection(settings.place, sudo=user.text.strip() != "0", **where)  # type: ignore[arg-type]
        return connection, look(connection)
    except TrialRefused as error:
        raise HostError(str(error), REMEDIES.get(error.void, "")) from error
    except ConnectionLost as error:
        raise HostError(str(error), REMEDIES["unreachable"]) from error


PLUGIN = Ssh()
