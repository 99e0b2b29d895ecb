"""desktop: one interactive task with a frame to finish 60 times a second, under CPU load (our kwake)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.parameters import Number, label_of
from kduel.benchmarks.wakeup import Rate, Requests, kwake, percentile, read_kwake
from kduel.core.experiment import Metric


class Desktop(Benchmark):
    """What a person at a busy desktop feels: whether each frame is ready before the next one is due, while a build or
    an encoder has all CPUs. What the hogs get done meanwhile is the price."""

    name = "desktop"
    summary = "Frame times of an interactive task under CPU load, share of late frames, throughput of the load (KDuel's kwake)"
    programs = ("kwake",)
    takes_policy = True

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`work`: points of pi in a frame (500,000 took 1.2 ms on a server CPU of 2023). A policy is the task's, not
        the hogs'."""

        rate: Rate = 60
        frames: Requests = 600
        work: Number = 500_000
        hogs: Annotated[int, Meta(ge=1, le=4096)] = 4

    def label(self, parameters: Any) -> str:
        return label_of("desktop-{hogs}hogs", parameters, rate="{}hz", frames="{}f")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return (
            Metric(
                "frame-p99",
                "ms",
                "lower",
                "99 of 100 frames were ready no later after they were due.",
                "p99",
                aspect="frame-latency",
            ),
            Metric(
                "frame-p50",
                "ms",
                "lower",
                "Half of the frames were ready no later.",
                "median",
                aspect="frame-latency",
            ),
            Metric(
                "frame-max",
                "ms",
                "lower",
                "The latest frame; grows with the number of frames.",
                "max",
                aspect="frame-latency",
            ),
            Metric(
                "late",
                "%",
                "lower",
                "Frames that were not ready when the next one was due.",
                "value",
                most=100.0,
                derived="100 late / frames",
                aspect="frame-latency",
            ),
            Metric(
                "hog-rate",
                "Mpoints/s",
                "higher",
                "Work that the CPU hogs completed meanwhile.",
                "mean",
                aspect="background-throughput",
            ),
        )

    def script(self, parameters: Any) -> str:
        return kwake(request(parameters))

    def seconds(self, parameters: Any) -> float:
        return 0.5 + float(parameters.frames) / float(parameters.rate)

    def policy_tasks(self, parameters: Any) -> int | None:
        return 1

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        out = read_kwake(raw.stdout, request(parameters))
        if out.hog_points_per_s is None:
            raise ParseError("the output lacks the work done by the hogs")
        return {
            "frame-p50": percentile(out.response_ns, "p50") / 1000,
            "frame-p99": percentile(out.response_ns, "p99") / 1000,
            "frame-max": percentile(out.response_ns, "max") / 1000,
            "late": 100 * out.late / parameters.frames,
            "hog-rate": out.hog_points_per_s / 1e6,
        }


class KwakeRequest(Struct, frozen=True):
    """What kwake is started with, and reports."""

    workers: int
    rate: int
    requests: int
    work: int
    hogs: int


def request(parameters: Any) -> KwakeRequest:
    """A frame is a request to a single worker."""
    return KwakeRequest(1, parameters.rate, parameters.frames, parameters.work, parameters.hogs)


PLUGIN = Desktop()
