"""The messages by which kernels report trouble, from 2.4 to 6.19 and over the architectures: what ends a boot
(SIGNS), and after what a kernel goes on (REPORTS); not a program's fault (`traps: prog[123] ...`, `segfault at`)."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

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

OOPS = Sign(
    "oops",
    _any(
        # Every architecture numbers its oopses: `Oops: 0002 [#1]`, `int3: 0000 [#1]`, `Oops - illegal instruction [#1]`,
        # `Kernel bug detected[#1]:`.
        r"\S ?\[#\d{1,4}\](?:[ :]|$)",
        r"\bOops(?:: | - | \d)",
        r"\bBUG: (?:unable to handle |Unable to handle |kernel NULL )",
        r"\bBUG: (?:\w+ )?stack guard page was hit",
        r"[Uu]nable to handle kernel ",
        r"[Kk]ernel BUG (?:at|in) ",
        # Before 2.6, exceptions of x86 had no number.
        r"\b(?:divide error|int3|overflow|bounds|invalid operand|invalid opcode|double fault|invalid TSS|segment not present"
        r"|stack segment|general protection fault|alignment check): [0-9a-f]{4}\s*$",
        # Of programs it is `general protection ip:` and `general protection fault ip:`.
        r"general protection fault(?:: |, )",
        r"\bPANIC: (?:double fault|early exception)",
    ),
    "had a kernel oops",
)
LOCKUPS = (
    Sign(
        "hard-lockup",
        _any(r"[Hh]ard LOCKUP", r"(?i:watchdog detected lockup on)"),
        "had a CPU that took no interrupts",
    ),
    Sign(
        "soft-lockup",
        _any(
            r"BUG: soft lockup",
            r"\brcu_\w+ (?:self-)?detected (?:expedited )?stalls?\b",
            r"\bRCU detected CPU (?:\d+ )?stalls?\b",
            r"\brcu_\w+ kthread starved for \d+ jiffies",
        ),
        "had a CPU locked up",
    ),
    Sign("workqueue-lockup", _any(r"BUG: workqueue lockup"), "had a workqueue that made no progress"),
    Sign(
        "hang",
        _any(r"INFO: task .{1,80}:\d+ (?:is )?blocked (?:in I/O wait )?for more than \d+ seconds"),
        "had a task that hung",
    ),
)
OURS = (
    Sign("boot-failed", _any(r"kduel: cannot boot: "), "could not reach its script"),
    Sign("setup-failed", _any(r"kduel: setup failed"), "could not carry out the setup lines"),
)

REPORTS = (
    Sign("kasan", _any(r"\bBUG: KAS[Aa][Nn]: ", r"\bKASAN: (?:null-ptr-deref|probably|maybe) ")),
    Sign("kfence", _any(r"\bBUG: KFENCE: ")),
    Sign("kcsan", _any(r"\bBUG: KCSAN: ")),
    Sign("kmsan", _any(r"\bBUG: KMSAN: ")),
    Sign("ubsan", _any(r"\bUBSAN: ")),
    Sign("kmemleak", _any(r"\bkmemleak: \d+ new suspected memory leaks")),
    Sign(
        "lockdep",
        _any(
            r"possible (?:circular|recursive) locking",
            r"possible irq lock inversion",
            r"possible reason: unannotated irqs",
            r"inconsistent lock state",
            r"bad (?:unlock balance|contention) detected",
            r"held lock freed!",
            r"lock held (?:when returning to user space|at task exit time)",
            r"still has locks held!",
            r"[Ss]uspicious (?:RCU|rcu_dereference_check\(\)) usage",
            r"\w+-unsafe lock order detected",
            r"Invalid wait context",
            r"BUG: MAX_(?:LOCK\w*|STACK_TRACE_ENTRIES) too low",
        ),
    ),
    Sign("spinlock", _any(r"\bBUG: (?:spinlock|rwlock)[ -](?!$)")),
    Sign("bad-page", _any(r"\bBad page (?:state|map) ", r"\bbad p[4gmu]d [0-9a-f]{4,}")),
    Sign(
        "bad-rss", _any(r"\bBUG: Bad rss-counter state", r"\bBUG: non-zero (?:nr_p\w+|pgtables_bytes) on freeing mm")
    ),
    Sign("cfi", _any(r"\bCFI failure ")),
    Sign(
        "slab",
        _any(
            r"\bBUG [\w.:-]+(?: \([^)]*\))?: (?:.*(?:overwritten|corrupt)|Object already free|Invalid object|Wrong object)",
            r"\bslab error in ",
            r"\bSlab corruption",
        ),
    ),
    Sign("corruption", _any(r"\blist_(?:add|del) corruption", r"\brefcount_t: ")),
    Sign(
        "atomic",
        _any(
            r"scheduling while atomic",
            r"sleeping function called from (?:invalid|illegal) context",
            r"using (?:smp_processor_id|__this_cpu_\w+)\(\) in preemptible",
            r"do not call blocking ops when !TASK_RUNNING",
        ),
    ),
    Sign(
        "allocation-failure",
        _any(r"\bpage allocation (?:failure|stalls)", r"__alloc_pages: \d+-order allocation failed"),
    ),
    Sign("interrupt", _any(r"\birq \d+: nobody cared")),
    Sign("hardware-error", _any(r"\[Hardware Error\]: ", r"\bmce: .*Machine [Cc]heck")),
    Sign(
        "warning",
        _any(
            r"\bWARNING: CPU: \d+ PID: \d+ at ",  # 3.11 to 6.18
            r"\bWARNING: (?:\[.*\] )?[\w./-]+\.[chSs](?:rs)?:\d+ at ",  # since 6.19
            r"\bWARNING: at \S+:\d+",  # 2.6.20 to 3.10
            r"\bBadness (?:in|at) \S+",  # before
        ),
    ),
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
