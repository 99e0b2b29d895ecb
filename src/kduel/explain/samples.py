"""Reads the output of `perf script` for a sampled step: call chains with the CPU time, or cycles, that was spent in each.

A sample is one block of lines, the innermost function first:

    17458    1001001 cpu-clock:
        ffffffff816b8b4a
        ffffffff81734491

Process id, period, event, then addresses. Functions are named by the kernel's own symbols of the same boot.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kduel.core.untrusted import MOST_TEXT, MalformedError, read_bytes
from kduel.explain import profile
from kduel.explain.symbols import Symbols

PROFILER = "profiler"
SAMPLED_CONTEXTS = {
    **profile.CONTEXTS,
    profile.OPERATION: "what the kernel did in processes",
    profile.USER: "programs' own code",
    profile.IDLE: "CPUs without work: waiting, sleeping",
    PROFILER: "perf itself",
}
"""Contexts of a sampled step. Unlike in a count, copying and clearing memory belongs to the operation."""
CLOCK = "cpu-clock"
"""The event where the machine counts no cycles. It samples idle CPUs too, and its periods are nanoseconds."""
MOST_UNPACKED = 256 << 20
"""Bytes of unpacked text of one file."""
MOST_SYMBOLS = 32 << 20
"""Bytes of kallsyms, which becomes a table of many times its size; a distribution's kernel with its modules has a few MB."""
DEEPEST = 128
"""Functions of a call chain; perf itself records at most 127."""
_HEAD = re.compile(r"^\s*(-?\d{1,10})\s+(\d{1,18})\s+([\w./=-]{1,60})(?::[a-zA-Z]{0,8})?:\s*$")
_LINE = re.compile(r"[^\n]+")
_FRAME = re.compile(r"^\s+([0-9a-f]{1,16})\s*$")


class SampledProfile(Struct, frozen=True, kw_only=True):
    event: str
    """`cycles` or `cpu-clock`."""
    stacks: dict[profile.Stack, int]
    """(context, outermost function, ..., innermost) to its weight: the sum of the samples' periods."""
    samples: int
    known: frozenset[str]
    """All functions that the kernel has."""

    @property
    def weight(self) -> int:
        return sum(self.stacks.values())


def read_samples(step: Path, profiler: int) -> SampledProfile:
    """The samples in a step's directory. `profiler` is perf's own process id. Raises MalformedError, OSError, InputError."""
    symbols = Symbols.from_kallsyms(unpack_gzip(step / "kallsyms.gz", MOST_SYMBOLS))
    return name_samples(unpack_gzip(step / "samples.gz"), symbols, profiler)


def unpack_gzip(path: Path, most: int | None = None) -> str:
    """The text of a gzip file, bounded before and after it is unpacked. Raises MalformedError, OSError."""
    most = most or MOST_UNPACKED
    try:
        stream = zlib.decompressobj(31)
        data = stream.decompress(read_bytes(path, MOST_TEXT), most)
    except zlib.error as error:
        raise MalformedError(f"{path.name} is no gzip file: {error}") from error
    if not stream.eof:
        raise MalformedError(f"{path.name} is cut short, or has more than {most:,} bytes")
    return data.decode("utf-8", errors="replace")


def name_samples(text: str, symbols: Symbols, profiler: int) -> SampledProfile:
    """The output of perf script with names. Raises MalformedError where it is not that, or is of several events."""
    lowest = next((address for address in symbols.addresses if address), 0)
    stacks: dict[profile.Stack, int] = defaultdict(int)
    events = set()
    count = 0
    for process, period, event, addresses in split_samples(text):
        kernel = []
        for address in addresses:
            if address < lowest:
                break
            kernel.append(address)
        # The innermost address is where the CPU was; the others are return addresses, just behind a call.
        names = [symbols.function(address - (place > 0)) for place, address in enumerate(kernel)][::-1]
        events.add(event)
        count += 1
        if process == profiler:
            stacks[PROFILER, "(perf)"] += period
        elif not names:
            stacks[profile.USER, profile.USER_FUNCTION] += period
        else:
            stacks[context_of(names, process), *names] += period
    if not count:
        raise MalformedError("perf recorded no samples")
    if not any(stacks.values()):
        raise MalformedError("no sample of perf has a period")
    if len(events) > 1:
        raise MalformedError(f"the samples are of several events: {', '.join(sorted(events))}")
    return SampledProfile(event=events.pop(), stacks=dict(stacks), samples=count, known=frozenset(symbols.names))


def context_of(names: list[str], process: int) -> str:
    """Context that a call chain belongs to, outermost function first."""
    found = {profile.own_context(name) for name in names}
    if profile.INTERRUPT in found:
        return profile.INTERRUPT
    if process == 0:
        return profile.IDLE
    return profile.THREAD if profile.THREAD in found else profile.OPERATION


def split_samples(text: str) -> Iterator[tuple[int, int, str, list[int]]]:
    """Process id, period, event and addresses of each sample. Raises MalformedError for a line that belongs to none."""
    head: tuple[int, int, str] | None = None
    addresses: list[int] = []
    for number, found in enumerate(_LINE.finditer(text), 1):  # A list of lines could take many times the text.
        line = found[0]
        if match := _HEAD.match(line):
            if head is not None:
                yield *head, addresses
            head, addresses = (int(match[1]), int(match[2]), match[3]), []
        elif match := _FRAME.match(line):
            if head is None:
                raise MalformedError(f"line {number} of perf's samples belongs to no sample")
            if len(addresses) < DEEPEST:
                addresses.append(int(match[1], 16))
        elif line.strip():
            raise MalformedError(
                f"line {number} of perf's samples is none that perf script prints: {line.strip()[:60]!r}"
            )
    if head is not None:
        yield *head, addresses
