"""Every code that a void trial can have: what happened, and what to do. docs/findings.md is made of it.

A machine of a plug-in may have codes of its own; these are the ones of KDuel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, Protocol

from msgspec import Struct

from kduel.core.experiment import Void


class VoidCode(Struct, frozen=True):
    """Properties common to all trials that are void by one code."""

    code: str
    meaning: str
    remedy: str
    whose: Literal["contender", "host", "machine"] = "contender"
    """Whose fault it may be at worst. host: the kernel ran, and what disturbed it is known to come from outside.
    machine: it never ran, as the machine, or what manages it, was not there."""


VOID_CODES: tuple[VoidCode, ...] = (
    VoidCode("panic", "The kernel panicked.", "Read console.log; the cause is above the panic."),
    VoidCode("oops", "The kernel had an oops, a BUG or a general protection fault.", "Report it with console.log."),
    VoidCode(
        "emulator-fault",
        "The emulator failed (`int3` in code being patched, or flags that no CPU can have: QEMU before 8.1).",
        "Nothing: the trial is repeated. QEMU 8.1 or later, or `cpus = 1`, does not have it.",
        whose="host",
    ),
    VoidCode(
        "host-disturbed",
        "Other work on the host took more CPU time from the guest than [host] max_wait allows.",
        "Stop other work on the host, raise `max_wait`, or `repeats`.",
        whose="host",
    ),
    VoidCode(
        "block-interrupted",
        "The run was interrupted before all trials of the block, which were alive at once, were kept.",
        "Nothing: the whole block is repeated.",
        whose="host",
    ),
    VoidCode("soft-lockup", "A CPU was locked up, or RCU stalled.", "Check the load of the host; else report it."),
    VoidCode("hard-lockup", "A CPU took no interrupts for seconds.", "Check the load of the host; else report it."),
    VoidCode("workqueue-lockup", "A workqueue made no progress.", "Check the load of the host; else report it."),
    VoidCode("qemu-killed", "A signal ended QEMU.", "Check the host's memory (dmesg), and who killed it."),
    VoidCode("qemu-failed", "QEMU ended with an error.", "Read QEMU's message in the trial's message."),
    VoidCode(
        "qemu-hung", "QEMU itself did not answer any more.", "Find who stopped it, or what of the host it waited for."
    ),
    VoidCode("hang", "The guest froze, or never started its script.", "Read the end of console.log."),
    VoidCode("out-of-memory", "The guest ran out of memory.", "Give it more (`memory`), or a smaller load."),
    VoidCode(
        "boot-failed", "The guest booted, but its script could not start.", "Read console.log: a module is missing."
    ),
    VoidCode("no-console", "The console produced no output.", "Build in the serial console, or check the image."),
    VoidCode("silent-exit", "The guest exited without an error message.", "Read console.log and QEMU's own message."),
    VoidCode("deadline", "The script did not end in time.", "Raise the deadline, or find the step that hangs."),
    VoidCode("flood", "The guest sent more results than a trial may.", "Write less to standard output in the step."),
    VoidCode(
        "broken-envelope",
        "The results did not arrive completely.",
        "Repeat; if it recurs, check the disk and console.",
    ),
    VoidCode("unreadable-results", "The results that arrived cannot be read.", "The message has the reason."),
    VoidCode("wrong-clock", "The guest's clock ran wrong.", "Check the clock source and the load of the host."),
    VoidCode(
        "not-deterministic",
        "Equal boots on an exact machine gave different results, so nothing of this contender was counted.",
        "Report QEMU's version and the message; another QEMU, or `cpus = 1`, may do.",
    ),
    VoidCode(
        "uneven-turns",
        "On an exact machine with scheduling the CPUs did not have the same speed.",
        "Report QEMU's version and the message: the kernel halted an idle CPU, or QEMU kept one waiting.",
        whose="host",
    ),
    VoidCode("wrong-machine", "The machine is not what was planned.", "The message names what differs: correct it."),
    VoidCode("setup-failed", "The setup lines of the trial failed.", "Read setup/stderr in the trial's directory."),
    VoidCode("peer-late", "The peer did not come up in time.", "Read peer/console.log; check the load of the host."),
    VoidCode("peer-hung", "The peer did not answer any more.", "Read peer/console.log; check the load of the host."),
    VoidCode(
        "peer-died", "The peer ended before the trial did.", "The message has the reason; read peer/console.log."
    ),
    VoidCode("peer-wrong", "The peer is not what was planned.", "The message names what differs: correct it."),
    VoidCode("no-results", "No step gave a number.", "Read the standard error of the steps."),
    VoidCode(
        "left-out", "The trial was not run: this contender's first trials were all void.", "Repair the contender."
    ),
    VoidCode("does-not-build", "The kernel does not build.", "The message has the first error of the compiler."),
    VoidCode("not-configured", "The kernel's configuration cannot be made.", "The message has the cause."),
    VoidCode(
        "no-return", "The machine did not answer after the reboot.", "Power-cycle it: it boots its default kernel."
    ),
    VoidCode(
        "fell-back", "The boot loader started its default kernel.", "Read console.log: why did the other not boot?"
    ),
    VoidCode("rebooted", "The machine rebooted during the trial.", "Read console.log: a panic, or a power failure."),
    VoidCode("boot-refused", "The machine did not reboot when asked.", "Check systemd's jobs that inhibit a reboot."),
    VoidCode(
        "no-node",
        "Slurm did not give the node to the trial, or took it away.",
        "Check `sinfo -R` and `squeue`.",
        whose="machine",
    ),
    VoidCode("disk-full", "The disk was full when the script ended.", "Free space in the directory of the trials."),
    VoidCode(
        "conditions",
        "A condition was outside the configured limits.",
        "The message names it: wait, or widen the limit.",
    ),
    VoidCode("no-start", "The machine did not start.", "The message has the reason that QEMU gives."),
    VoidCode(
        "gates-missing", "The scheduler's checks left no complete record.", "Read gates/ in the trial's directory."
    ),
    VoidCode("gate-failed", "A scheduler check failed.", "Read gates/ in the trial's directory."),
    VoidCode("knob-changed", "A sysctl or knob changed during the trial.", "Find what else on the machine sets it."),
    VoidCode(
        "scheduler-in-the-way", "A sched_ext scheduler ran, but the contender has none.", "Stop it on the machine."
    ),
    VoidCode(
        "scheduler-ejected", "The kernel ejected the sched_ext scheduler.", "The message has the kernel's reason."
    ),
    VoidCode("wrong-scheduler", "Not the scheduler of the study, but another one ran.", "Stop the other one."),
    VoidCode("scheduler-ended", "The scheduler's process ended.", "Read its output in the trial's directory."),
    VoidCode(
        "not-all-tasks", "The sched_ext scheduler did not handle all tasks.", "Start it without a partial mode."
    ),
    VoidCode("scheduler-changed", "The sched_ext scheduler was replaced during the trial.", "Find what restarts it."),
    VoidCode("scheduler-not-started", "The scheduler did not start in time.", "The message has its last lines."),
    VoidCode("scheduler-does-not-end", "The scheduler did not stop when asked.", "Stop it on the machine."),
    VoidCode(
        "no-sched-ext", "The kernel has no sched_ext.", "Use a kernel of 6.12 or later with CONFIG_SCHED_CLASS_EXT."
    ),
    VoidCode("not-ready", "A step ran although the setup had failed.", "Read setup/stdout in the trial's directory."),
    VoidCode("no-such-knob", "The kernel has no such knob.", "Remove it from the study for this kernel."),
    VoidCode(
        "no-such-feature", "The kernel's scheduler has no such feature.", "The message lists those that it has."
    ),
    VoidCode("knob-refused", "The kernel refused a knob's value.", "The message has the kernel's reason."),
    VoidCode("knob-not-set", "A knob did not keep the value that was set.", "Give a value that the kernel accepts."),
    VoidCode("knob-not-restored", "A knob's former value could not be restored.", "Reboot the machine."),
    VoidCode("no-preempt-mode", "The kernel does not show its preemption mode.", "Use one with PREEMPT_DYNAMIC."),
    VoidCode("preempt-not-set", "The kernel did not take the preemption mode.", "The message lists its modes."),
    VoidCode("no-answer", "The machine stopped answering during the trial.", "Check the network and the machine."),
    VoidCode(
        "unreachable",
        "The machine cannot be reached.",
        "Check that it is on and that `ssh` reaches it.",
        whose="machine",
    ),
    VoidCode(
        "wrong-host-key",
        "The machine's host key is not the known one.",
        "Check that it is the right machine.",
        whose="machine",
    ),
    VoidCode(
        "not-admitted",
        "The machine refuses this user's login.",
        "Install a public key there (ssh-copy-id).",
        whose="machine",
    ),
    VoidCode("no-such-host", "The machine's name cannot be resolved.", "Write `place` as for ssh.", whose="machine"),
    VoidCode("ssh-settings", "ssh rejects its configuration.", "Correct ~/.ssh/config.", whose="machine"),
    VoidCode(
        "no-sudo",
        "sudo asks for a password or refuses.",
        "Log in as root, or allow sudo without a password.",
        whose="machine",
    ),
    VoidCode("too-much-output", "A step sent more than a trial may.", "Write less to standard output in the step."),
)
"""In the order of the documentation."""

WHOSE = {one.code: one.whose for one in VOID_CODES}


HOPELESS = 2
"""So many void trials at the start of a contender, and none that is good: it cannot be measured."""


class EndedTrial(Protocol):
    """A trial that was carried out, or that is void."""

    @property
    def contender(self) -> str: ...
    @property
    def void(self) -> Void | None: ...


def find_unmeasurable(trials: Iterable[EndedTrial], planned: int) -> set[str]:
    """The contenders whose trials are all void by what may be their own fault, and enough of them, in a run of so many blocks."""
    own = [trial for trial in trials if trial.void is None or may_be_contenders(trial.void)]
    good = {trial.contender for trial in own if trial.void is None}
    return {
        name
        for name, count in Counter(trial.contender for trial in own).items()
        if name not in good and count >= min(HOPELESS, planned)
    }


def may_be_contenders(void: Void | None) -> bool:
    """True if a trial is void by what may be its contender's own fault. Only then does it count against the contender;
    a code that is not known here may be."""
    return void is not None and WHOSE.get(void.code, "contender") == "contender"


def never_began(void: Void | None) -> bool:
    """True if a trial is void because its machine was not there: nothing of it depends on its contender."""
    return void is not None and WHOSE.get(void.code) == "machine"
