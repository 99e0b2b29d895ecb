"""systemd-analyze: how long the boot took, by stage, as systemd tells it."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.parameters import label_of
from kduel.core.experiment import Metric

UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 0.001, "us": 0.000001}
SPAN = r"(?:\d+h )?(?:\d+min )?\d+(?:\.\d+)?(?:s|ms|us)"
Stage = Literal["firmware", "loader", "kernel", "initrd", "userspace"]


class SystemdAnalyze(Benchmark):
    """The boot of the trial itself. A USB drive that is waited for counts: the stages tell what it is that changed."""

    name = "systemd-analyze"
    summary = "Boot time by stage: firmware, loader, kernel, initrd, userspace (systemd-analyze; real machines)"

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """The stages that the machine must have: firmware and loader only with EFI, initrd only where there is one."""

        stages: tuple[Stage, ...] = ("kernel", "userspace")

    def label(self, parameters: Any) -> str:
        return label_of("boot-time", parameters)

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        about = "All stages together, the firmware's and loader's included where systemd knows them."
        return (
            Metric("total", "s", "lower", about),
            *(Metric(stage, "s", "lower", f"The stage {stage}.") for stage in parameters.stages),
        )

    def script(self, parameters: Any) -> str:
        return "timeout 120 systemctl is-system-running --wait >/dev/null || true\nsystemd-analyze time\n"

    def seconds(self, parameters: Any) -> float:
        return 10.0

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        match = re.search(rf"^Startup finished in (.+) = ({SPAN}) ?$", raw.stdout, re.MULTILINE | re.ASCII)
        if match is None:
            raise ParseError("the output has no line 'Startup finished in ...'")
        values = {"total": seconds(match[2])}
        for part in match[1].split(" + "):
            stage = re.fullmatch(rf"({SPAN}) \((\w+)\)", part, re.ASCII)
            if stage is None:
                raise ParseError(f"a stage is {part[:60]!r}")
            values[stage[2]] = seconds(stage[1])
        whole = sum(value for stage, value in values.items() if stage != "total")
        if abs(whole - values["total"]) > 0.01 + 0.001 * whole:
            raise ParseError(f"the stages add up to {whole:.3f} s, the total is {values['total']:.3f} s")
        missing = [stage for stage in parameters.stages if stage not in values]
        if missing:
            raise ParseError(f"this boot has no stage {', '.join(missing)}; it has {', '.join(values)}")
        return {metric.name: values[metric.name] for metric in self.metrics(parameters)}


def seconds(span: str) -> float:
    """`1min 2.345s` in seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|min|ms|us|s)(?![a-z])", span)
    return sum(float(amount) * UNITS[unit] for amount, unit in parts)


PLUGIN = SystemdAnalyze()
