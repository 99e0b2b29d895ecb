"""Reads apt's output: which suites it took, which it refused and why."""

import itertools
import re
from collections.abc import Sequence

ANSWERED = re.compile(r"(?:Hit|Get):\d+ \S+ (\S+) InRelease")
REFUSED = re.compile(
    r"(?:E: |W: Failed to fetch )(?!.*does not have a Release).*(?:/dists/([^\s/]+)/|'\S+ (\S+) \w*Release')"
)
NO_SUCH_SUITE = "does not have a Release file"
EXPIRED = "is expired (invalid since"
_SAYS_NOTHING = ("Download Failed", "have been ignored, or old ones used instead.")


def suites_answered(said: Sequence[str]) -> tuple[set[str], dict[str, str]]:
    """Read the lines of `apt-get update`: the suites that were read and verified, and those that the mirror has but that
    failed, each with the reason. One that the mirror does not have is in neither."""
    answered: set[str] = set()
    failed: dict[str, str] = {}
    for line, following in itertools.zip_longest(said, said[1:], fillvalue=""):
        if match := ANSWERED.match(line):
            answered.add(match[1])
        elif match := re.match(r"Err:\d+ \S+ ([^\s/]+)\S* .*?(\w+)$", line):
            reason = following.strip()
            if match[2] != "Release" or not re.match(r"404 |File not found", reason):
                failed.setdefault(match[1], reason)
        elif match := REFUSED.match(line):
            failed.setdefault(match[1] or match[2], line[3:])
    return answered - failed.keys(), failed


def telling_line(said: Sequence[str]) -> str:
    """The most telling line of what apt printed."""
    lines = [line.strip() for line in said if line.strip()]
    telling = [line for line in lines if line.startswith(("E: ", "W: ")) and not line.endswith(_SAYS_NOTHING)]
    return re.sub(r"^[EW]: ", "", (telling or lines or ["apt gave no reason"])[0])[:500]
