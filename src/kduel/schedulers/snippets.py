"""Parts that a contender's scheduler, policy and knobs add to the guest script, and to what the guest needs."""

import re
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from kduel.core.cache import Cache
from kduel.core.experiment import Contender, Void
from kduel.schedulers.build import find_scheduler
from kduel.schedulers.catalogue import PLAIN
from kduel.schedulers.check import check_gates
from kduel.schedulers.knobs import set_knobs
from kduel.schedulers.policy import parse_policy

START_LIMIT = 240
"""Seconds that a scheduler may take to be at work: scx_lavd took 43 under TCG on an idle host, 140 on a busy one."""
DIRECTORY = '"${KDUEL_SCHED_DIR:-/run/kduel-sched}"'
"""Directory where the gates keep their functions and state, in shell. Root sources them, so that nobody else may write there: not
below /tmp, where whoever comes first makes the directory."""
LIBRARY = f"{DIRECTORY}/gates.sh"
USE = f". {LIBRARY}\n"


class SchedulerSetup(Struct, frozen=True, kw_only=True):
    """Shell for the places where the guest script has room for it; each empty where the contender needs nothing."""

    contender: Contender
    before_all: str = ""
    """In the script's setup, before settling. It does not fail: gates report faults with the kernel's message."""
    before_each: str = ""
    """The gate before a step; it ends with 1, and so keeps the step from running, where `before_all` went wrong."""
    after_each: str = ""
    after_all: str = ""
    """After the last step: the kernel's own scheduler and all knobs as they were, for the next one in this boot."""
    policy: str = ""
    """Argument for our programs; empty for the kernel's default."""
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: tuple[tuple[str, Path], ...] = ()
    seconds: float = 0.0
    """Seconds that `before_all` and `after_all` may take at most, for the deadline."""
    facts: dict[str, str] = {}
    """For the lock: the scheduler's version and SHA-256."""

    def wrap(self, script: str, *, native: bool = False) -> str:
        """A step's script under the policy: by $KDUEL_POLICY if the program takes it itself, else by kpolicy."""
        if not self.policy:
            return script
        if native:
            return f"export KDUEL_POLICY={shlex.quote(self.policy)}\n{script}"
        return f'exec "$KDUEL_PROGRAMS/kpolicy" {shlex.quote(self.policy)} sh -ec {shlex.quote(script)}\n'

    def check(self, trial: Path, *, anew: bool = False) -> Void | None:
        """Reason why the trial is void, if anything was not in force; `anew` where it is set for each step."""
        return check_gates(trial, self.contender, anew=anew) if self.before_each else None


def make_setup(contender: Contender, contenders: Sequence[Contender], *, cache: Cache) -> SchedulerSetup:
    """The setup of one of a study's contenders; where any of them has a sched_ext scheduler, the others are checked
    to have none. Raises InputError for a scheduler that is not to be had."""
    policy = parse_policy(contender.policy).canonical if contender.policy else ""
    programs: tuple[str, ...] = ("kpolicy",) if policy else ()
    preempt = preempt_mode(contender.cmdline)
    if not (any(other.scheduler for other in contenders) or contender.sysctl or preempt):
        return SchedulerSetup(contender=contender, policy=policy, programs=programs)
    placed: tuple[tuple[str, Path], ...] = ()
    facts: dict[str, str] = {}
    begin = ["sched_begin\n", set_knobs(contender.sysctl)]
    if preempt:
        begin.append(f"sched_preempt {shlex.quote(preempt)}\n")
    if contender.scheduler:
        name, *words = shlex.split(contender.scheduler)
        if name == PLAIN:
            programs += (PLAIN,)
            facts = {"source": "kduel"}
            program = f'"$KDUEL_PROGRAMS/{PLAIN}"'
        else:
            bundle, directory = find_scheduler(contender.scheduler, cache=cache)
            placed = bundle.files(directory)
            facts = {"version": bundle.version, "sha256": bundle.sha256, "source": bundle.source}
            program = f'"$KDUEL_PROGRAMS/sched/{bundle.name}/{bundle.name}"'
        arguments = [shlex.quote(word) for word in words]
        begin.append(" ".join(["sched_start", str(START_LIMIT), program, *arguments]) + "\n")
    begin.append("sched_ready\n")
    return SchedulerSetup(
        contender=contender,
        # In a shell of its own: where it ends early, the script goes on, and every gate reports it.
        before_all=f"{install_gates()}(\n{USE}{''.join(begin)}) || :\n",
        before_each=f"{USE}sched_before\n",
        after_each=f"{USE}sched_look\n",
        after_all=f"{USE}sched_stop\n",
        policy=policy,
        programs=programs,
        files=placed,
        seconds=START_LIMIT + 70.0 if contender.scheduler else 5.0,
        facts=facts,
    )


@cache
def install_gates() -> str:
    """Shell that puts the gates' functions where the gates find them."""
    library = files("kduel.schedulers").joinpath("gates.sh").read_text("utf-8")
    return f"(umask 077; mkdir -p {DIRECTORY}; cat >{LIBRARY}) <<'KDUEL_GATES'\n{library}KDUEL_GATES\n"


UNDO = f"[ ! -e {LIBRARY} ] || (. {LIBRARY}; sched_stop)"
"""Takes back a contender's scheduler and sysctls: shell, for the script that puts everything back."""


def preempt_mode(cmdline: str) -> str:
    """The value of the command line's last preempt=; empty without one."""
    found = re.findall(r"(?:^|\s)preempt=(\S+)", cmdline)
    return found[-1] if found else ""
