"""compile-tree: how long a compiler takes for a fixed tree of small C files."""

from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, Raw, Service
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Number
from kduel.benchmarks.support.reading import expect
from kduel.benchmarks.support.service import measure_time, need, read_seconds
from kduel.core.experiment import Metric

TREE = """awk -v files={files} 'BEGIN {{
    for (n = 0; n < files; n++) {{
        file = "f" n ".c"
        printf "#include <stdio.h>\\n#include <stdlib.h>\\n#include <string.h>\\n" > file
        for (m = 0; m < 20; m++)
            printf "int f%d_%d(int x) {{ for (int i = 0; i < %d; i++) x = x * 31 + i; return x; }}\\n", n, m, n + m > file
        close(file)
    }}
}}'
"""


class CompileTreeParameters(Parameters, frozen=True):
    """tcc is small and quick, so that much of the time is the kernel's; gcc adds 90 MB to the guest's root."""

    compiler: Literal["tcc", "gcc"] = "tcc"
    files: Count = 100
    jobs: Number = 0
    """Compilers at once; 0: one a CPU."""


class CompileTree(Benchmark[CompileTreeParameters]):
    name = "compile-tree"
    summary = "Time to compile a fixed tree of small C files: fork, exec, mmap, page faults, open, write"
    packages = ("tcc", "libc6-dev")
    label_template = "compile-{compiler}"
    label_formats = {"files": "{}f", "jobs": "j{}"}
    declared_metrics = with_aspect(
        "build-time", Metric("time", "s", "lower", "All files.", "total"), derived="end - start"
    )
    needs_scratch = True

    def packages_for(self, parameters: CompileTreeParameters) -> tuple[str, ...]:
        return (parameters.compiler, "libc6-dev")

    def service(self, parameters: CompileTreeParameters) -> Service:
        return Service(name=f"sources-{parameters.files}", start=TREE.format(files=parameters.files), seconds=1.0)

    def script(self, parameters: CompileTreeParameters) -> str:
        p = parameters
        jobs = p.jobs or '"$(nproc)"'
        build = f'seq 0 {p.files - 1} | xargs -P {jobs} -I@ {p.compiler} -c "$KDUEL_SERVICE/f@.c" -o f@.o\n'
        return need((p.compiler,), self.packages_for(p)) + (
            'mkdir "$KDUEL_SCRATCH/objects"\ncd "$KDUEL_SCRATCH/objects"\n'
            f'{p.compiler} -c "$KDUEL_SERVICE/f0.c" -o f0.o\n{measure_time(build)}set -- *.o\necho "objects: $#"\n'
        )

    def seconds(self, parameters: CompileTreeParameters) -> float:
        return 1.0 + parameters.files * (0.02 if parameters.compiler == "tcc" else 0.3)

    def parse(self, raw: Raw, parameters: CompileTreeParameters) -> dict[str, float]:
        expect(r"objects: +(\S+)", raw.stdout, "the number of object files", parameters.files)
        return {"time": read_seconds(raw.stdout)}


PLUGIN = CompileTree()
