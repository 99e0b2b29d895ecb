"""Things that a run puts onto a real machine and takes away again: kernels that were brought, boot entries of its own."""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.kernels import InstalledKernel
from kduel.machines import Arm
from kduel.machines.remote import grub, kernels, sdboot
from kduel.machines.remote.connection import Connection, ConnectionLost, TrialRefused, run_or_fail
from kduel.machines.remote.grub import MenuEntry
from kduel.machines.remote.ssh_trial import RETRY, Observation, going, look


class LoanSettings(Protocol):
    @property
    def place(self) -> str: ...
    @property
    def boot(self) -> str: ...
    @property
    def directory(self) -> str: ...
    @property
    def boot_deadline(self) -> float: ...


class Loan:
    """Knows how to take away what was put there."""

    def __init__(self, settings: LoanSettings, connection: Connection, progress: Progress) -> None:
        self.settings, self.connection, self.progress = settings, connection, progress
        self.releases: list[str] = []
        self.undo: list[str] = []
        """Shell lines."""

    def give_back(self) -> None:
        """Take away all of it; a machine that runs a kernel which goes is rebooted into its default first. Never raises."""
        if not self.undo:
            return
        try:
            now = look(self.connection)
            if now.release in self.releases:
                self.progress.info(
                    f"{self.settings.place}: rebooting into its default kernel, to remove {now.release}"
                )
                self.connection.run(going("systemctl reboot"))
                self.wait_for_another_boot(now)
            done = self.connection.run("; ".join(self.undo), timeout=300)
            trouble = done.stderr.strip() if done.status else ""
        except (ConnectionLost, TrialRefused) as error:
            trouble = str(error)
        if trouble:
            self.progress.warn(
                f"{self.settings.place}: what this run put there could not be removed ({trouble[-300:]}); "
                f"the next run does it, or by hand there: {'; '.join(self.undo)}"
            )
        self.undo = []

    def wait_for_another_boot(self, before: Observation) -> None:
        """Raises ConnectionLost when the deadline passes."""
        end = time.monotonic() + self.settings.boot_deadline
        while True:
            try:
                if look(self.connection).boot_id != before.boot_id:
                    return
            except ConnectionLost:
                pass
            if time.monotonic() > end:
                raise ConnectionLost("it did not come back from its reboot")
            time.sleep(RETRY)


def bring_kernels(loan: Loan, arms: Sequence[Arm], now: Observation, facts: dict[str, Any]) -> None:
    """Install there what is not installed there. Raises InputError, HostError."""
    wanted = {arm.kernel.release: arm for arm in arms if not isinstance(arm.kernel, InstalledKernel)}
    if now.release not in wanted:
        run_or_fail(loan.connection, kernels.REMOVE, "kernels of an earlier run cannot be removed")
    for release, arm in wanted.items():
        if arm.kernel.architecture != now.architecture:
            raise InputError(
                f"{arm.contender.name} is a kernel for {arm.kernel.architecture}, and {loan.settings.place} is {now.architecture}",
                "Give a kernel that was built for it.",
            )
        loan.undo = [kernels.REMOVE]
        loan.releases.append(release)
        with loan.progress.task(f"bringing {release} to {loan.settings.place}"):
            kernels.bring(loan.connection, arm.kernel, loan.settings.directory)
        facts["images"][release] = arm.kernel.sha256


def boot_entries(loan: Loan, arms: Sequence[Arm], now: Observation) -> dict[str, MenuEntry]:
    """By contender the boot loader's entry, made where there is none; {} for kexec. Raises HostError, InputError."""
    if loan.settings.boot == "grub-reboot":
        return grub_entries(loan, arms, now)
    if loan.settings.boot == "bootctl":
        return sdboot_entries(loan, arms)
    return {}


def grub_entries(loan: Loan, arms: Sequence[Arm], now: Observation) -> dict[str, MenuEntry]:
    """GRUB's. Raises HostError where one is missing, or a choice would not be forgotten."""
    config = run_or_fail(loan.connection, "cat /boot/grub/grub.cfg", "GRUB's configuration cannot be read")
    grub.check_once(config)
    there = {entry.release for entry in grub.entries(config)}
    found, texts = {}, []
    for number, arm in enumerate(arms, 1):
        name, release, words = arm.contender.name, arm.kernel.release, arm.contender.cmdline
        if isinstance(arm.kernel, InstalledKernel) or release in there:
            like = grub.entry_of(config, release)
        else:
            like = grub.entry_of(config, now.release) if now.release in there else grub.entries(config)[0]
        if like.release == release and not words:
            found[name] = like
            continue
        grub.check_custom(config)
        found[name], text = grub.own_entry(like, f"kduel-{number}", release, words)
        texts.append(text)
    if texts:
        loan.undo.append(f"({grub.custom_script([])})")
        run_or_fail(loan.connection, grub.custom_script(texts), f"{grub.CUSTOM} cannot be written")
    return found


def sdboot_entries(loan: Loan, arms: Sequence[Arm]) -> dict[str, MenuEntry]:
    """systemd-boot's. Raises HostError where one is missing."""
    listing = run_or_fail(loan.connection, sdboot.LIST, "systemd-boot's entries cannot be read")
    found: dict[str, MenuEntry] = {}
    for number, arm in enumerate(arms, 1):
        entry = sdboot.entry_of(listing, arm.kernel.release)
        if arm.contender.cmdline:
            entry, script = sdboot.own_entry(entry, number, arm.contender.cmdline)
            if not loan.undo:
                # What a crash left must not stay next to it.
                script = f"{sdboot.FORGET}; {script}"
                loan.undo = [sdboot.FORGET]
            run_or_fail(loan.connection, script, "an entry for systemd-boot cannot be written")
        found[arm.contender.name] = entry
    return found
