"""What became of a boot whose results are missing or not to be trusted: a name, and the console's lines that show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

LINES = 12
WIDTH = 200


class Diagnosis(Struct, frozen=True):
    """`void` as in Outcome; `message` a paragraph with the console's lines."""

    void: str
    message: str


_SIGNS: tuple[tuple[str, str, str], ...] = (
    # The first one that is found names the trouble: a cause stands before what it leads to.
    ("out-of-memory", r"Out of memory: Killed|System is deadlocked on memory|Out of memory and no killable", "ran out of memory"),
    ("oops", r"\b(?:Oops: |BUG: (?:unable|kernel) |[Uu]nable to handle kernel |Internal error: |general protection fault|kernel BUG at |invalid opcode: )", "had a kernel oops"),
    ("panic", r"Kernel panic - not syncing", "panicked"),
    ("soft-lockup", r"watchdog: BUG: soft lockup|rcu: INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stalls?", "had a CPU locked up"),
    ("hang", r"INFO: task \S+ blocked for more than \d+ seconds", "had a task that hung"),
    ("boot-failed", r"kduel: cannot boot: ", "could not reach its script"),
    ("setup-failed", r"kduel: setup failed", "could not carry out the setup lines"),
)  # fmt: skip


def diagnose(
    console: Sequence[str], *, ended: str, ready: bool, seconds: float, stderr: str = "", stuck: Sequence[str] = ()
) -> Diagnosis:
    """Why there are no results.

    `console` are its lines without the host's times; `ended` as in kduel.guest.launch.Run; `ready` whether the
    script began; `seconds` how long the machine ran; `stderr` what QEMU itself said; `stuck` as in Run.
    """
    for void, pattern, words in _SIGNS:
        for index, line in enumerate(console):
            if re.search(pattern, line):
                return Diagnosis(void, f"The guest {words}:\n{excerpt(console, index)}")
    if ended in HOST_ENDED:
        void, what = HOST_ENDED[ended]
        said = f" QEMU said: {stderr.strip()[:1000]}" if stderr.strip() else ""
        return Diagnosis(
            void,
            f"{what}{said}{last_step(console)} The guest's last lines:\n"
            f"{excerpt(console, max(0, len(console) - LINES))}",
        )
    tail = f"Its last lines:\n{excerpt(console, max(0, len(console) - LINES))}"
    where = last_step(console)
    froze = f" It was frozen: {'; '.join(stuck)}." if stuck else ""
    said = f"\nQEMU said: {stderr.strip()[:1000]}" if stderr.strip() else ""
    if not any(line.strip() for line in console):
        return Diagnosis(
            "no-console",
            f"Nothing came over the console in {seconds:.0f} s (it {_ENDED[ended]}). The kernel may lack a serial "
            f"console (CONFIG_SERIAL_8250_CONSOLE), or it does not boot on this machine at all.{froze}{said}",
        )
    if ended == "flood":
        return Diagnosis("flood", f"The guest sent more results than a trial may.{where} {tail}")
    if ended == "boot-deadline" or (ended == "deadline" and not ready):
        return Diagnosis("hang", f"The guest did not come to its script in {seconds:.0f} s. {tail}")
    if stuck:
        return Diagnosis("hang", f"The guest froze: {'; '.join(stuck)}.{where} {tail}")
    if ended == "deadline":
        return Diagnosis("deadline", f"The script was not done after {seconds:.0f} s.{where} {tail}")
    return Diagnosis("silent-exit", f"The guest went away without a word about why.{where} {tail}{said}")


HOST_ENDED = {
    "killed": (
        "qemu-killed",
        "The host ended QEMU by a signal, not the guest itself: the host ran out of memory (see its dmesg), somebody "
        "killed QEMU, or QEMU crashed or did what its sandbox forbids.",
    ),
    "failed": ("qemu-failed", "QEMU gave up with an error; the guest did not switch itself off."),
}
"""By how a run ended: what this host did to the guest, by its name and in words."""

_ENDED = {
    "off": "switched itself off",
    "boot-deadline": "was ended at the deadline for booting",
    "deadline": "was ended at the deadline",
    "flood": "was ended for sending too much",
    "lingered": "did not switch itself off",
}


def last_step(console: Sequence[str]) -> str:
    """Where the script was, as a sentence with a blank before it, or nothing."""
    for line in reversed(console):
        if match := re.search(r"kduel: step ([A-Za-z0-9._-]+)", line):
            return f" It was in step {match[1]}."
    return ""


def excerpt(console: Sequence[str], start: int) -> str:
    """Some lines of a console from `start`, cut to a size that can be shown, indented."""
    shown = [line.rstrip()[:WIDTH] for line in console[start : start + 3 * LINES] if line.strip()]
    return "\n".join(f"    {line}" for line in shown[:LINES])


def findings(console: Sequence[str]) -> dict[str, str]:
    """Signs of trouble in the console of a trial that brought its results home: name to the first line of each."""
    found: dict[str, str] = {}
    for void, pattern, _ in (*_SIGNS, ("warning", r"WARNING: CPU: \d+", "")):
        for line in console:
            if void not in found and re.search(pattern, line):
                found[void] = line.strip()[:WIDTH]
    return found
