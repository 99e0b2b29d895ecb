"""The script of a profiled trial: perf records around the chosen step, and nowhere else."""

import hashlib
from collections.abc import Sequence

from msgspec import structs

from kduel.core.cache import Cache
from kduel.guest.script import ScriptStep
from kduel.machines import Arm
from kduel.run.script import TrialSetup
from kduel.schedulers import SchedulerSetup
from kduel.store.collect import PreparedSteps
from kduel.study.load import Study

PACKAGE = "linux-perf"
ALLOWANCE = 240.0
"""Seconds that perf may take to start, and to print what it recorded, in an emulator."""
SCRIPT = """command -v perf >/dev/null || {{ echo "perf is not installed ({package})" >&2; exit 1; }}
cat >kduel-step.sh <<'{mark}'
{step}
{mark}
event=cycles
perf record -q -B -N -e cycles -o probe.data true >/dev/null 2>probe.err && perf script -i probe.data -F event 2>/dev/null |
    grep -q '^ *cycles' || event=cpu-clock
grep '^cpu' /proc/stat >"$KDUEL_STEP/stat.before"
status=0
sh -c 'echo $$ >"$KDUEL_STEP/perf.pid"; exec "$@"' sh \\
    perf record -q -a -g -B -N -F {frequency} -e "$event" -o step.data -- sh -e "$PWD/kduel-step.sh" || status=$?
grep '^cpu' /proc/stat >"$KDUEL_STEP/stat.after"
[ "$status" = 0 ] || exit "$status"
restrict=$(cat /proc/sys/kernel/kptr_restrict)
if [ "$restrict" != 0 ]; then echo 0 >/proc/sys/kernel/kptr_restrict; fi
grep -i ' [tw] ' /proc/kallsyms | gzip -1 >"$KDUEL_STEP/kallsyms.gz"
if [ "$restrict" != 0 ]; then echo "$restrict" >/proc/sys/kernel/kptr_restrict; fi
perf script -i step.data -F pid,event,period,ip 2>"$KDUEL_STEP/perf-script.err" | gzip -1 >"$KDUEL_STEP/samples.gz"
perf --version >"$KDUEL_STEP/perf.version"
"""
"""The event is tried first: perf falls back from cycles to a clock without saying so in its status."""


class ProfilingSetup(TrialSetup):
    """A run's own dress, with perf around each step."""

    def __init__(
        self, study: Study, arms: Sequence[Arm], prepared: PreparedSteps, *, cache: Cache, frequency: int
    ) -> None:
        super().__init__(study, arms, prepared, cache=cache)
        self.frequency = frequency

    def make_step(self, index: int, setup: SchedulerSetup, piece: int = 0) -> ScriptStep:
        step = super().make_step(index, setup, piece)
        lines = step.script.strip("\n")
        mark = f"KDUEL_STEP_{hashlib.sha256(lines.encode()).hexdigest()[:12]}"
        return structs.replace(
            step,
            script=SCRIPT.format(package=PACKAGE, mark=mark, step=lines, frequency=self.frequency),
            timeout=step.timeout + ALLOWANCE,
        )
