"""Cause of a failed build: the decisive lines of its log, and what to do where that is known."""

import re

from msgspec import Struct

from kduel.core.toml import table_beside

KNOWN: dict[str, str] = table_beside(__file__)
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
    for pattern, words in KNOWN.items():
        if match := re.search(pattern, text):
            remedy = words.format(*(group for group in match.groups() if group))
            break
    return BuildFailure(
        tuple(line[:LONGEST] for line in lines) or (f"make ended with status {status} and printed no message",),
        remedy,
        PASSING.search(text) is not None,
    )
