"""The machine `ssh`: a real one, reached by SSH, with the kernels installed; each trial in a boot of its own."""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from kduel import programs
from kduel.cache import Cache
from kduel.conditions import check as check_bands
from kduel.errors import HostError, InputError
from kduel.machines import Arm, Machine, MachineKind, Needs, Outcome, Trial
from kduel.machines.loan import Loan, boot_entries, bring_kernels
from kduel.machines.reaching import asked
from kduel.machines.ssh_trial import Journey, Look, SshSettings, default_cmdline, look
from kduel.remote.connection import REMEDIES, Broken, Connection, Refused
from kduel.remote.grub import Entry
from kduel.talk import Talk


class SshMachine(Machine):
    """Made by `Ssh.prepare`."""

    def __init__(
        self,
        settings: SshSettings,
        connection: Connection,
        entries: dict[str, Entry],
        facts: dict[str, Any],
        bundle: bytes,
        loan: Loan,
    ) -> None:
        self.settings, self.connection, self.entries, self.bundle = settings, connection, entries, bundle
        self.facts, self.loan = facts, loan

    def boot(self, trial: Trial) -> Outcome:
        """One reboot into the arm's kernel, the script, its files."""
        journey = Journey(
            self.settings,
            self.connection,
            trial,
            boot=self.settings.boot,
            entries=self.entries,
            cmdline=self.facts.get("cmdline", ""),
            bundle=self.bundle,
        )
        try:
            outcome = journey.go()
        except Refused as error:
            outcome = Outcome(void=error.void, message=f"{error}. {REMEDIES.get(error.void, '')}".strip())
        except Broken as error:
            outcome = Outcome(void="unreachable", message=f"{error}. {REMEDIES['unreachable']}")
        (trial.into / "console.log").write_text("".join(journey.log), "utf-8", errors="replace")
        return msgspec.structs.replace(outcome, timings=journey.timings, facts=journey.facts)

    def close(self) -> None:
        """Take away the kernels and boot entries that were put there."""
        self.loan.give_back()


class Ssh(MachineKind):
    """Prepared by looking: what is there, whether one may reboot it, which kernels it has."""

    name: ClassVar[str] = "ssh"
    summary: ClassVar[str] = (
        "a real machine reached by SSH, rebooted into its kernels or brought ones (grub-reboot, bootctl or kexec)"
    )
    Settings = SshSettings

    def prepare(
        self, settings: Any, arms: Sequence[Arm], needs: Needs, *, cache: Cache, talk: Talk, offline: bool = False
    ) -> Machine:
        assert isinstance(settings, SshSettings)
        check_arms(settings, arms)
        check_bands(settings.conditions)
        with talk.task(f"looking at {settings.place}"):
            connection, now = connect(settings)
            facts = survey(connection, settings, arms, boot=settings.boot)
        if settings.boot == "kexec":
            facts["cmdline"] = default_cmdline(now)
        bundle = packed(needs, now.architecture, cache)
        loan = Loan(settings, connection, talk)
        try:
            bring_kernels(loan, arms, now, facts)
            entries = boot_entries(loan, arms, now)
        except BaseException:
            loan.give_back()
            raise
        facts["entries"] = {name: entry.path for name, entry in entries.items()}
        talk.info(
            f"{settings.place}: {facts['cpu'] or 'unknown CPU'}, {now.release}; it will be rebooted for every trial"
        )
        return SshMachine(settings, connection, entries, facts, bundle, loan)


def check_arms(settings: SshSettings, arms: Sequence[Arm]) -> None:
    """Raises InputError for contenders that this machine cannot be."""
    images: dict[str, str] = {}
    for arm in arms:
        if arm.kernel.spec.startswith("installed:"):
            continue
        if settings.boot == "bootctl":
            raise InputError(
                f"{arm.contender.name}: with bootctl kernels must be installed there; {arm.kernel.spec!r} would be brought",
                'Install it there, then write kernel = "installed:RELEASE"; or use boot = "kexec".',
            )
        if images.setdefault(arm.kernel.release, arm.kernel.sha256) != arm.kernel.sha256:
            raise InputError(
                f"two different kernels call themselves {arm.kernel.release}: one machine cannot have both",
                "Build one of them with another CONFIG_LOCALVERSION.",
            )


