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
from kduel.machines.ssh_trial import Journey, Look, SshSettings, look
from kduel.remote.connection import REMEDIES, Broken, Connection, Refused, last_line
from kduel.remote.grub import Entry, check_once, entry_of
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
    ) -> None:
        self.settings, self.connection, self.entries, self.bundle = settings, connection, entries, bundle
        self.facts = facts

    def boot(self, trial: Trial) -> Outcome:
        """One reboot into the arm's kernel, the script, its files."""
        journey = Journey(
            self.settings,
            self.connection,
            trial,
            boot=self.settings.boot,
            entries=self.entries,
            cmdline=self.facts["cmdline"],
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


class Ssh(MachineKind):
    """Prepared by looking: what is there, whether one may reboot it, which kernels it has."""

    name: ClassVar[str] = "ssh"
    summary: ClassVar[str] = (
        "a real machine reached by SSH, rebooted into its installed kernels (grub-reboot or kexec)"
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
        entries: dict[str, Entry] = {}
        if settings.boot == "grub-reboot":
            entries = read_entries(connection, arms)
            facts["entries"] = {release: entry.path for release, entry in entries.items()}
        facts["cmdline"] = " ".join(word for word in now.cmdline.split() if not word.startswith("BOOT_IMAGE="))
        talk.info(
            f"{settings.place}: {facts['cpu'] or 'unknown CPU'}, {now.release}; it will be rebooted for every trial"
        )
        return SshMachine(settings, connection, entries, facts, packed(needs, now.architecture, cache))


def check_arms(settings: SshSettings, arms: Sequence[Arm]) -> None:
    """Raises InputError for contenders that this machine cannot be."""
    for arm in arms:
        if not arm.kernel.spec.startswith("installed:"):
            raise InputError(
                f"the machine ssh boots kernels that are installed there; {arm.kernel.spec!r} is none",
                'Install it there, then write kernel = "installed:RELEASE".',
            )
        if arm.contender.cmdline and settings.boot == "grub-reboot":
            raise InputError(
                f"{arm.contender.name} adds words to the command line, and grub-reboot boots entries as they are",
                'Use boot = "kexec", or make a menu entry with these words.',
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


def asked(connection: Connection, script: str, failure: str) -> str:
    """The output of shell lines that must succeed. Raises HostError."""
    try:
        done = connection.run(script)
    except (Broken, Refused) as error:
        raise HostError(f"{failure}: {error}", REMEDIES["unreachable"]) from error
    if done.status:
        raise HostError(f"{failure}: {last_line(done.stderr)}", f"Try by hand: ssh {connection.place} {script!r}")
    return done.text


def read_entries(connection: Connection, arms: Sequence[Arm]) -> dict[str, Entry]:
    """GRUB's entries by release. Raises HostError where one is missing, or a choice would not be forgotten."""
    config = asked(connection, "cat /boot/grub/grub.cfg", "GRUB's configuration cannot be read")
    check_once(config)
    return {arm.kernel.release: entry_of(config, arm.kernel.release) for arm in arms}


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
    tools += {"grub-reboot": ["systemctl", "grub-reboot"], "kexec": ["systemctl", "kexec"], "no": ["ps"]}[boot]
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
    for arm in arms if boot != "no" else ():
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
