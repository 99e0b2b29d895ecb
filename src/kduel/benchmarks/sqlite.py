"""sqlite: statements or commits a second of SQLite, in memory or on disk with fsync (the sqlite3 shell)."""

from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number
from kduel.benchmarks.support.reading import expect
from kduel.benchmarks.support.service import measure_time, need, read_seconds
from kduel.core.experiment import Metric

ROWS = {"memory": 100_000, "fsync": 200}
SQL = {
    "memory": """CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
    SELECT i, i * 7919 % 10007, printf('row %d', i) FROM n;
CREATE INDEX ta ON t (a);
UPDATE t SET b = b || a WHERE a % 10 = 0;
.output /dev/null
SELECT a, count(*), max(b) FROM t GROUP BY a;
.output stdout
""",
    "fsync": """.output /dev/null
PRAGMA journal_mode = {journal};
PRAGMA synchronous = FULL;
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
.output stdout
""",
}


class SqliteParameters(Parameters, frozen=True):
    """`rows` 0: 100,000 in memory, 200 with fsync, each a transaction of its own."""

    kind: Literal["memory", "fsync"] = "memory"
    journal: Literal["delete", "wal"] = "wal"
    rows: Number = 0


class Sqlite(Benchmark[SqliteParameters]):
    """One process. In memory the kernel has little to do; with fsync, file system and disk do nearly all."""

    name = "sqlite"
    summary = "Rows a second of SQLite: in memory (user space, page faults), or each committed to disk (fsync, file system, block layer)"
    packages = ("sqlite3",)
    label_template = "sqlite-{kind}"
    label_formats = {"rows": "{}x", "journal": "{}"}
    needs_scratch = True

    def metrics(self, parameters: SqliteParameters) -> tuple[Metric, ...]:
        about = "Rows committed one by one." if parameters.kind == "fsync" else "Rows inserted, indexed and grouped."
        rate = Metric("rows-per-second", "1/s", "higher", about, "mean")
        return with_aspect("throughput", rate, derived="rows / wall time")

    def rows(self, parameters: SqliteParameters) -> int:
        return parameters.rows or ROWS[parameters.kind]

    def script(self, parameters: SqliteParameters) -> str:
        p, rows = parameters, self.rows(parameters)
        sql = SQL[p.kind].format(rows=rows, journal=p.journal)
        commits = f"seq {rows} | sed \"s/.*/INSERT INTO t VALUES (&, & * 7919 % 10007, 'row &');/\" >>sql\n"
        place = '"$KDUEL_SCRATCH/base"' if p.kind == "fsync" else ":memory:"
        return (
            need(("sqlite3",), self.packages)
            + f"cat >sql <<'EOF'\n{sql}EOF\n"
            + (commits if p.kind == "fsync" else "")
            + "echo \"SELECT 'rows: ' || count(*) FROM t;\" >>sql\n"
            + measure_time(f"sqlite3 -batch {place} <sql\n")
        )

    def seconds(self, parameters: SqliteParameters) -> float:
        return 0.5 + self.rows(parameters) * (2e-5 if parameters.kind == "memory" else 0.02)

    def parse(self, raw: Raw, parameters: SqliteParameters) -> dict[str, float]:
        rows = self.rows(parameters)
        expect(r"rows: (\S+)", raw.stdout, "the number of rows", rows)
        return {"rows-per-second": rows / read_seconds(raw.stdout)}


PLUGIN = Sqlite()
