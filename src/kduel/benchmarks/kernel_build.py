"""kernel-build: how long one clean build of the contender's kernel takes, on the machine `build`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.parameters import Number, Seconds, label_of
from kduel.benchmarks.support.reading import Amount, Natural, json_file, positive
from kduel.core.experiment import Metric

NEEDS_BUILD = '[ -x "${KDUEL_MAKE-}" ] || { echo "this benchmark takes the machine build" >&2; exit 1; }'
"""The first line of a script that only the machine `build` can run."""


class BuildTimes(Struct):
    """times.json."""

    real: Amount
    user: Amount
    sys: Amount
    maxrss_kib: Natural
    status: int


class KernelBuild(Benchmark):
    """`make -jN` into an empty directory, configured before the clock starts; no ccache."""

    name = "kernel-build"
    summary = "Time to build the contender's kernel: real, user, system (machine build)"

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`jobs` 0 is one per CPU; `patience` is how many seconds a build may take before it counts as hung."""

        jobs: Number = 0
        patience: Seconds = 14_400

    def label(self, parameters: Any) -> str:
        return label_of("build", parameters, jobs="j{}")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return (
            Metric("real", "s", "lower", "From make's start to its end.", aspect="build-time"),
            Metric(
                "user",
                "s",
                "lower",
                "CPU time in user mode, of make and all that it ran.",
                "total",
                aspect="cpu-time",
            ),
            Metric(
                "sys",
                "s",
                "lower",
                "CPU time in the kernel, of make and all that it ran.",
                "total",
                aspect="cpu-time",
            ),
        )

    def script(self, parameters: Any) -> str:
        jobs = parameters.jobs or "$(nproc)"
        return "\n".join(
            [
                NEEDS_BUILD,
                "# shellcheck disable=SC2086 # several words each",
                f'"$KDUEL_TIMED" "$KDUEL_STEP/times.json" "$KDUEL_MAKE" -s -j"{jobs}" $KDUEL_TARGETS '
                '>"$KDUEL_STEP/build.log" 2>&1',
                "",
            ]
        )

    def seconds(self, parameters: Any) -> float:
        return 600.0

    def timeout(self, parameters: Any) -> float:
        return float(parameters.patience)

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        times = json_file(raw, "times.json", BuildTimes)
        if times.status:
            raise ParseError(f"make ended with status {times.status}")
        found: dict[str, float] = msgspec.structs.asdict(times)
        return {name: positive(found[name], f"the {name} time") for name in ("real", "user", "sys")}


PLUGIN = KernelBuild()
