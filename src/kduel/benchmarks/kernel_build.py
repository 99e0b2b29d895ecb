"""kernel-build: one clean `make -jN` of the contender's kernel, configured before, no ccache (machine `build`)."""

from msgspec import Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number, Seconds
from kduel.benchmarks.support.reading import Amount, Natural, check_positive, read_json_file
from kduel.core.experiment import Metric

NEEDS_BUILD = '[ -x "${KDUEL_MAKE-}" ] || { echo "this benchmark takes the machine build" >&2; exit 1; }'
"""The first line of a script that only the machine `build` can run."""


class BuildTimes(Struct):
    real: Amount
    user: Amount
    sys: Amount
    maxrss_kib: Natural
    status: int


class KernelBuildParameters(Parameters, frozen=True):
    """`jobs` 0 is one per CPU; `patience` is how many seconds a build may take before it counts as hung."""

    jobs: Number = 0
    patience: Seconds = 14_400


class KernelBuild(Benchmark[KernelBuildParameters]):
    name = "kernel-build"
    summary = "Time to build the contender's kernel: real, user, system (machine build)"
    only_on = "build"
    label_template = "build"
    label_formats = {"jobs": "j{}"}
    declared_metrics = (
        Metric("real", "s", "lower", "From make's start to its end.", aspect="build-time"),
        *with_aspect(
            "cpu-time",
            Metric("user", "s", "lower", "CPU time in user mode, of make and all that it ran.", "total"),
            Metric("sys", "s", "lower", "CPU time in the kernel, of make and all that it ran.", "total"),
        ),
    )
    duration = 600.0

    def script(self, parameters: KernelBuildParameters) -> str:
        jobs = parameters.jobs or "$(nproc)"
        return f"""\
{NEEDS_BUILD}
# shellcheck disable=SC2086 # several words each
"$KDUEL_TIMED" "$KDUEL_STEP/times.json" "$KDUEL_MAKE" -s -j"{jobs}" $KDUEL_TARGETS >"$KDUEL_STEP/build.log" 2>&1
"""

    def timeout(self, parameters: KernelBuildParameters) -> float:
        return float(parameters.patience)

    def parse(self, raw: Raw, parameters: KernelBuildParameters) -> dict[str, float]:
        times = read_json_file(raw, "times.json", BuildTimes)
        if times.status:
            raise ParseError(f"make ended with status {times.status}")
        values = {"real": times.real, "user": times.user, "sys": times.sys}
        return {name: check_positive(value, f"the {name} time") for name, value in values.items()}


PLUGIN = KernelBuild()
