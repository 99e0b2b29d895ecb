"""Diagnosis of a boot whose results are missing or not to be trusted: a name, and the console's lines that show it."""

import contextlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct

from kduel.core.untrusted import read
from kduel.guest.console import read_console
from kduel.guest.environment import environments_in
from kduel.guest.signs import LOCKUPS, OOPS, OURS, PANIC, PANIC_REASONS, REPORTS, Sign, killed_init, out_of_memory

LINES = 12
WIDTH = 200
MOST_LOG = 4 << 20
"""Bytes of the kernel's log as a script captured it."""
MOST_LINES = 50_000
"""Lines of a console that are searched, from either end."""
LONGEST = 500
"""Characters of a line that are searched."""
OUT_OF_MEMORY = "ran out of memory"


class Diagnosis(Struct, frozen=True):
    """`void` as in Outcome; `message` a paragraph with the console's lines."""

    void: str
    message: str


def diagnose(
    console: Sequence[str],
    *,
    ended: str,
    ready: bool,
    seconds: float,
    waited: float = 0.0,
    stderr: str = "",
    stuck: Sequence[str] = (),
) -> Diagnosis:
    """Find out why there are no results, from the lines of `console`; `ended` and `stuck` as in
    kduel.guest.launch.Run; `ready`: the script began; `seconds` as deadlines count, `waited` besides; `stderr` is
    QEMU's."""
    console = searched_lines(console)
    if told := find_kernel_report(console):
        return told
    if ended in HOST_ENDED:
        void, what = HOST_ENDED[ended]
        said = f" QEMU said: {stderr.strip()[:1000]}" if stderr.strip() else ""
        return Diagnosis(
            void,
            f"{what}{said}{last_step(console)} The guest's last lines:\n"
            f"{excerpt(console, max(0, len(console) - LINES))}",
        )
    lasted = f"{seconds:.0f} s"
    if waited >= 1:
        lasted += f" ({waited:.0f} s in which it waited for a CPU of this host do not count)"
    tail = f"Its last lines:\n{excerpt(console, max(0, len(console) - LINES))}"
    where = last_step(console)
    froze = f" It was frozen: {'; '.join(stuck)}." if stuck else ""
    said = f"\nQEMU said: {stderr.strip()[:1000]}" if stderr.strip() else ""
    if not any(line.strip() for line in console):
        return Diagnosis(
            "no-console",
            f"No console output in {lasted} (it {_ENDED[ended]}). The kernel may lack a serial "
            f"console (CONFIG_SERIAL_8250_CONSOLE), or it does not boot on this machine at all.{froze}{said}",
        )
    if ended == "flood":
        return Diagnosis("flood", f"The guest sent more results than a trial may.{where} {tail}")
    if ended == "boot-deadline" or (ended == "deadline" and not ready):
        return Diagnosis("hang", f"The guest did not reach its script in {lasted}.{froze} {tail}")
    if stuck:
        return Diagnosis("hang", f"The guest froze: {'; '.join(stuck)}.{where} {tail}")
    if ended == "deadline":
        return Diagnosis("deadline", f"The script was not done after {lasted}.{where} {tail}")
    return Diagnosis("silent-exit", f"The guest exited without an error message.{where} {tail}{said}")


def find_kernel_report(console: Sequence[str]) -> Diagnosis | None:
    """Report of the kernel itself, the cause before what it led to: an oops before the panic that it ends in, a
    lockup before the panic that it is set to end in; what a kernel survives only where it reported nothing else."""

    def report(name: str, index: int, words: str) -> Diagnosis:
        return Diagnosis(name, f"The guest {words}:\n{excerpt(console, index)}")

    oops = OOPS.first(console)
    for index, line in enumerate(console):
        if panic := PANIC.search(line):
            kind = next((name for name, pattern in PANIC_REASONS if pattern.search(panic["reason"])), "panic")
            if kind == "out-of-memory" or (kind == "panic" and "kill init" in line and killed_init(console)):
                return report("out-of-memory", index, OUT_OF_MEMORY)
            for sign in LOCKUPS:
                if sign.name == kind:
                    first = sign.first(console)
                    return report(kind, index if first is None else first, sign.words)
            if oops is None or oops > index:
                return report("panic", index, "panicked")
            break
    for sign in (OOPS, *LOCKUPS):
        if (first := sign.first(console)) is not None:
            return report(sign.name, first, sign.words)
    if (killed := next(out_of_memory(console), None)) is not None:
        return report("out-of-memory", killed, OUT_OF_MEMORY)
    for sign in OURS:
        if (first := sign.first(console)) is not None:
            return report(sign.name, first, sign.words)
    return None


HOST_ENDED = {
    "killed": (
        "qemu-killed",
        "The host ended QEMU by a signal, not the guest itself: the host ran out of memory (see its dmesg), somebody "
        "killed QEMU, or QEMU crashed or did what its sandbox forbids.",
    ),
    "hung": (
        "qemu-hung",
        "QEMU itself did not answer when the guest's time was up: it was stopped or frozen (SIGSTOP, a control group), or "
        "waited for the host's disk or memory.",
    ),
    "failed": ("qemu-failed", "QEMU gave up with an error; the guest did not switch itself off."),
}
"""Deeds of this host to the guest, by how a run ended: name and words."""

_ENDED = {
    "off": "switched itself off",
    "boot-deadline": "was ended at the deadline for booting",
    "deadline": "was ended at the deadline",
    "flood": "was ended for sending too much",
    "lingered": "did not switch itself off",
    "partner": "was ended with the machine at the other end of its link",
}


def last_step(console: Sequence[str]) -> str:
    """Last step of the script, as a sentence with a blank before it, or nothing."""
    for line in reversed(console):
        if match := re.search(r"kduel: step ([A-Za-z0-9._-]+)", line):
            return f" It was in step {match[1]}."
    return ""


def searched_lines(console: Sequence[str]) -> list[str]:
    """The lines that are searched, each cut: what a guest can make us do is bounded, and so is the time that it takes."""
    ends = [*console[:MOST_LINES], *console[-MOST_LINES:]] if len(console) > 2 * MOST_LINES else console
    return [line[:LONGEST] for line in ends]


def excerpt(console: Sequence[str], start: int) -> str:
    """Some lines of a console from `start`, cut to a size that can be shown, indented."""
    shown = [line.rstrip()[:WIDTH] for line in console[start : start + 3 * LINES] if line.strip()]
    return "\n".join(f"    {line}" for line in shown[:LINES])


def findings(console: Sequence[str], searched: Collection[str] = ()) -> dict[str, str]:
    """Signs of trouble in a valid trial's console: name to first line, without those in `searched`, another log."""
    console = searched_lines(console)
    found: dict[str, str] = {}
    new = [line for line in console if line not in searched]
    for sign in (OOPS, Sign("panic", PANIC), *LOCKUPS, *OURS, *REPORTS):
        if (first := sign.first(new)) is not None:
            found[sign.name] = new[first].strip()[:WIDTH]
    if (killed := next(out_of_memory(console), None)) is not None:
        found["out-of-memory"] = console[killed].strip()[:WIDTH]
    return found


def findings_in(trial: Path) -> dict[str, str]:
    """`findings` of a trial's console.log and of the kernel's log at its end, which also has quiet lines."""
    console = read_console(trial / "console.log")
    found = findings(console)
    searched = set(searched_lines(console))
    for environment in environments_in(trial):
        with contextlib.suppress(OSError):
            found = findings(read(environment / "dmesg", MOST_LOG).splitlines(), searched) | found
    return found
