"""sysbench cpu: verify primes by trial division, in user space alone."""

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Seconds, Threads
from kduel.benchmarks.support.reading import expect, find_number
from kduel.core.experiment import Metric
from kduel.core.samples import Details

RATE = "CPU throughput. Kernels seldom differ: a difference comes from ticks, frequency or the machine."
DERIVED = "total events / total time"
UNEVEN = "How unevenly the threads were served: the standard deviation of their events."
EVENTS = "Events until the time limit; the throughput is the same quantity, more exactly."


class SysbenchCpuParameters(Parameters, frozen=True):
    """sysbench's own, but 2 seconds in place of 10."""

    threads: Threads = 1
    time: Seconds = 2
    cpu_max_prime: Count = 10_000


class SysbenchCpu(Benchmark[SysbenchCpuParameters]):
    name = "sysbench-cpu"
    summary = "Prime numbers in user space: CPU throughput, and with more threads than CPUs fairness (sysbench cpu)"
    packages = sysbench.PACKAGES
    label_template = "sysbench-cpu-{threads}t"
    by_clock = True
    label_formats = {"time": "{}s", "cpu_max_prime": "prime{}"}

    def metrics(self, parameters: SysbenchCpuParameters) -> tuple[Metric, ...]:
        metrics = [
            *with_aspect(
                "throughput", Metric("events-per-second", "events/s", "higher", RATE, "mean"), derived=DERIVED
            ),
            *sysbench.latency_metrics("event"),
        ]
        if parameters.threads > 1:
            metrics.append(Metric("events-sd", "events", "lower", UNEVEN, "sd"))
        return (
            *metrics,
            Metric("total-events", "events", "higher", EVENTS, "count"),
            sysbench.fixed_time(parameters.time),
        )

    def script(self, parameters: SysbenchCpuParameters) -> str:
        return (
            f"sysbench cpu --threads={parameters.threads} --time={parameters.time}"
            f" --cpu-max-prime={parameters.cpu_max_prime} run\n"
        )

    def parse(self, raw: Raw, parameters: SysbenchCpuParameters) -> dict[str, float]:
        text = raw.stdout
        expect(r"Prime numbers limit: (\S+)", text, "the limit of primes", parameters.cpu_max_prime)
        values = sysbench.read_report(text, parameters.threads)
        events = values["total-events"]
        values["events-per-second"] = sysbench.compute_rate(
            events, read_printed_rate(raw), values, "events per second"
        )
        return {metric.name: values[metric.name] for metric in self.metrics(parameters) if metric.name in values}

    def details(self, raw: Raw, parameters: SysbenchCpuParameters) -> Details:
        return Details(printed={"events-per-second": read_printed_rate(raw)})


def read_printed_rate(raw: Raw) -> float:
    """Events per second as sysbench prints them."""
    return find_number(r" *events per second: +(\S+)", raw.stdout, "events per second")


PLUGIN = SysbenchCpu()
