"""Compilers by architecture, and what of them this host lacks."""

import os
import platform
import shutil
import subprocess

import msgspec
from msgspec import Struct

from kduel.core.errors import HostError
from kduel.core.toml import table_beside


class Target(Struct, frozen=True, kw_only=True):
    """An architecture that kernels are built for."""

    name: str
    """Name in a recipe."""
    machine: str
    """Output of `uname -m`."""
    arch: str
    """The value of ARCH for make."""
    prefix: str
    """Prefix of Debian's cross compiler."""
    package: str
    """Debian package of that compiler."""
    make: str
    """The targets of make."""
    image: str
    """The kernel that is booted, below the build directory."""
    compressed: bool = False
    """True if that image is compressed already, as it would lie in flash."""

    @property
    def cross(self) -> str:
        """CROSS_COMPILE: empty where the host's own compiler serves."""
        return "" if platform.machine() == self.machine else self.prefix

    def tool(self, name: str) -> str:
        """A program of its toolchain, such as `size` or `nm`."""
        return self.cross + name


TARGETS = msgspec.convert(
    {name: {"name": name, **row} for name, row in table_beside(__file__).items()}, dict[str, Target]
)


def own_target() -> str:
    """The name of the target that this host is; x86_64 where it is none of them."""
    return next((target.name for target in TARGETS.values() if target.machine == platform.machine()), "x86_64")


def compiler_version(target: Target) -> str:
    """The version that the compiler prints. Raises HostError that names the package to install."""
    for name, package in (("make", "make"), ("gcc", target.package if target.cross else "gcc")):
        program = name if name == "make" else target.tool(name)
        if shutil.which(program) is None:
            raise HostError(
                f"{program} is not installed, which building a kernel for {target.name} takes",
                f"apt install {package}  (a kernel build also needs flex, bison, bc and libelf-dev)",
            )
    try:
        done = subprocess.run(
            [target.tool("gcc"), "--version"], capture_output=True, text=True, errors="replace", check=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        raise HostError(f"{target.tool('gcc')} does not run: {error}", "Reinstall it.") from error
    return done.stdout.partition("\n")[0].strip()
