"""sysbench cpu: verify primes by trial division, in user space alone."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.parameters import Count, Seconds, Threads, label_of
from kduel.benchmarks.support.reading import agree, carried, expect, only_number, positive
from kduel.core.experiment import Metric


class SysbenchCpu(Benchmark):
    """Arithmetic that makes no system calls: what the kernel takes away from it by ticks, interrupts, placement."""

    name = "sysbench-cpu"
    summary = "Prime numbers in user space: CPU throughput, and with more threads than CPUs fairness (sysbench cpu)"
    packages = sysbench.PACKAGES

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """sysbench's own, but 2 seconds in place of 10."""

        threads: Threads = 1
        time: Seconds = 2
        cpu_max_prime: Count = 10_000

    def label(self, parameters: Any) -> str:
        return label_of("sysbench-cpu-{threads}t", parameters, time="{}s", cpu_max_prime="prime{}")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        metrics = [
            Metric(
                "events-per-second",
                "events/s",
                "higher",
                "CPU throughput. Kernels seldom differ: a difference comes from ticks, frequency or the machine.",
                "mean",
                aspect="throughput",
            ),
            *sysbench.latency_metrics("event"),
        ]
        if parameters.threads > 1:
            about = "How unevenly the threads were served: the standard deviation of their events."
            metrics.append(Metric("events-sd", "events", "lower", about))
        about = "Events until the time limit; the throughput is the same quantity, more exactly."
        metrics += [Metric("total-events", "events", "higher", about, "count"), sysbench.fixed_time(parameters.time)]
        return tuple(metrics)

    def script(self, parameters: Any) -> str:
        return (
            f"sysbench cpu --threads={parameters.threads} --time={parameters.time}"
            f" --cpu-max-prime={parameters.cpu_max_prime} run\n"
        )

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = raw.stdout
        expect(r"Prime numbers limit: (\S+)", text, "the limit of primes", parameters.cpu_max_prime)
        values = sysbench.read_report(text, parameters.threads)
        carried(values["total-events"], 950, "the latency p95")
        rate = only_number(r" *events per second: +(\S+)", text, "events per second")
        agree(rate, values["total-events"] / values["total-time"], "events per second")
        values["events-per-second"] = positive(rate, "events per second")
        return {metric.name: values[metric.name] for metric in self.metrics(parameters)}


PLUGIN = SysbenchCpu()
