"""The messages by which kernels report trouble, from 2.4 to 6.19 and over the architectures: what ends a boot
(SIGNS), and after what a kernel goes on (REPORTS); not a program's fault (`traps: prog[123] ...`, `segfault at`)."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kduel.core.toml import table_beside

OWN_VICTIM = "kmem"
"""The program of the benchmark `memory`, which takes memory until the kernel kills it: that kill is no trouble."""


class Sign(Struct, frozen=True):
    """A trouble's name, how a kernel reports it, and a predicate for a sentence about the guest."""

    name: str
    pattern: re.Pattern[str]
    words: str = ""

    def first(self, console: Sequence[str]) -> int | None:
        return next((index for index, line in enumerate(console) if self.pattern.search(line)), None)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


PANIC = re.compile(r"Kernel panic(?: - not syncing|: )(?P<reason>.*)")
PANIC_REASONS = (
    ("out-of-memory", _any("Out of memory", "deadlocked on memory")),
    ("hard-lockup", re.compile("hard ?lockup|detected lockup", re.IGNORECASE)),
    ("soft-lockup", _any("softlockup", "soft lockup", "RCU [Ss]tall")),
    ("hang", _any("hung_task")),
)
"""Reasons for which a kernel that is set so panics, though the trouble is another."""

(OOPS,), LOCKUPS, REPORTS, OURS = (
    tuple(Sign(row["name"], _any(*row["patterns"]), row.get("words", "")) for row in rows)
    for rows in table_beside(__file__).values()
)


_OOM_CALLED = re.compile(r"\binvoked oom-killer: |\bVM: killing process ")
_OOM_KILL = re.compile(r"\b(?:[Kk]illed|Kill|kill) process \d+,? \((?P<victim>[^)]*)\)")
_OOM = re.compile(r"\bOut of [Mm]emory|\bout of memory|\boom[-_]kill|oom-killer")


def out_of_memory(console: Sequence[str]) -> Iterator[int]:
    """Lines about kills for lack of memory, except of our own program: kills first, then calls of the killer."""
    calls: list[int] = []
    called: int | None = None
    for index, line in enumerate(console):
        if kill := _OOM_KILL.search(line):
            if kill["victim"] != OWN_VICTIM and (called is not None or _OOM.search(line)):
                yield index
            called = None
        elif _OOM_CALLED.search(line):
            if called is not None:
                calls.append(called)
            called = index
    yield from [*calls, *([called] if called is not None else [])]


def killed_init(console: Sequence[str]) -> bool:
    """True if the first process was killed for want of memory, after which a kernel panics."""
    return any(re.search(r"[Kk]ill(?:ed)? process 1 \(", console[index]) for index in out_of_memory(console))
