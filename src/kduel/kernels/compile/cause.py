"""Cause of a failed build: the decisive lines of its log, and what to do where that is known."""

import re

from msgspec import Struct

MISSING = r"(?:(?:command )?not found|No such file or directory)"
"""The message of the shell for a program that is missing, and that of make where it needs no shell."""
KNOWN: tuple[tuple[str, str], ...] = (
    (rf"\b(flex|bison|bc|cpio|rsync|zstd|lzop|perl|python3|pahole|ccache): {MISSING}", "apt install {}"),
    (rf"\bxz: {MISSING}", "apt install xz-utils"),
    (rf"\blz4c?: {MISSING}", "apt install lz4"),
    (rf"\bmkimage\b\"?:? {MISSING}", "apt install u-boot-tools"),
    (r"\b(?:libelf|gelf)\.h: No such file|Cannot generate ORC metadata|libelf-dev", "apt install libelf-dev"),
    (r"openssl/\S+\.h: No such file", "apt install libssl-dev"),
    (r"\bgmp\.h: No such file", "apt install libgmp-dev libmpc-dev"),
    (r"No space left on device", "Free some space where builds are made (TMPDIR)."),
    (r"Killed signal terminated program|internal compiler error: Killed", "Memory ran out: build with fewer jobs."),
    (r"The source tree is not clean", "Run make mrproper there; KDuel builds out of the tree."),
)
"""A pattern in the log, and the remedy; the group is the package."""
FIRST = re.compile(
    r"^\S[^:\n]*:\d+(?::\d+)?: (?:fatal )?error: .+|^\S*(?:gcc|clang|cc1)\S*: (?:fatal )?error: .+|^\S*ld\S*: .+"
    r"|.*undefined reference to .+|^ERROR: .+|^error: .+|.*command not found.*|.*: not found$"
    r"|^(?:make|gmake)(?:\[\d+\])?: \S+: No such file or directory$|^.*No rule to make target .+"
    r"|^.*No space left on device.*|^\*\*\* .+|.*internal compiler error.*",
    re.MULTILINE,
)
GENERAL = re.compile(r"^(?:make|gmake)(?:\[\d+\])?: \*\*\* .+", re.MULTILINE)
PASSING = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory"
    r"|Killed signal terminated program|internal compiler error: Killed"
)
"""Trouble of the host at that moment, not of the kernel."""
LONGEST = 220
"""Characters of a line that are reported."""


class BuildFailure(Struct, frozen=True):
    lines: tuple[str, ...]
    """The decisive ones, the first error first; at most four."""
    remedy: str = ""
    passing: bool = False
    """True if the host lacked space or memory: the same kernel may build later."""

    @property
    def text(self) -> str:
        return "; ".join(self.lines)


def find_cause(log: str, status: int) -> BuildFailure:
    """The cause in a log of make that ended with `status`; the log is not to be trusted, and may be empty."""
    text = "\n".join(line.rstrip() for line in log.splitlines())
    found = [match[0].strip() for match in FIRST.finditer(text)]
    general = [match[0].strip() for match in GENERAL.finditer(text)]
    lines = list(dict.fromkeys(found))[:3]
    # The first of make's own complaints names the file; those after it only come back from the directories.
    lines += [line for line in general[:1] if line not in lines]
    if not lines:
        lines = [line.strip() for line in text.splitlines() if line.strip()][-3:]
    remedy = ""
    for pattern, words in KNOWN:
        if match := re.search(pattern, text):
            remedy = words.format(*(group for group in match.groups() if group))
            break
    return BuildFailure(
        tuple(line[:LONGEST] for line in lines) or (f"make ended with status {status} and printed no message",),
        remedy,
        PASSING.search(text) is not None,
    )
