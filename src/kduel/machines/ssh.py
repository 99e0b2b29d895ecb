"""The machine `ssh`: a real one, reached by SSH, with the kernels installed; each trial in a boot of its own."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender
from kduel.kernels import InstalledKernel
from kduel.machines import Arm, Machine, Means, Needs
from kduel.machines.remote.connection import REMEDIES, Connection, ConnectionLost, TrialRefused
from kduel.machines.remote.provision import Loan, boot_entries, bring_kernels
from kduel.machines.remote.real import RealKind, RealMachine, read_programs, survey
from kduel.machines.remote.settings import SshSettings
from kduel.machines.remote.ssh_trial import Observation, default_cmdline, look


class Ssh(RealKind[SshSettings]):
    """Prepared by looking: what is there, whether one may reboot it, which kernels it has."""

    name: ClassVar[str] = "ssh"
    summary: ClassVar[str] = (
        "a real machine reached by SSH, rebooted into its own kernels or copied ones (grub-reboot, bootctl or kexec)"
    )
    timed_on_host: ClassVar[bool] = False

    def check_contender(self, settings: SshSettings, contender: Contender, spec: str) -> None:
        """It must be installed there, where kernels are not copied."""
        if settings.boot == "bootctl" and not spec.startswith("installed:"):
            raise InputError(
                f"{contender.name}: with bootctl kernels must be installed there; {spec!r} would be copied",
                'Install it there, then write kernel = "installed:RELEASE"; or use boot = "kexec".',
            )

    def prepare(self, settings: SshSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        progress = means["progress"]
        for arm in arms:
            self.check_contender(settings, arm.contender, arm.kernel.spec)
        check_releases(arms)
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


def check_releases(arms: Sequence[Arm]) -> None:
    """Raises InputError for kernels that one machine cannot have both."""
    images: dict[str, str] = {}
    for arm in arms:
        if isinstance(arm.kernel, InstalledKernel):
            continue
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
