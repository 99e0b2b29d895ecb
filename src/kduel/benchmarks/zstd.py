"""zstd: compression of a fixed text in memory, for which kernels hardly matter."""

from typing import Annotated

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, Raw, Service
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count
from kduel.benchmarks.support.reading import expect
from kduel.benchmarks.support.service import measure_time, need, read_seconds
from kduel.core.experiment import Metric

TEXT = """awk -v lines={lines} 'BEGIN {{
    for (n = 0; n < lines; n++) {{
        x = (x * 1103 + 12345) % 65536
        printf "%d request %d from 10.0.%d.%d took %d us\\n", n, x, x % 256, x % 199, x * 7 % 1000
    }}
}}' >text
"""


class ZstdParameters(Parameters, frozen=True):
    """zstd's own, and how many lines of a log, of about 40 bytes, are compressed how often."""

    level: Annotated[int, Meta(ge=1, le=19)] = 3
    lines: Count = 100_000
    loops: Count = 10


class Zstd(Benchmark[ZstdParameters]):
    """A control: where it differs, look for the host, the CPU's frequency or page sizes before the kernel's code."""

    name = "zstd"
    summary = "Time to compress a text in memory: user space, a control in which kernels should not differ"
    packages = ("zstd",)
    label_template = "zstd-{level}"
    label_formats = {"lines": "{}l", "loops": "{}x"}
    declared_metrics = with_aspect(
        "operation-time", Metric("time", "ms", "lower", "One compression.", "mean"), derived="wall time / loops"
    )

    def service(self, parameters: ZstdParameters) -> Service:
        start = need(("zstd",), self.packages) + TEXT.format(lines=parameters.lines)
        return Service(name=f"text-{parameters.lines}", start=start, seconds=1.0)

    def script(self, parameters: ZstdParameters) -> str:
        p = parameters
        compress = f'zstd -q --single-thread -{p.level} -c "$KDUEL_SERVICE/text"'
        return (
            f"{compress} >/dev/null\n"
            + measure_time(f"for _ in $(seq {p.loops}); do {compress} >/dev/null; done\n")
            + f'echo "lines: $({compress} | zstd -q -dc | wc -l)"\n'
        )

    def seconds(self, parameters: ZstdParameters) -> float:
        return 1.0 + parameters.loops * parameters.lines * 1e-6

    def parse(self, raw: Raw, parameters: ZstdParameters) -> dict[str, float]:
        expect(r"lines: +(\S+)", raw.stdout, "the number of lines", parameters.lines)
        return {"time": read_seconds(raw.stdout) * 1000 / parameters.loops}


PLUGIN = Zstd()
