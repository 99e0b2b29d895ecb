"""git-status: how long git's one thread takes to find that nothing has changed in a tree of many files in memory."""

from kduel.benchmarks import Benchmark, Parameters, Raw, Service
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count
from kduel.benchmarks.support.reading import expect
from kduel.benchmarks.support.service import measure_time, need, read_seconds
from kduel.core.experiment import Metric

TREE = """git init -q tree && cd tree
awk -v files={files} 'BEGIN {{
    for (n = 0; n < files; n++) {{
        if (n % 20 == 0) {{ directory = "d" int(n / 400) "/e" int(n / 20); system("mkdir -p " directory) }}
        file = directory "/f" n ".c"
        printf "int f%d(int x) {{ return x * %d; }}\\n", n, n * 7919 % 1000 > file
        close(file)
    }}
}}'
find d* -type f -exec touch -t 200001010000 {{}} +
git add .
git -c user.name=kduel -c user.email=kduel@invalid commit -q -m "A tree"
git status --porcelain
"""
"""A file as young as the index is read at each look until the clock's second is over, and the index written: these are old."""


class GitStatusParameters(Parameters, frozen=True):
    """`files` are those of the tree; git looks at it `loops` times."""

    files: Count = 1200
    loops: Count = 20


class GitStatus(Benchmark[GitStatusParameters]):
    name = "git-status"
    summary = "Time of git status in an unchanged tree: lstat, getdents, path lookup, exec"
    packages = ("git",)
    label_formats = {"files": "{}f", "loops": "{}x"}
    declared_metrics = with_aspect(
        "operation-time", Metric("time", "ms", "lower", "One git status.", "mean"), derived="wall time / loops"
    )
    needs_scratch = True

    def service(self, parameters: GitStatusParameters) -> Service:
        start = need(("git",), self.packages) + TREE.format(files=parameters.files)
        return Service(name=f"tree-{parameters.files}", start=start, seconds=5.0, scratch=True)

    def script(self, parameters: GitStatusParameters) -> str:
        look = "git status --porcelain"
        return (
            'cd "$KDUEL_SERVICE/tree"\n'
            f"for _ in $(seq 3); do {look}; done\n"
            + measure_time(f"for _ in $(seq {parameters.loops}); do {look}; done\n")
            + 'echo "files: $(git ls-files | wc -l)"\n'
        )

    def seconds(self, parameters: GitStatusParameters) -> float:
        return 1.0 + parameters.loops * (0.02 + parameters.files * 5e-6)

    def parse(self, raw: Raw, parameters: GitStatusParameters) -> dict[str, float]:
        expect(r"files: +(\S+)", raw.stdout, "the number of files", parameters.files)
        return {"time": read_seconds(raw.stdout) * 1000 / parameters.loops}


PLUGIN = GitStatus()
