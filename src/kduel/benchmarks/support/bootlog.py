"""A kernel's boot messages: when its stages began, by the host's clock, and how long its initcalls took.

The wordings are those of Linux 2.4 to 7.x on the architectures that they differ between: "Freeing unused kernel
memory: 52k init" (2.4, PowerPC), "Freeing init memory: 112K" (ARM before 3.11), "Freeing unused kernel image (initmem)
memory: 2612K" (5.x and later). What the kernel's own time in front of a line is called, `[    0.5]` or
`[    0.5][    T1]`, does not matter.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

HEAD = r"(?:<\d{1,3}>)?(?:\[ *(?P<clock>\d{1,9}\.\d{1,9})\](?:\[ *[TC]\d{1,9}\])? ?)?"
LINE = re.compile(rf"^(?P<host> *\d{{1,9}}\.\d{{3}}) {HEAD}(?P<text>.*)$", re.ASCII)
STAMP = re.compile(r"\[ *\d{1,9}\.\d{6}\] ", re.ASCII)
"""Time stamp of the kernel within a line."""
LATE = 0.05
"""Seconds of the kernel's own time that must have passed before the console spoke for it to count as late."""
BURST = 0.02
"""Seconds within which lines come that had been kept back."""

LOADING = re.compile(
    r"=> (?:tftp|load|fatload|ext[24]load|nfs|nand read|sf read|mmc read|ubi|fastboot boot)|## (?:Booting|Loading|Executing)"
    r"|TFTP from server|Loading: |Reading '|Booting kernel from|Starting kernel"
)
Init = Literal["kernel", "greeting"]
INIT: dict[Init, tuple[str, str]] = {
    "kernel": (r"Run \S+ as init process", "Run ... as init process"),
    "greeting": (r"kduel: init$|INIT: version \d|init started: |systemd\[1\]: systemd \d", "the first words of init"),
}
"""Expression for the line by which init begins, and its name in an error. Init's own words come later than the
kernel's, by up to seconds: what is compared must be reported by the same of the two."""
MARKS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("version", re.compile(r"Linux version \d"), "Linux version ..."),
    (
        "freed",
        re.compile(r"Freeing (?:unused kernel (?:image )?(?:\(initmem\) )?memory|init memory|initmem)\b"),
        "Freeing unused kernel memory: ...",
    ),
    ("init", re.compile("|".join(pattern for pattern, _ in INIT.values())), "Run /init as init process"),
    ("ready", re.compile(r"kduel: script$|(?:^|\s)\S*login: *$"), "login:"),
)
"""Moments that begin a stage, in the order of a boot: name, lines that mark it, its name in an error."""
STAGES = {
    "load": ("begin", "version"),
    "kernel": ("version", "freed"),
    "start": ("freed", "init"),
    "userspace": ("init", "ready"),
}
"""Each stage with the moments that it lies between."""

INITCALL = re.compile(
    r"initcall (?:0x[0-9a-f]+: )?(?P<name>[\w.$]+)(?:\+0x[0-9a-f]+/0x[0-9a-f]+)?(?:\(\))?(?: \[(?P<module>\w+)\])?"
    r" (?:returned -?\d{1,9}(?: with [\w ]{1,80})? after|ran for) (?P<number>\d{1,15}) (?P<unit>[um]secs)",
    re.ASCII,
)


class ConsoleLine(Struct, frozen=True):
    """A line of a console log: the host's time, the kernel's own where it has one, the text without both."""

    host: float
    clock: float | None
    text: str


class Timeline(Struct, frozen=True, kw_only=True):
    """The moments of a boot that its console shows, seconds from the machine's start."""

    moments: dict[str, float]
    """begin, version, freed, init, ready: those that the console shows, in this order."""
    late: float = 0.0
    """Seconds of the kernel's time before its console spoke, reported as `load`, not `kernel`; 0 with earlycon."""

    def stages(self) -> dict[str, float]:
        """Each stage that both ends are known of, in seconds."""
        return {
            stage: self.moments[end] - self.moments[start]
            for stage, (start, end) in STAGES.items()
            if start in self.moments and end in self.moments
        }


def console_lines(log: str) -> list[ConsoleLine]:
    """The lines of console.log with the host's time, without cut ones and the second of two run together."""
    found = []
    for text in log.split("\n"):
        if (match := LINE.match(text)) and not STAMP.search(match["text"]):
            clock = match["clock"]
            found.append(ConsoleLine(float(match["host"]), float(clock) if clock else None, match["text"].rstrip()))
    return found


def timeline(lines: Sequence[ConsoleLine], init: Init | None = None) -> Timeline:
    """The moments of a boot. A mark counts only after the one before it, so that nothing can end before it began.

    The beginning is a boot loader's line about loading the kernel, else the machine's start. `init` selects whose
    line counts as init's beginning: None takes the first of either, which is no measure to compare kernels by.
    """
    moments: dict[str, float] = {}
    at = 0
    for name, pattern, _ in MARKS:
        if name == "init" and init is not None:
            pattern = re.compile(INIT[init][0])
        found = next((n for n in range(at, len(lines)) if pattern.search(lines[n].text)), None)
        if found is None:
            continue
        if name == "version":
            loading = (line.host for line in lines[:found] if LOADING.search(line.text))
            moments["begin"] = next(loading, 0.0)
        moments[name] = lines[found].host
        # One line may be two marks: where no line reports it, init begins as its first words appear.
        at = found
    return Timeline(moments=moments, late=_late_seconds(lines, moments.get("version")))


def _late_seconds(lines: Sequence[ConsoleLine], version: float | None) -> float:
    """The kernel's own time of the last line that came in one burst with its first."""
    if version is None:
        return 0.0
    burst = [line.clock for line in lines if version <= line.host <= version + BURST and line.clock is not None]
    return max(burst, default=0.0) if max(burst, default=0.0) >= LATE else 0.0


def initcalls(kernel_log: Iterable[str]) -> dict[str, float]:
    """Microseconds by function, or `module:function`, of a kernel with initcall_debug; namesakes are added up."""
    found: dict[str, float] = {}
    for line in kernel_log:
        if "initcall" in line and (match := INITCALL.search(line)):
            name = f"{match['module']}:{match['name']}" if match["module"] else match["name"]
            found[name] = found.get(name, 0.0) + float(match["number"]) * (1000 if match["unit"] == "msecs" else 1)
    return found
