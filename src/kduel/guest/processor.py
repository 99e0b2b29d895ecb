"""The processor of the deterministic machine, and what depends on QEMU's version: one that all QEMUs from 7.2 on emulate alike."""

import functools
from collections.abc import Collection

from kduel.core.errors import HostError
from kduel.guest import confine

CPU = "max,family=6,model=6,stepping=3"
"""An AMD processor of unknown family, for which kernels have loops and no string instructions to count."""
MASKED = (
    "rdrand", "rdseed", "erms", "fsrm", "fsrs", "fzrm", "fsrc", "la57", "3dnowprefetch", "cmp-legacy", "cmpccxadd", "rdpid",
    "sha-ni", "wbnoinvd", "x2apic", "xsaveerptr", "pcommit",
)  # fmt: skip
"""Features that the processor does without: entropy; fast string instructions; page tables of five levels; and whatever not all of QEMU's
versions from 7.2 on emulate, so that kernels take the same paths in all of them."""


def cpu_model(known: Collection[str]) -> str:
    """The default processor, for a QEMU that knows these features: others cannot be disabled either."""
    return ",".join([CPU, *(f"-{name}" for name in MASKED if name in known)])


@functools.cache
def known_features(binary: str = "qemu-system-x86_64") -> frozenset[str]:
    """The features of processors that QEMU knows by name. Raises HostError where it does not list them."""
    _, heading, listed = confine.ask_qemu(binary, "-cpu", "help").partition("Recognized CPUID flags:")
    if not heading:
        raise HostError(f"{binary} -cpu help lists no CPUID flags", "KDuel knows QEMU 7.2 and later.")
    return frozenset(listed.split())


def plugin_api(qemu: str) -> int:
    """The version of the plug-in interface to build for, by QEMU's own version."""
    major, minor = (int(number) for number in qemu.split(".")[:2])
    return 1 if (major, minor) < (9, 1) else 3
