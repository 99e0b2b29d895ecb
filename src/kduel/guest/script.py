"""The guest script: one POSIX shell file that captures the environment, settles, and runs a trial's steps.

It is kept with the trial and runs by hand on any Linux: `sh guest.sh OUT`. What it leaves in OUT:

    environment/...            raw files about the boot, read by kduel.guest.environment
    setup/, settle.json        how the setup lines ended, the last time; how long settling took
    01-LABEL/                  a step: stdout, stderr, exit.json, and what the step itself wrote
    services/NAME/             how a service started, as of a step; what its server says
    gates/01-LABEL.before|after[.status]
    host/01-LABEL.begin|end      on a real machine: its running totals, read by kduel.guest.hostinside
"""

import hashlib
import math
import shlex
from collections.abc import Sequence

from msgspec import Struct

from kduel.benchmarks import Service
from kduel.core.experiment import LABEL, Settle
from kduel.guest import own_file


class ScriptStep(Struct, frozen=True, kw_only=True):
    label: str
    """Label of the form LABEL; the step's directory is NN-label."""
    script: str
    """Run by `sh -e` in an empty directory; see kduel.benchmarks.Benchmark.script."""
    timeout: float
    """Seconds until the step is ended, with status 124."""
    before: str = ""
    """A gate: run by `sh` just before; a non-zero end keeps the step from running (its status is then 125)."""
    after: str = ""
    """A gate: run by `sh` just after; kept, for the runner to judge."""
    number: int | None = None
    """The NN of its directory, where the steps' order in time is not that of the study."""
    service: Service | None = None
    """Started before the first step that has it, and ended after the last one."""
    peer: bool = False
    """True if it works with the machine at the other end of a link."""


def directory_of(position: int, part: ScriptStep) -> str:
    """The step's directory below OUT; `position` counts from 0."""
    return f"{position + 1 if part.number is None else part.number:02d}-{part.label}"


def compose(
    parts: Sequence[ScriptStep],
    *,
    settle: Settle,
    setup: str = "",
    undo: str | None = None,
    modules: Sequence[str] = (),
    seed: int = 0,
    recorded: bool = False,
    link: str = "",
) -> str:
    """The guest script. `setup` is shell run by `sh -e` before settling (sysctls, say), with these kernel modules loaded;
    if it fails the script ends. With `undo`, shell that takes back what it sets, each step begins with the setup and ends with
    that, when its turn comes in a shared boot (KDUEL_TURN, KDUEL_DONE: shared.sh). `seed` is for steps that draw from it, as $KDUEL_SEED; `recorded` makes it record what the
    machine does during each step; `link` are the lines that reach a peer, where the machine has one (kduel.guest.link).

    The script ends with 0 whatever the steps do, with 3 where the setup failed, 2 where OUT cannot be made, 4 or 5 where
    the peer is not there.
    """
    services = {part.service.name: part.service for part in parts if part.service}
    if any(part.service not in (None, services.get(part.service.name)) for part in parts if part.service):
        raise ValueError("two services of one name differ")
    out = [own_file("head.sh").decode()]
    if recorded:
        out.append(own_file("record.sh").decode())
    if any("KDUEL_SEED" in part.script for part in parts):
        out.append(f"export KDUEL_SEED={seed}\n")
    if modules:
        out.append(f"load {' '.join(modules)}\n")
    if link:
        out.append(link)
    if setup.strip() and undo is None:
        out.append(_call("setup", setup))
    if link:
        out.append("meet_peer\n")
    out.append(f"make_ready {' '.join(directory_of(position, part) for position, part in enumerate(parts))}\n")
    bound = math.ceil(settle.seconds * 100)
    # A guest of KDuel's own has no services that begin late.
    looks = " 1" if recorded else " 0.5"
    out.append(f"settle {settle.mode} {bound}{looks if settle.mode == 'idle' else ''}\n")
    if undo is not None:
        out.append(own_file("own_turns.sh").decode())
        out.append(f"undo={shlex.quote(undo or ':')}\n{_call('keep_for_turns', setup)}")
    for position, part in enumerate(parts):
        if not LABEL.fullmatch(part.label):
            raise ValueError(f"a step cannot be called {part.label!r}")
        name = directory_of(position, part)
        if part.service:
            users = [position for position, other in enumerate(parts) if other.service == part.service]
            out.append(_export_service(part.service))
            if position == users[0]:
                out.append(_start(part.service))
        if undo is not None:
            out.append("begin_turn\n")
        if part.before.strip():
            out.append(_call(f"gate before {name}", part.before))
        if part.peer:
            out.append("watch_peer\n")
        out.append(_call(f"step {name} {math.ceil(part.timeout)}", part.script))
        if part.peer:
            out.append("check_peer\n")
        if part.after.strip():
            out.append(_call(f"gate after {name}", part.after))
        if part.before.strip() or part.after.strip():
            out.append("gate_status=0\n")
        if undo is not None:
            out.append("end_turn\n")
        if part.service:
            out.append("end_service\n" * (position == users[-1]) + "unset KDUEL_SERVICE\n")
    if undo is not None:
        out.append("await_others\n")
    if link:
        out.append("leave_peer\n")
    out.append("end\nexit 0\n")
    return "\n".join(out)


def _export_service(service: Service) -> str:
    if not LABEL.fullmatch(service.name):
        raise ValueError(f"a service cannot be called {service.name!r}")
    return f'export KDUEL_SERVICE="${"KDUEL_SCRATCH" if service.scratch else "WORK"}/services/{service.name}"\n'


def _start(service: Service) -> str:
    """Shell that starts a service. What ends it is there before anything is started."""
    stop = f"cat >stop <<'KDUEL_STOP'\n{service.stop.strip()}\nKDUEL_STOP\n" if service.stop.strip() else ""
    return _call(
        f"service {service.name} {math.ceil(service.timeout)}", f'cd "$KDUEL_SERVICE"\n{stop}{service.start}'
    )


def _call(command: str, script: str) -> str:
    """A call with `script` as its standard input, untouched by the shell, whatever it contains."""
    lines = script.strip("\n")
    mark = f"KDUEL_{hashlib.sha256(lines.encode()).hexdigest()[:8]}"
    while mark in lines:
        mark += "_"
    return f"{command} <<'{mark}'\n{lines}\n{mark}\n"
