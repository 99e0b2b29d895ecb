"""desktop: one interactive task with a frame to finish 60 times a second, under CPU load (our kwake)."""

from typing import Annotated

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, wakeup
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number
from kduel.core.experiment import Metric
from kduel.core.samples import Details

LATE = "Frames that were not ready when the next one was due."


class DesktopParameters(Parameters, frozen=True):
    """`work`: points of pi in a frame (500,000 took 1.2 ms on a server CPU of 2023). A policy is the task's, not
    the hogs'."""

    rate: wakeup.Rate = 60
    frames: wakeup.Requests = 600
    work: Number = 500_000
    hogs: Annotated[int, Meta(ge=1, le=4096)] = 4


class Desktop(Benchmark[DesktopParameters]):
    """Experience of a person at a busy desktop: whether each frame is ready before the next one is due, while a build or
    an encoder has all CPUs. What the hogs get done meanwhile is the price."""

    name = "desktop"
    summary = "Frame times of an interactive task under CPU load, share of late frames, throughput of the load (KDuel's kwake)"
    programs = ("kwake",)
    takes_policy = True
    distributions = ("frame",)
    label_template = "desktop-{hogs}hogs"
    label_formats = {"rate": "{}hz", "frames": "{}f"}
    declared_metrics = (
        *with_aspect(
            "frame-latency",
            Metric("frame-p99", "ms", "lower", "99 of 100 frames were ready no later after they were due.", "p99"),
            Metric("frame-p50", "ms", "lower", "Half of the frames were ready no later.", "median"),
            Metric("frame-max", "ms", "lower", "The latest frame; grows with the number of frames.", "max"),
            Metric("late", "%", "lower", LATE, most=100.0, derived="100 late / frames"),
        ),
        *with_aspect(
            "background-throughput",
            Metric("hog-rate", "Mpoints/s", "higher", "Work that the CPU hogs completed meanwhile.", "mean"),
        ),
    )

    def script(self, parameters: DesktopParameters) -> str:
        return wakeup.kwake_command(frame_requests(parameters))

    def seconds(self, parameters: DesktopParameters) -> float:
        return 0.5 + float(parameters.frames) / float(parameters.rate)

    def policy_tasks(self, parameters: DesktopParameters) -> int | None:
        return 1

    def parse(self, raw: Raw, parameters: DesktopParameters) -> dict[str, float]:
        out = wakeup.read_kwake(raw.stdout, frame_requests(parameters))
        if out.hog_points_per_s is None:
            raise ParseError("the output lacks the work done by the hogs")
        if out.late is None:
            raise ParseError("the output lacks the number of late requests")
        return {
            "frame-p50": wakeup.microseconds(out.response_ns, "p50") / 1000,
            "frame-p99": wakeup.microseconds(out.response_ns, "p99") / 1000,
            "frame-max": wakeup.microseconds(out.response_ns, "max") / 1000,
            "late": 100 * out.late / parameters.frames,
            "hog-rate": out.hog_points_per_s / 1e6,
        }

    def details(self, raw: Raw, parameters: DesktopParameters) -> Details:
        out = wakeup.read_kwake(raw.stdout, frame_requests(parameters))
        return Details(distributions={"frame-p99": wakeup.histogram_of(out.response_ns, "ms", 1e6)})


def frame_requests(parameters: DesktopParameters) -> wakeup.WakeupParameters:
    p = parameters
    return wakeup.WakeupParameters(workers=1, rate=p.rate, requests=p.frames, work=p.work, hogs=p.hogs)


PLUGIN = Desktop()
