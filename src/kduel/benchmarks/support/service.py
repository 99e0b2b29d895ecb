"""Services: servers, or data, that several steps of a trial share; the room that a script takes, and its time."""

import shlex
import zlib
from collections.abc import Sequence

from msgspec import Struct, structs

from kduel.benchmarks.support.reading import check_positive, find_whole


class Service(Struct, frozen=True, kw_only=True):
    """It lives from the first step that uses it to the last one; steps whose services are equal share one. Processes
    with a file *.pid in its directory, $KDUEL_SERVICE, must be alive around each step, and end with it."""

    name: str
    """As LABEL; services that differ have different names."""
    start: str
    """POSIX shell lines, run by `sh -e` in $KDUEL_SERVICE, that end with 0 when all is ready."""
    stop: str = ""
    """Shell lines that take back what is not a process, such as a network namespace."""
    seconds: float = 10.0
    """About how long it takes to start, for the timeout."""
    scratch: bool = False
    """Whether $KDUEL_SERVICE lies on the scratch disk; in a guest it is in memory otherwise."""

    @property
    def timeout(self) -> float:
        """Seconds after which its start is hung rather than slow."""
        return 60.0 + 10.0 * self.seconds


def server(
    name: str,
    command: str,
    *,
    ready: str,
    before: str = "",
    after: str = "",
    seconds: float = 5.0,
    scratch: bool = False,
) -> Service:
    """A service whose server is one command in the foreground, ready when the shell line `ready` succeeds; `before`
    and `after` are shell lines. It fails with the last lines of the log where the server ends early."""
    ended = shlex.quote(f"the server of {name} ended before it was ready:")
    start = (
        f"{before}{command} >log 2>&1 </dev/null &\n"
        "echo $! >server.pid\n"
        f"until {ready} >/dev/null 2>&1; do\n"
        f"    kill -0 $! 2>/dev/null || {{ echo {ended} >&2; tail -n 4 log >&2; exit 1; }}\n"
        "    sleep 0.1\n"
        f"done\n{after}"
    )
    return Service(name=name, start=start, seconds=seconds, scratch=scratch)


def on_peer(service: Service) -> Service:
    """The service on the peer. Where the study declares that the peer's servers run, nothing is started there."""
    place = f"/tmp/kduel-{service.name}"
    declared = '[ -z "${KDUEL_PEER_RUNS-}" ] || exit 0'
    start = f"rm -rf {place}\nmkdir {place}\ncd {place}\n{service.start.strip()}"
    stop = f"kill $(cat {place}/*.pid) || :\nrm -rf {place}\n{service.stop.strip()}"

    def send_script(script: str) -> str:
        return f"{declared}\npeer >&2 <<'KDUEL_ON_PEER'\n{script.strip()}\nKDUEL_ON_PEER\n"

    return structs.replace(service, start=send_script(start), stop=send_script(stop))


def run_on_peer(lines: str) -> str:
    """Shell that runs the lines on the peer; $KDUEL_ADDRESS is filled in here."""
    return f"peer <<KDUEL_CLIENT\n{lines}KDUEL_CLIENT\n"


def port_of(name: str, usual: str, port: int) -> int:
    """The port of the server `name`, below those that clients get; `port` for the one called `usual`."""
    return port if name == usual else port + 1 + zlib.crc32(name.encode()) % 20_000


def need(programs: Sequence[str], packages: Sequence[str]) -> str:
    """Shell that ends with 127 and says what to install where a program is missing (on a real machine)."""
    named = " ".join(packages)
    return "".join(
        f'command -v "{program}" >/dev/null || '
        f'{{ echo "{program} is not installed on this machine; in Debian: apt install {named}" >&2; exit 127; }}\n'
        for program in programs
    )


class Room(Struct, frozen=True, kw_only=True):
    """MiB that a script takes at least; 0 where that is little."""

    memory: float = 0
    scratch: float = 0
    """Of the scratch disk."""
    keys: str = "size"
    """The parameters that determine it, in words."""


def measure_time(lines: str) -> str:
    """Shell lines with their wall time, printed in nanoseconds; date(1) of coreutils takes a millisecond or two of it."""
    return f'kduel_from=$(date +%s%N)\n{lines}echo "kduel: $(($(date +%s%N) - kduel_from)) ns"\n'


def read_seconds(text: str) -> float:
    """Seconds, from what `measure_time` printed. Raises ParseError."""
    return check_positive(find_whole(r"kduel: (\S+) ns", text, "the time taken") / 1e9, "the time taken")
