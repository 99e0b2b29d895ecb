"""Driving `git bisect` in a checkout of its own, for costs that are exact."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kduel.core.errors import NotMeasuredError
from kduel.run.bisect.git import git

Judgement = Literal["old", "new", "skip"]


class ExactStep(Struct, frozen=True, kw_only=True):
    """A commit that was tried."""

    commit: str
    subject: str
    judgement: Judgement
    value: float | None = None
    why: str = ""
    """Reason for which it was skipped."""


class ExactResult(Struct, frozen=True, kw_only=True):
    """The end of the search: one commit, or several among which skipped ones hide it."""

    commits: list[str]
    steps: list[ExactStep]


def search(
    place: Path,
    old: str,
    new: str,
    judge: Callable[[str], ExactStep],
    report: Callable[[ExactStep, int], None],
    *,
    first_parent: bool = False,
    paths: Sequence[str] = (),
) -> ExactResult:
    """Bisect between two commits whose judgements are known. `judge` tries a commit, and checks it out where that is
    needed: each checkout makes files new for make. `report` is called with it and with the number of commits left.
    Raises InputError, NotMeasuredError where git comes to no end."""
    if "new" not in git(place, "bisect", "terms", check=False):
        line = ["--first-parent"] if first_parent else []
        git(place, "bisect", "start", "--no-checkout", "--term-old=old", "--term-new=new", *line, "--", *paths)
    said = git(place, "bisect", "old", old) + git(place, "bisect", "new", new)
    steps: list[ExactStep] = []
    for _ in range(10_000):
        if match := re.search(r"^([0-9a-f]{40}) is the first new commit$", said, re.MULTILINE):
            return ExactResult(commits=[match[1]], steps=steps)
        if "only 'skip'ped commits left" in said:
            return ExactResult(commits=re.findall(r"^([0-9a-f]{40})\b", said, re.MULTILINE), steps=steps)
        left = re.search(r"Bisecting: (\d+) revision", said)
        commit = git(place, "rev-parse", "BISECT_HEAD")
        step = judge(commit)
        steps.append(step)
        report(step, int(left[1]) if left else 0)
        said = git(place, "bisect", step.judgement, check=False)
        if not any(word in said for word in ("Bisecting:", "first new commit", "'skip'ped")):
            raise NotMeasuredError(f"git bisect does not go on: {said.strip()[:500]}")
    raise NotMeasuredError("git bisect does not come to an end")
