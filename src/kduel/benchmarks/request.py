"""request: instructions of one request of an application, by kernel and user code (our krequest; machine icount)."""

import re
from statistics import fmean, median
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.git_status import PLUGIN as GIT
from kduel.benchmarks.kbench import check_line, read_lines
from kduel.benchmarks.mariadb import CLIENT as MARIADB_CLIENT
from kduel.benchmarks.mariadb import PLUGIN as MARIADB
from kduel.benchmarks.memcached import PLUGIN as MEMCACHED
from kduel.benchmarks.memcached import PORT as MEMCACHED_PORT
from kduel.benchmarks.nginx import PLUGIN as NGINX
from kduel.benchmarks.nginx import PORT as NGINX_PORT
from kduel.benchmarks.pgbench import CLIENT, FIND
from kduel.benchmarks.pgbench import PLUGIN as POSTGRES
from kduel.benchmarks.redis import PLUGIN as REDIS
from kduel.benchmarks.redis import PORT as REDIS_PORT
from kduel.benchmarks.sqlite import PLUGIN as SQLITE
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import label_of
from kduel.benchmarks.support.reading import Natural, read_json
from kduel.benchmarks.support.service import need
from kduel.core.experiment import Metric
from kduel.core.samples import Details

PROGRAM = "krequest"
SHARES = "shares"
"""The trial's file in which the plug-in leaves what each request took: a line of JSON for each step and condition."""
CLOCK = 64
"""Instructions by which the guest's clock and the plug-in may differ in a request: reading the clock, and the markers."""


class Application(Struct, frozen=True, kw_only=True):
    """One kind of request: who answers it, and what is sent."""

    about: str
    to: str
    """krequest's options."""
    send: str = ""
    """The request; empty where it is a run of the command."""
    before: str = ""
    """Shell lines."""
    packages: tuple[str, ...]
    service: Service | None = None
    count: int = 40
    """Requests under each condition."""


Name = Literal[
    "redis-get", "redis-set", "nginx-kept", "nginx-new", "sqlite-commit", "postgres-select", "git-status", "memcached-get",
    "mariadb-select",
]  # fmt: skip
"""Their order is that of the plug-in's regions: a new one comes last."""


def in_memory(service: Service) -> Service:
    """A service whose files are in memory: the machine icount has no disk."""
    return structs.replace(service, scratch=False)


AT_ONCE = "stdbuf -o0"
"""Starts a program that writes its answers at once, to a pipe as well."""


def of_redis(about: str, *words: str, before: str = "") -> Application:
    send = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    service = REDIS.service(REDIS.Parameters())
    to = f"--port {REDIS_PORT}"
    return Application(about=about, to=to, send=send, before=before, packages=REDIS.packages, service=service)


def of_nginx(about: str, connection: str, to: str = "") -> Application:
    """A GET of nginx's file."""
    send = f"GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n"
    service = NGINX.service(NGINX.Parameters())
    to += f"--port {NGINX_PORT}"
    return Application(about=about, to=to, send=send, packages=NGINX.packages, service=service)


TABLE = "PRAGMA journal_mode = delete; CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);"
APPLICATIONS: dict[Name, Application] = {
    "redis-get": of_redis(
        "GET of a value of 64 bytes, over loopback TCP",
        *("GET", "key"),
        before=f"redis-cli -p {REDIS_PORT} set key {'x' * 64} >/dev/null\n",
    ),
    "redis-set": of_redis("SET of a value of 64 bytes, over loopback TCP", "SET", "other", "x" * 64),
    "nginx-kept": of_nginx("GET of a file of 1 KiB on a kept connection, over loopback TCP", "keep-alive"),
    "nginx-new": of_nginx(
        "connection, GET of a file of 1 KiB, end of the connection, over loopback TCP", "close", "--new "
    ),
    "sqlite-commit": Application(
        about="row committed to a file in memory, with a rollback journal",
        to=f'--command "{AT_ONCE} sqlite3 -batch base"',
        send="INSERT INTO t (a, b) VALUES (7919, 'a row'); SELECT 1;\n",
        before=need(("sqlite3",), SQLITE.packages) + f"sqlite3 base '{TABLE}' >/dev/null\n",
        packages=SQLITE.packages,
    ),
    "postgres-select": Application(
        about="SELECT of a row by its key, over a local socket",
        to=f'--command "{AT_ONCE} $bin/psql {CLIENT.replace(chr(34), "")} -Atq"',
        send="SELECT abalance FROM pgbench_accounts WHERE aid = 4711;\n",
        before=FIND,
        packages=POSTGRES.packages,
        service=in_memory(POSTGRES.service(POSTGRES.Parameters())),
    ),
    "git-status": Application(
        about="git status in an unchanged tree of 100 files, from its start to its end",
        to='--command "git status --porcelain"',
        before='cd "$KDUEL_SERVICE/tree"\n',
        packages=GIT.packages,
        service=in_memory(GIT.service(GIT.Parameters(files=100))),
        count=10,
    ),
    "memcached-get": Application(
        about="get of a value of 64 bytes, over loopback TCP",
        to=f"--port {MEMCACHED_PORT}",
        send="get key\r\n",
        before=f"printf {'x' * 64} >key\nmemccp --servers=127.0.0.1:{MEMCACHED_PORT} key\n",
        packages=MEMCACHED.packages,
        service=MEMCACHED.service(MEMCACHED.Parameters()),
    ),
    "mariadb-select": Application(
        about="SELECT of a row by its key, over a local socket",
        to=f'--command "{MARIADB_CLIENT.replace(chr(34), "")} -n sbtest"',
        send="SELECT k FROM sbtest1 WHERE id = 4711;\n",
        packages=MARIADB.packages,
        service=in_memory(MARIADB.service(MARIADB.Parameters())),
    ),
}


