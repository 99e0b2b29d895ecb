"""Ways to get a kernel into a real board: by commands to its boot loader, or by fastboot."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kduel.core.errors import HostError
from kduel.core.host_packages import install_command
from kduel.core.supervised_process import run_text
from kduel.machines.boards import Real
from kduel.machines.remote.connection import last_line

Tell = Callable[[str], None]
"""Takes a line for the console's log."""
KERNEL, INITRD, ROOT, IMAGE = "kernel", "initrd", "root.ext4", "boot.img"
"""The files of a trial, in the directory `files`."""
SILENT = "it printed no message"


class Shell:
    """A boot loader with a prompt: U-Boot, barebox."""

    wanted = "the boot loader (UBootDriver)"

    def __init__(self, target: Any, console: Any, real: Real) -> None:
        from labgrid.protocol import CommandProtocol, LinuxBootProtocol

        self.real, self.console = real, console
        self.driver = target.get_driver(LinuxBootProtocol, activate=False)
        assert isinstance(self.driver, CommandProtocol)

    def start(self, cmdline: str, tell: Tell) -> str:
        """Give the commands; what went wrong, or nothing."""
        initrd = Path(self.real.files, INITRD)
        size = f"{initrd.stat().st_size:x}" if initrd.exists() else ""
        *before, last = [
            command.replace("@CMDLINE@", cmdline).replace("@INITRD_SIZE@", size) for command in self.real.commands
        ]
        for command in before:
            # Told by us, as the loader's own words come only when it is done: a boot begins with the first loading.
            tell(f"=> {command}")
            said, _, status = self.driver.run(command, timeout=self.real.seconds_per_command)
            for line in said:
                tell(line)
            if status:
                return f"the boot loader's {command!r} ended with {status}"
        tell(f"=> {last}")
        self.console.sendline(last)
        return ""


class Fastboot:
    """A boot loader with fastboot, which receives an image of kernel, RAM disk and command line."""

    wanted = "fastboot (AndroidFastbootDriver)"

    def __init__(self, target: Any, console: Any, real: Real) -> None:
        from labgrid.resource.common import NetworkResource

        self.real = real
        self.driver = target.get_driver("AndroidFastbootDriver", activate=False)
        need("mkbootimg", "mkbootimg")
        if not isinstance(self.driver.fastboot, NetworkResource):
            need(self.driver.tool, "fastboot")

    def start(self, cmdline: str, tell: Tell) -> str:
        """Write the root's partition, if any, and boot; gives what went wrong. Raises HostError for the image."""
        files = Path(self.real.files)
        ramdisk = ["--ramdisk", INITRD] if (files / INITRD).exists() else []
        command = ["mkbootimg", "--kernel", KERNEL, *ramdisk, "--cmdline", cmdline, *(self.real.fastboot or [])]
        done = run_text([*command, "--output", IMAGE], cwd=files)
        if done.returncode:
            raise HostError(
                f"mkbootimg cannot pack the boot image: {last_line(done.stderr, SILENT)}",
                "Check fastboot = [...] in the board's description; files that it names are next to the kernel in "
                f"{files}.",
            )
        steps = [["flash", self.real.flash, ROOT]] if self.real.flash else []
        for *words, file in [*steps, ["boot", IMAGE]]:
            tell(f"=> fastboot {' '.join(words)} {file}")
            if trouble := self._fastboot(words, file, tell):
                return f"fastboot {words[0]} did not succeed: {trouble}"
        return ""

    def _fastboot(self, words: list[str], file: str, tell: Tell) -> str:
        """Call fastboot as the driver's own verbs do, which wait for ever for a board that does not come, and print."""
        from labgrid.util.managedfile import ManagedFile

        sent = ManagedFile(str(Path(self.real.files, file)), self.driver.fastboot)
        sent.sync_to_resource()
        command = [*self.driver._get_fastboot_prefix(), *words, sent.get_remote_path()]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=self.real.seconds_per_command, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode(errors="replace")
            return f"{last_line(said, SILENT)}; it was ended after {self.real.seconds_per_command} s (seconds_per_command)"
        said = done.stdout.decode(errors="replace")
        for line in said.splitlines():
            tell(line)
        return last_line(said, SILENT) if done.returncode else ""


def need(program: str, package: str) -> None:
    """Raises HostError where a program is not installed."""
    if shutil.which(program) is None:
        raise HostError(
            f"{program} is not installed, and the board's boot loader speaks fastboot",
            f"Install it: {install_command(program, package)}.",
        )
