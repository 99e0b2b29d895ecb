"""Other work on the host while a trial ran: the record of one step, and what can be summed over several."""

from collections.abc import Iterable

from msgspec import Struct

OTHER_WORK = "other work before the boot"
"""The covariate: measured while no guest runs, so that no guest can influence it."""

BOOT = "boot"
"""In place of a step: the whole boot of a guest that was cut off before its first step."""


class HostStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The host under a guest, or a real machine itself, during one step of a trial. None is unknown: the kernel or a container
    does not report it, or it does not apply."""

    seconds: float
    """How long the step took by the host's clock."""
    vcpu_run_s: float | None = None
    """CPU time of the threads that are the guest's CPUs, together; with those of its peer, where it has one."""
    vcpu_wait_s: float | None = None
    """How long these threads were ready to run and waited for a CPU of the host, together."""
    other_wait_s: float | None = None
    """The same of QEMU's other threads."""
    psi_cpu_some: float | None = None
    """The share of the step, from 0 to 1, in which some task of the host waited for a CPU (pressure stall information). On a
    real machine the benchmark's own tasks are among them, here and in the next two."""
    psi_io_some: float | None = None
    """The same for a disk or another block device, page cache included."""
    psi_memory_some: float | None = None
    """The same for memory: reclaim, swap, and pages that were dropped from the page cache too early."""
    steal_s: float | None = None
    """CPU time that this host, itself a virtual machine, could not get (steal), over its CPUs."""
    interrupts: int | None = None
    """Interrupts on the CPUs that the guest may use, timers and those between CPUs included; on a real machine on all."""
    clock_mhz: float | None = None
    """Mean clock of the CPUs that the guest may use; on a real machine of all."""
    throttled: int | None = None
    """How often these CPUs were slowed down for their heat, added up over them."""
    other_work: float | None = None
    """The share of the host's CPU time, from 0 to 1, that went to programs other than QEMU and KDuel."""


def wait_share(steps: Iterable[HostStep]) -> float | None:
    """Share (0 to 1) of the time that the guest's CPUs were ready to run in which they waited; None if unknown."""
    run = wait = 0.0
    for step in steps:
        if step.vcpu_run_s is None or step.vcpu_wait_s is None:
            return None
        run, wait = run + step.vcpu_run_s, wait + step.vcpu_wait_s
    return wait / (run + wait) if run + wait > 0 else None


def other_work(steps: Iterable[HostStep]) -> float | None:
    """The share (0 to 1) of the host's CPU time that other programs took over these steps; None if unknown."""
    return share((step.seconds, step.other_work) for step in steps)


def pressure(steps: Iterable[HostStep]) -> float | None:
    """The share (0 to 1) of these steps in which some task waited for a CPU; None if unknown."""
    return share((step.seconds, step.psi_cpu_some) for step in steps)


def share(parts: Iterable[tuple[float, float | None]]) -> float | None:
    """The mean of shares, each with the seconds that it is of; None if one is unknown, or there are none."""
    seconds = taken = 0.0
    for length, part in parts:
        if part is None:
            return None
        seconds, taken = seconds + length, taken + part * length
    return taken / seconds if seconds > 0 else None
