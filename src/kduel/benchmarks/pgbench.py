"""pgbench: transactions a second and their latency of PostgreSQL over a local socket."""

from collections import Counter
from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support import reading
from kduel.benchmarks.support.metrics import latencies, with_aspect
from kduel.benchmarks.support.parameters import Number
from kduel.benchmarks.support.service import need, server
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

SETTINGS = {
    "listen_addresses": "''", "shared_buffers": "64MB", "jit": "off", "huge_pages": "off", "autovacuum": "off",
    "checkpoint_timeout": "1d", "max_wal_size": "4GB", "bgwriter_lru_maxpages": "0", "log_checkpoints": "off",
}  # fmt: skip
"""Nothing happens in the background of a measurement."""
FIND = "for bin in /usr/lib/postgresql/*/bin; do :; done\n"
"""Shell: the programs of the newest version, which Debian keeps out of the path, are in $bin."""
CLIENT = '-h "$KDUEL_SERVICE" -U postgres'
AS_POSTGRES = "setpriv --reuid=postgres --regid=postgres --clear-groups"
LOG = "transactions.log"


class PgbenchParameters(Parameters, frozen=True):
    """pgbench's own. `transactions` are each client's; 0: 1,000 that only read, 200 that write."""

    kind: Literal["read-only", "read-write"] = "read-only"
    scale: Annotated[int, Meta(ge=1, le=1000)] = 1
    clients: Annotated[int, Meta(ge=1, le=500)] = 2
    transactions: Number = 0


class Pgbench(Benchmark[PgbenchParameters]):
    """The cluster is on the scratch disk and commits with fsync; statements are prepared, LLVM is not used."""

    name = "pgbench"
    summary = (
        "Transactions a second and latency of PostgreSQL (pgbench): unix sockets, wake-ups, shared memory, fsync"
    )
    packages = ("postgresql",)
    distributions = ("latency",)
    label_template = "pgbench-{kind}"
    label_formats = {"scale": "s{}", "clients": "{}c", "transactions": "{}x"}
    needs_scratch = True
    declared_metrics = (
        *with_aspect(
            "throughput", Metric("transactions-per-second", "1/s", "higher", "All clients together.", "mean")
        ),
        *latencies("ms", "transactions", "p50", "p99"),
    )

    def service(self, parameters: PgbenchParameters) -> Service:
        settings = "\n".join(f"{key} = {value}" for key, value in SETTINGS.items())
        before = (
            FIND
            + need(("$bin/initdb", "$bin/pgbench", "setpriv"), (*self.packages, "util-linux"))
            + "chown postgres .\n"
            + f'{AS_POSTGRES} "$bin/initdb" -D "$PWD/data" -A trust --no-sync --no-instructions --locale=C -E UTF8 >/dev/null\n'
            + f"cat >>data/postgresql.conf <<'EOF'\n{settings}\nEOF\n"
        )
        after = (
            f'"$bin/pgbench" {CLIENT} -i -q -s {parameters.scale} postgres 2>/dev/null\n'
            f'"$bin/psql" {CLIENT} -q -c "VACUUM ANALYZE" -c CHECKPOINT postgres\nsync\n'
        )
        return server(
            f"postgres-s{parameters.scale}", f'{AS_POSTGRES} "$bin/postgres" -D "$PWD/data" -k "$PWD"',
            ready=f'"$bin/pg_isready" -q {CLIENT}', before=before, after=after, seconds=25.0 + parameters.scale,
            scratch=True,
        )  # fmt: skip

    def transactions(self, parameters: PgbenchParameters) -> int:
        return parameters.transactions or (1000 if parameters.kind == "read-only" else 200)

    def script(self, parameters: PgbenchParameters) -> str:
        p = parameters
        count = self.transactions(p)
        only = "-S " if p.kind == "read-only" else ""
        client = f'"$bin/pgbench" {CLIENT} -n -M prepared -c {p.clients} -j 1 --random-seed=7 {only}'
        return (
            f'{FIND}"$bin/psql" {CLIENT} -q -c CHECKPOINT postgres\n'
            f"{client}-t {max(1, count // 10)} postgres >/dev/null 2>&1\n"
            f"{client}-t {count} -l --log-prefix=log postgres\n"
            f'cat log.* >"$KDUEL_STEP/{LOG}"\n'
        )

    def seconds(self, parameters: PgbenchParameters) -> float:
        each = 0.002 if parameters.kind == "read-only" else 0.03
        return 1.0 + self.transactions(parameters) * parameters.clients * each

    def parse(self, raw: Raw, parameters: PgbenchParameters) -> dict[str, float]:
        p = parameters
        total = self.transactions(p) * p.clients
        reading.expect(r"scaling factor: (\S+)", raw.stdout, "the scale", p.scale)
        reading.expect(r"query mode: (\S+)", raw.stdout, "the query mode", "prepared")
        reading.expect(r"number of clients: (\S+)", raw.stdout, "the number of clients", p.clients)
        done = "number of transactions actually processed"
        reading.expect(rf"{done}: (\S+)", raw.stdout, f"the {done}", f"{total}/{total}")
        rate = reading.find_number(r"tps = (\S+) \(without initial connection time\)", raw.stdout, "the rate")
        times = self.read_times(raw, total)
        return {
            "transactions-per-second": reading.check_positive(rate, "the rate"),
            "latency-p50": reading.check_positive(
                reading.percentile_of(times, 500, "the latency p50"), "the latency p50"
            )
            / 1000,
            "latency-p99": reading.percentile_of(times, 990, "the latency p99") / 1000,
        }

    def read_times(self, raw: Raw, total: int) -> list[int]:
        """The microseconds that each of so many transactions took, in rising order. Raises ParseError."""
        rows = [line.split() for line in reading.split_lines(reading.read_file(raw, LOG), LOG)]
        if len(rows) != total or any(len(row) != 6 for row in rows):
            raise ParseError(f"{LOG} has not a line of six figures for each of {total} transactions")
        return sorted(reading.read_whole(row[2], "a transaction's time") for row in rows)

    def details(self, raw: Raw, parameters: PgbenchParameters) -> Details:
        times = self.read_times(raw, self.transactions(parameters) * parameters.clients)
        return Details(distributions={"latency-p99": Distribution.from_counts(Counter(times), "ms", 1000)})


PLUGIN = Pgbench()
