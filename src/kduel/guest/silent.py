"""A kernel that printed nothing, booted once more by its own image, with its early console: what it says then."""

from pathlib import Path

from msgspec import structs

from kduel.core.errors import HostError
from kduel.core.temporary import temporary_directory
from kduel.guest import confine
from kduel.guest.console import read_console
from kduel.guest.cpio import Cpio
from kduel.guest.diagnosis import excerpt, searched_lines
from kduel.guest.launch import Launch, run
from kduel.guest.vm import VirtualMachine

EARLY = {"x86_64": "earlyprintk=serial,ttyS0,115200"}
"""Words for the console before the drivers', by architecture."""


def boot_again(machine: VirtualMachine, image: Path, seconds: float) -> tuple[bool, str]:
    """True if the kernel in `image` begins, panicking without a root within `seconds`, and a sentence about it."""
    early = EARLY.get(machine.architecture, "earlycon")
    with temporary_directory() as place, confine.nameless(Cpio().finish()) as initrd:
        cmdline = f"{machine.cmdline} {early}"
        again = structs.replace(machine, kernel=image, initrd=initrd, root=None, scratch=None, cmdline=cmdline)
        try:
            run(again, place / "console.log", Launch(boot_deadline=seconds, deadline=seconds, record_host=False))
        except HostError as error:
            return False, f"A second boot failed: {error.message}."
        console = searched_lines(read_console(place / "console.log"))
    if not any(line.strip() for line in console):
        return False, f"It printed nothing in a second boot either, by {image.name} with {early}."
    how = f"In a second boot, by {image.name} with {early}, it printed:"
    return any("Linux version" in line for line in console), f"{how}\n{excerpt(console, 0)}"
