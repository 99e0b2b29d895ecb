"""systemd-analyze: how long the boot took, by stage, or a user's session, as systemd reports it."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.reading import SHOWN, check_unique, find_one, read_number
from kduel.core.experiment import Metric

UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 0.001, "us": 0.000001}
SPAN = r"(?:\d{1,9}h )?(?:\d{1,9}min )?\d{1,9}(?:\.\d{1,9})?(?:s|ms|us)"
PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|min|ms|us|s)", re.ASCII)
STAGE = re.compile(rf"({SPAN}) \((\w+)\)", re.ASCII)
ADDED = "hours, minutes and seconds added up"
Stage = Literal["firmware", "loader", "kernel", "initrd", "userspace"]
BEFORE = ("firmware", "loader")
"""Stages that come before any kernel, by the firmware's clock."""


class SystemdAnalyzeParameters(Parameters, frozen=True):
    """The stages that the machine must have: firmware and loader only with EFI, initrd only where there is one. Of a `user`, who
    logs in at the boot, the start of the session alone."""

    stages: tuple[Stage, ...] = ("kernel", "userspace")
    user: Annotated[str, Meta(pattern=r"^([a-z_][a-z0-9_-]{0,31})?$")] = ""


class SystemdAnalyze(Benchmark[SystemdAnalyzeParameters]):
    """The boot of the trial itself. A USB drive that is waited for counts: the stages show what changed."""

    name = "systemd-analyze"
    summary = "Boot time by stage: firmware, loader, kernel, initrd, userspace (systemd-analyze; real machines)"
    label_template = "boot-time"
    duration = 10.0

    def label(self, parameters: SystemdAnalyzeParameters) -> str:
        return f"session-start-{parameters.user}" if parameters.user else super().label(parameters)

    def metrics(self, parameters: SystemdAnalyzeParameters) -> tuple[Metric, ...]:
        if parameters.user:
            about = "From the start of the user's service manager to the end of its start-up."
            return (Metric("time", "s", "lower", about, aspect="boot-time"),)
        about = "From the kernel's start to the end of userspace; what the firmware and the loader take is left out."
        total = Metric("total", "s", "lower", "All stages, the firmware's and the loader's too.", derived=ADDED)
        return (
            Metric("time", "s", "lower", about, derived=ADDED, aspect="boot-time"),
            *(Metric(stage, "s", "lower", f"The stage {stage}.", derived=ADDED) for stage in parameters.stages),
            *(total,) * any(stage in BEFORE for stage in parameters.stages),
        )

    def script(self, parameters: SystemdAnalyzeParameters) -> str:
        if user := parameters.user:
            return (
                f'as_user() {{ runuser -u {user} -- env XDG_RUNTIME_DIR="/run/user/$(id -u {user})" timeout 120 "$@"; }}\n'
                "as_user systemctl --user is-system-running --wait >/dev/null || true\nas_user systemd-analyze --user time\n"
            )
        return "timeout 120 systemctl is-system-running --wait >/dev/null || true\nsystemd-analyze time\n"

    def parse(self, raw: Raw, parameters: SystemdAnalyzeParameters) -> dict[str, float]:
        line = find_one(r"Startup finished in ([^\n]+)", raw.stdout, "'Startup finished in ...'")
        if parameters.user:
            match = STAGE.fullmatch(line.strip())
            if match is None or match[2] != "userspace":
                raise ParseError(f"a session's start has one stage, userspace; it is {line[:60]!r}")
            return {"time": span_seconds(match[1])}
        listed, _, told = line.removesuffix(" ").rpartition(" = ")
        if not listed:
            raise ParseError(f"systemd-analyze gives no total, as in a container: {told[:60]!r}")
        stages = [(STAGE.fullmatch(part), part) for part in listed.split(" + ")]
        for match, part in stages:
            if match is None:
                raise ParseError(f"a stage is {part[:60]!r}")
        found = [match for match, _ in stages if match]
        check_unique((match[2] for match in found), "the stage")
        values = {match[2]: span_seconds(match[1]) for match in found}
        total = span_seconds(told)
        whole = sum(values.values())
        if abs(whole - total) > 0.01 + 0.001 * whole:
            raise ParseError(f"the stages add up to {whole:.3f} s, the total is {total:.3f} s")
        values |= {"time": sum(one for stage, one in values.items() if stage not in BEFORE), "total": total}
        missing = [stage for stage in parameters.stages if stage not in values]
        if missing:
            raise ParseError(
                f"this boot has no stage {', '.join(missing)}; it has {', '.join(match[2] for match in found)}"
            )
        return {metric.name: values[metric.name] for metric in self.metrics(parameters)}


def span_seconds(span: str) -> float:
    """`1min 2.345s` in seconds. Raises ParseError where it is no such time."""
    parts = [PART.fullmatch(word) for word in span.split(" ")] if re.fullmatch(SPAN, span, re.ASCII) else []
    if not parts:
        raise ParseError(f"a time is {span[:SHOWN]!r}")
    return sum(read_number(part[1], "a time") * UNITS[part[2]] for part in parts if part)


PLUGIN = SystemdAnalyze()
