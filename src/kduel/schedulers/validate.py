"""Checks before the first boot: whether a kernel and a machine can give a contender its scheduler."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kduel.benchmarks import Benchmark
from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.kernels import Kernel
from kduel.schedulers.build import check_scheduler
from kduel.schedulers.knobs import check_knobs, check_release
from kduel.schedulers.policy import Policy, check_admission, parse_policy
from kduel.schedulers.snippets import preempt_mode

PREEMPT_MODES = ("none", "voluntary", "full", "lazy")
SLICE_SINCE = (6, 12)
RT = "; of Debian's, the -rt kernels do (debian:6.12-rt)."
WHERE = {"SCHED_CLASS_EXT": "; Debian's 6.18 and later have sched_ext.", "TIMERLAT_TRACER": RT, "OSNOISE_TRACER": RT}
"""Where an option is found."""
EXT_SINCE = (6, 12)


def validate(
    contender: Contender, kernel: Kernel, steps: Sequence[tuple[Benchmark[Any], Any]] = (), *, cpus: int | None = None
) -> None:
    """Raises InputError for what this kernel, these benchmarks (with their parameters) and so many CPUs cannot have."""
    options = Options(kernel)
    for one, _ in steps:
        for option in one.kernel_options:
            options.require(option, contender, f"{option}, which the benchmark {one.name} needs")
    check_written(contender, steps, cpus=cpus)
    if "kernel.sched_autogroup_enabled" in contender.sysctl:
        options.require("SCHED_AUTOGROUP", contender, "autogroup")
    mode = preempt_mode(contender.cmdline)
    if mode:
        check_preempt(mode, contender, options)
    if contender.scheduler:
        check_ext(contender, options)
    if contender.policy and parse_policy(contender.policy).slice and options.older_than(SLICE_SINCE):
        raise InputError(
            f"contender {contender.name or contender.kernel!r}: the kernel {options.kernel.release} has no slice to be set "
            "(sched_setattr takes one since 6.12)",
            "Choose a newer kernel, or debug.sched.base_slice_ns in sysctl (6.6 and later).",
        )


def check_written(contender: Contender, steps: Sequence[tuple[Benchmark[Any], Any]], *, cpus: int | None) -> None:
    """Raises InputError for what no kernel has: sysctls, preemption modes, schedulers, impossible policies."""
    check_knobs(contender.sysctl)
    check_release(contender.kernel, contender.sysctl)
    if (mode := preempt_mode(contender.cmdline)) and mode not in PREEMPT_MODES:
        raise InputError(
            f"contender {contender.name or contender.kernel!r}: preempt={mode} is no preemption mode",
            f"The modes are {', '.join(PREEMPT_MODES)}.",
        )
    if contender.policy:
        check_policy(parse_policy(contender.policy), contender, steps, cpus)
    try:
        words = shlex.split(contender.scheduler)
    except ValueError as error:
        raise InputError(
            f"contender {contender.name!r}: the scheduler {contender.scheduler!r} is no command: {error}",
            "Quote it as for a shell.",
        ) from error
    if contender.scheduler and not words:
        raise InputError(f"contender {contender.name!r}: the scheduler is blank", 'Write scheduler = "scx_bpfland".')


def check_at_once(
    contender: Contender, cache_root: Path, steps: Sequence[tuple[Benchmark[Any], Any]], *, cpus: int | None
) -> None:
    """Raise what `check_written` raises, and InputError for a scheduler that is not to be had here; nothing is written."""
    check_written(contender, steps, cpus=cpus)
    if contender.scheduler:
        check_scheduler(contender.scheduler, cache_root)


class Options:
    """A kernel's configuration, as far as it is known."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        match = re.match(r"(\d+)\.(\d+)", kernel.release)
        self.version = (int(match[1]), int(match[2])) if match else None
        self.text: str | None = None
        if kernel.config is not None:
            try:
                self.text = kernel.config.read_text("utf-8", errors="replace")
            except OSError as error:
                raise InputError(f"cannot read {kernel.config}: {error.strerror}") from error

    def has(self, option: str) -> bool | None:
        """True if it is built in; None where the configuration is not known."""
        if self.text is None:
            return None
        return re.search(rf"^CONFIG_{option}=y$", self.text, re.MULTILINE) is not None

    def knows(self, option: str) -> bool:
        """True if the option can be chosen at all, set or not, and where the configuration is not known."""
        return self.text is None or re.search(rf"CONFIG_{option}[= ]", self.text) is not None

    def older_than(self, since: tuple[int, int]) -> bool:
        return self.version is not None and self.version < since

    def require(self, option: str, contender: Contender, what: str) -> None:
        """Raises InputError where the kernel is known to lack the option."""
        if self.has(option) is False:
            raise InputError(
                f"contender {contender.name or contender.kernel!r}: the kernel {self.kernel.release} has no {what} "
                f"(CONFIG_{option} is not set)",
                f"Choose a kernel that has it{WHERE.get(option, '.')}",
            )


def check_ext(contender: Contender, options: Options) -> None:
    """Raises InputError for a kernel without sched_ext."""
    if options.text is None and options.older_than(EXT_SINCE):
        raise InputError(
            f"contender {contender.name or contender.kernel!r}: the kernel {options.kernel.release} has no sched_ext "
            "(new in 6.12)",
            "Choose a newer kernel; Debian's 6.18 and later have sched_ext.",
        )
    options.require("SCHED_CLASS_EXT", contender, "sched_ext")
    options.require("DEBUG_INFO_BTF", contender, "BTF, which sched_ext schedulers need")


def check_preempt(mode: str, contender: Contender, options: Options) -> None:
    """Raises InputError for a preemption mode that the kernel cannot take."""
    options.require("PREEMPT_DYNAMIC", contender, "preemption mode to choose at boot")
    if mode in ("none", "voluntary") and not options.knows(f"PREEMPT_{mode.upper()}"):
        raise InputError(
            f"contender {contender.name or contender.kernel!r}: the kernel {options.kernel.release} has no "
            f"preempt={mode} any more (7.0 removed it for the architectures with lazy preemption)",
            "Choose preempt=lazy or preempt=full, or an older kernel.",
        )
    if mode == "lazy":
        options.require("ARCH_HAS_PREEMPT_LAZY", contender, "lazy preemption (new in 6.13)")


def check_policy(
    policy: Policy, contender: Contender, steps: Sequence[tuple[Benchmark[Any], Any]], cpus: int | None
) -> None:
    """Raises InputError for a policy that lacks its scheduler, or that a benchmark cannot run under."""
    name = contender.name or contender.kernel
    if policy.kind == "ext" and not contender.scheduler:
        raise InputError(f"contender {name!r}: the policy ext needs a scheduler", 'Add scheduler = "scx_...".')
    if policy.kind != "deadline":
        return
    for benchmark, parameters in steps:
        if not benchmark.takes_policy:
            raise InputError(
                f"contender {name!r}: {benchmark.name} cannot run under a deadline policy: the kernel forbids a "
                "deadline task to fork",
                "Use kload, wakeup or desktop, whose tasks take the policy one by one.",
            )
        tasks = benchmark.policy_tasks(parameters)
        if cpus is not None and tasks is not None:
            check_admission(policy, tasks, cpus)