def region_of(application: Name) -> int:
    return 1 + list(APPLICATIONS).index(application)


class RequestParameters(Parameters, frozen=True):
    """A request, made `count` times under each of so many `conditions` of the client, drawn from the run's seed (0: once, as it
    comes); `count` 0: the application's own."""

    application: Name
    count: Annotated[int, Meta(ge=0, le=20_000)] = 0
    conditions: Annotated[int, Meta(ge=0, le=1000)] = 5


class Shares(Struct, frozen=True):
    """The plug-in's line: instructions of user code and of the kernel, for each request."""

    region: Natural
    operations: list[tuple[Natural, Natural]]


class Visit(Struct, frozen=True):
    """A condition, with the instructions of each operation."""

    condition: str
    user: list[float]
    kernel: list[float]


class Request(Benchmark[RequestParameters]):
    """Client and server on one CPU, over loopback: all that the machine does from a request until its answer."""

    name = "request"
    summary = (
        "Kernel and user instructions of one request of Redis, memcached, nginx, SQLite, PostgreSQL, MariaDB or git "
        "(our krequest; machine icount)"
    )
    programs = (PROGRAM,)
    counts = True
    trial_files = (SHARES,)
    declared_metrics = with_aspect(
        "path-length",
        Metric("instructions", "instructions", "lower", "The kernel's, for the usual request.", "median"),
        Metric(
            "instructions-mean", "instructions", "lower", "The kernel's, on average: interrupts included.", "mean"
        ),
        Metric(
            "instructions-user", "instructions", "lower", "Of client and server, for the usual request.", "median"
        ),
        derived="of each request / its operations; median over conditions",
    )

    def label(self, parameters: RequestParameters) -> str:
        return label_of("{application}", parameters, count="{}x", conditions="{}conditions")

    def packages_for(self, parameters: RequestParameters) -> tuple[str, ...]:
        return APPLICATIONS[parameters.application].packages

    def service(self, parameters: RequestParameters) -> Service | None:
        return APPLICATIONS[parameters.application].service

    def script(self, parameters: RequestParameters) -> str:
        one = APPLICATIONS[parameters.application]
        words = [f"--conditions {parameters.conditions or 1}", '--seed "${KDUEL_SEED:-0}"']
        words += [f"--region {region_of(parameters.application)}", f"--count {parameters.count or one.count}"]
        lines = one.before
        if one.send:
            request = re.sub(r"[^\w /:.,]", lambda found: f"\\{ord(found[0]):03o}", one.send)
            lines += f"printf '{request}' >request\n"
            words += ["--send request"]
        return lines + f'"$KDUEL_PROGRAMS/{PROGRAM}" {" ".join([*words, one.to])}\n'

    def seconds(self, parameters: RequestParameters) -> float:
        return 1.0 + 2.0 * (parameters.conditions or 1)

    def parse(self, raw: Raw, parameters: RequestParameters) -> dict[str, float]:
        visits = read_visits(raw, parameters)
        return {
            "instructions": median(median(one.kernel) for one in visits),
            "instructions-mean": median(fmean(one.kernel) for one in visits),
            "instructions-user": median(median(one.user) for one in visits),
        }

    def details(self, raw: Raw, parameters: RequestParameters) -> Details:
        visits = read_visits(raw, parameters)
        values = {
            "instructions": {one.condition: median(one.kernel) for one in visits},
            "instructions-mean": {one.condition: fmean(one.kernel) for one in visits},
            "instructions-user": {one.condition: median(one.user) for one in visits},
        }
        return Details(conditions=values if parameters.conditions else {})


def read_visits(raw: Raw, parameters: RequestParameters) -> list[Visit]:
    """The program's lines with the plug-in's counts, by condition. Raises ParseError where they do not match."""
    lines = read_lines(raw.stdout)
    conditions = [line.condition for line in lines]
    if len(set(conditions)) != len(conditions) or len(conditions) != (parameters.conditions or 1):
        raise ParseError(f"it counted under {len(set(conditions))} conditions, not {parameters.conditions}")
    if SHARES not in raw.files:
        raise ParseError("nothing was counted: that takes the machine icount")
    region = region_of(parameters.application)
    counted = [read_json(line, Shares, "the plug-in's line") for line in raw.files[SHARES].splitlines()]
    of_region = [one.operations for one in counted if one.region == region]
    for line in lines:
        check_line(line)
    # Other steps are in the file, too: this one's counts are those of its clock, its conditions one after the other.
    fitting = [
        part
        for part in (of_region[at : at + len(lines)] for at in range(len(of_region) - len(lines) + 1))
        if all(fits(one, line.samples) for one, line in zip(part, lines, strict=True))
    ]
    if not fitting or any(part != fitting[0] for part in fitting):
        raise ParseError(f"the plug-in counted {len(fitting)} times what krequest's clock saw")
    found = []
    for line, pairs in zip(lines, fitting[0], strict=True):
        user, kernel = ([pair[which] / line.hops for pair in pairs] for which in (0, 1))
        found.append(Visit(str(line.condition or ""), user, kernel))
    return found


def fits(counted: list[tuple[int, int]], samples: list[float]) -> bool:
    """True if these are counts of the same requests."""
    return len(counted) == len(samples) and all(
        0 <= sum(pair) - sample <= CLOCK for pair, sample in zip(counted, samples, strict=True)
    )


PLUGIN = Request()
