"""mariadb: transactions a second and their latency of MariaDB, by sysbench over a local socket or from a peer."""

from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number
from kduel.benchmarks.support.reading import expect, find_number, find_whole
from kduel.benchmarks.support.service import need, port_of, run_on_peer, server
from kduel.core.experiment import Metric
from kduel.core.samples import Details

PORT, USUAL = 12390, "mariadb-10000-link"
SOCKET = '"$KDUEL_SERVICE/socket"'
CLIENT = f"mariadb --no-defaults -u bench -S {SOCKET} -N"
QUIET = "--innodb-stats-auto-recalc=OFF --innodb-buffer-pool-dump-at-shutdown=OFF --skip-name-resolve --max-connections=600 --loose-innodb-snapshot-isolation=OFF"
"""Nothing happens in the background of a measurement, and no transaction is repeated because another one changed a row that it read."""
TRANSACTIONS = r" *transactions: +{} +\({} per sec\.\)"


class MariadbParameters(Parameters, frozen=True):
    """sysbench's own; `transactions` are all clients' together; 0: 400 that only read, 80 that write."""

    kind: Literal["read-only", "read-write"] = "read-only"
    rows: Annotated[int, Meta(ge=1, le=10_000_000)] = 10_000
    clients: Annotated[int, Meta(ge=1, le=500)] = 2
    transactions: Number = 0
    path: Literal["loopback", "link"] = "loopback"
    """"link": sysbench runs on the peer, a second machine."""


class Mariadb(Benchmark[MariadbParameters]):
    """One table of InnoDB on the scratch disk; a transaction is sysbench's: 14 statements, or 18 that write too."""

    name = "mariadb"
    summary = "Transactions a second and latency of MariaDB, over a local socket or from a peer (sysbench oltp): threads, sockets, futexes, fsync"
    packages = ("mariadb-server-core", "mariadb-client-core", *sysbench.PACKAGES)
    label_template = "mariadb-{kind}"
    label_formats = {"rows": "{}rows", "clients": "{}c", "transactions": "{}x", "path": "{}"}
    needs_scratch = True
    declared_metrics = (
        *with_aspect(
            "throughput",
            Metric("transactions-per-second", "1/s", "higher", "All clients together.", "mean"),
            derived="transactions / total time",
        ),
        *with_aspect("request-latency", *sysbench.latency_metrics("transaction")),
    )

    def service(self, parameters: MariadbParameters) -> Service:
        p = parameters
        linked = p.path == "link"
        network = f"--port={find_port(p)} --bind-address=0.0.0.0" if linked else "--skip-networking"
        make = "mariadb-install-db --no-defaults --force --user=root --skip-test-db --auth-root-authentication-method=normal"
        commands = "CREATE USER bench; GRANT ALL ON *.* TO bench; CREATE DATABASE sbtest"
        return server(
            name_server(p),
            f'mariadbd --no-defaults --user=root --datadir="$PWD/data" --socket="$PWD/socket" --pid-file="$PWD/own" {network} {QUIET}',
            ready=f"mariadb --no-defaults -u root -S {SOCKET} -e 'SELECT 1'",
            before=need(("mariadbd", "mariadb-install-db", "mariadb", "sysbench"), self.packages)
            + f'{make} --datadir="$PWD/data" >install.log 2>&1 || {{ tail -n 4 install.log >&2; exit 1; }}\n',
            after=f"mariadb --no-defaults -u root -S {SOCKET} -e '{commands}'\n"
            f"{sysbench_command(p, f'--mysql-socket={SOCKET}')} prepare >/dev/null\nsync\n",
            seconds=30.0 + p.rows / 5000,
            scratch=True,
        )

    def transactions(self, parameters: MariadbParameters) -> int:
        return parameters.transactions or (400 if parameters.kind == "read-only" else 80)

    def script(self, parameters: MariadbParameters) -> str:
        p = parameters
        linked = p.path == "link"
        to = f"--mysql-host=$KDUEL_ADDRESS --mysql-port={find_port(p)}" if linked else f"--mysql-socket={SOCKET}"
        client = f"{sysbench_command(p, to)} --threads={p.clients} --rand-seed=7 --time=0"
        lines = f"{client} --events=20 run >/dev/null\n{client} --events={self.transactions(p)} run\n"
        return run_on_peer(lines) if linked else lines

    def seconds(self, parameters: MariadbParameters) -> float:
        return 1.0 + self.transactions(parameters) * (0.01 if parameters.kind == "read-only" else 0.06)

    def parse(self, raw: Raw, parameters: MariadbParameters) -> dict[str, float]:
        total = self.transactions(parameters)
        expect(TRANSACTIONS.format(r"(\S+)", r"\S+"), raw.stdout, "the number of transactions", total)
        expect(r" *total number of events: +(\S+)", raw.stdout, "the number of events", total)
        writes = find_whole(r" +write: +(\S+)", raw.stdout, "the number of statements that write")
        if (writes > 0) != (parameters.kind == "read-write"):
            raise ParseError(f"{writes} statements wrote, and the step is {parameters.kind}")
        values = sysbench.read_report(raw.stdout, parameters.clients)
        values["transactions-per-second"] = sysbench.compute_rate(
            total, read_printed_rate(raw), values, "transactions per second"
        )
        return {metric.name: values[metric.name] for metric in self.declared_metrics if metric.name in values}

    def details(self, raw: Raw, parameters: MariadbParameters) -> Details:
        return Details(printed={"transactions-per-second": read_printed_rate(raw)})


def name_server(parameters: MariadbParameters) -> str:
    """The server's name: steps with the same one share it."""
    return f"mariadb-{parameters.rows}" + ("-link" if parameters.path == "link" else "")


def find_port(parameters: MariadbParameters) -> int:
    """The server's port on the link; over its local socket it has none."""
    return port_of(name_server(parameters), USUAL, PORT)


def sysbench_command(parameters: MariadbParameters, to: str) -> str:
    """Shell words of sysbench, with the options `to` reach the server."""
    script = f"oltp_{parameters.kind.replace('-', '_')}"
    return f"sysbench {script} --db-driver=mysql {to} --mysql-user=bench --table-size={parameters.rows}"


def read_printed_rate(raw: Raw) -> float:
    """Transactions per second as sysbench prints them."""
    return find_number(TRANSACTIONS.format(r"\S+", r"(\S+)"), raw.stdout, "transactions per second")


PLUGIN = Mariadb()
