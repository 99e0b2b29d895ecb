"""Commands that install a missing program, by the distribution of the host (ID or ID_LIKE of os-release(5)), or a
Python package. scripts/setup reads host_packages.txt, too."""

import platform
import sys
from functools import cache
from importlib.resources import files
from importlib.util import find_spec

FAMILIES = ("debian", "fedora", "suse", "arch")
"""Columns of the table."""
COMMANDS = {
    "debian": "apt-get install", "fedora": "dnf install", "suse": "zypper install", "arch": "pacman -S --needed",
}  # fmt: skip


@cache
def host_family() -> str | None:
    """Family of this host's distribution, one of FAMILIES; None if it is another one."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return next((name for name in names if name in FAMILIES), None)


@cache
def package_table() -> dict[str, dict[str, str]]:
    """Packages by program and family; a family without a known package is left out."""
    text = files("kduel.core").joinpath("host_packages.txt").read_text()
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {
        program: {family: name for family, name in zip(FAMILIES, names, strict=True) if name != "-"}
        for program, *names in rows
    }


def install_command(program: str, debian: str = "") -> str:
    """Command that installs a program here, by `debian`'s package where the table or the host has no other."""
    packages = package_table().get(program, {"debian": debian or program})
    family = host_family()
    if family in packages:
        return f"{COMMANDS[family]} {packages[family]}"
    return f"install what Debian calls {packages['debian']}"


def pip_command(requirement: str) -> str:
    """The shell command that installs a package into KDuel's own environment, which has no pip in a checkout."""
    first = "" if find_spec("pip") else f"{sys.executable} -P -m ensurepip && "
    return f"{first}{sys.executable} -P -m pip install {requirement}"