def connect(settings: SshSettings) -> tuple[Connection, Look]:
    """A connection as root, by sudo where the user is not root. Raises HostError that says what to do."""
    where = {"port": settings.port, "identity": settings.identity, "known_hosts": settings.known_hosts}
    try:
        plain = Connection(settings.place, **where)  # type: ignore[arg-type]
        user = plain.run("id -u", timeout=30)
        connection = Connection(settings.place, sudo=user.text.strip() != "0", **where)  # type: ignore[arg-type]
        return connection, look(connection)
    except Refused as error:
        raise HostError(str(error), REMEDIES.get(error.void, "")) from error
    except Broken as error:
        raise HostError(str(error), REMEDIES["unreachable"]) from error


class Surveyed(Protocol):
    """Of a machine's settings, what looking at it needs."""

    @property
    def place(self) -> str: ...
    @property
    def directory(self) -> str: ...
    @property
    def free_mib(self) -> int: ...


def survey(connection: Connection, settings: Surveyed, arms: Sequence[Arm], *, boot: str) -> dict[str, Any]:
    """What is true of the machine for the whole run. Raises HostError for what it lacks."""
    tools = ["setsid", "tar", "sha256sum", "awk"]
    tools += ["ps"] if boot == "no" else ["systemctl", boot]
    missing = asked(
        connection,
        f"for t in {' '.join(tools)}; do command -v $t >/dev/null || echo $t; done",
        "it cannot be examined",
    ).split()
    if missing:
        raise HostError(f"{settings.place} lacks {', '.join(missing)}", "Install them there.")
    free = asked(
        connection, f"df -Pk {shlex.quote(settings.directory)}", f"there is no {settings.directory}"
    ).split()[-3]
    if int(free) < settings.free_mib * 1024:
        raise HostError(
            f"{settings.place}: {settings.directory} has {int(free) // 1024} MiB free, {settings.free_mib} are wanted",
            "Free some space there, or give another directory.",
        )
    images = {}
    for arm in arms:
        if boot == "no" or not arm.kernel.spec.startswith("installed:"):
            continue
        path = f"/boot/vmlinuz-{arm.kernel.release}"
        found = asked(connection, f"ls /boot; sha256sum {path} 2>/dev/null || true", "its /boot cannot be read")
        words = found.splitlines()[-1].split()
        if len(words) != 2 or words[1] != path:
            there = [w.removeprefix("vmlinuz-") for w in found.split() if w.startswith("vmlinuz-")]
            raise HostError(
                f"{settings.place} has no kernel {arm.kernel.release}; it has {', '.join(there)}", "Install it there."
            )
        images[arm.kernel.release] = words[0]
    cpu = asked(connection, "grep -m1 '^model name' /proc/cpuinfo || true", "its CPU cannot be read")
    product = asked(connection, "cat /sys/class/dmi/id/product_name 2>/dev/null || true", "it cannot be examined")
    return {
        "place": settings.place,
        "boot": boot,
        "cpu": cpu.partition(":")[2].strip(),
        "product": product.strip(),
        "images": images,
    }


def packed(needs: Needs, architecture: str, cache: Cache) -> bytes:
    """A tar of the programs that trials bring along below programs/; empty where there are none."""
    files = [*needs.files]
    files += [(name, programs.build(name, architecture, cache=cache)) for name in needs.programs]
    if not files:
        return b""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, path in files:
            tar.add(path, f"programs/{name}", recursive=False)
    return packed.getvalue()


PLUGIN = Ssh()
