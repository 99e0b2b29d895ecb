"""Exact costs: each commit is built, booted and counted once, and `git bisect` chooses the next one."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.progress import Progress, UniqueMessages
from kduel.explain.compare import Explanation
from kduel.run.bisect.build import Unbuildable
from kduel.run.bisect.git import commit_subject, git
from kduel.run.bisect.history import is_ancestor
from kduel.run.bisect.outcome import Interval, Level, SearchOutcome
from kduel.run.bisect.path import PathStep, cost_path, order_commits
from kduel.run.exact.measure import CountedTrial, count_arm, exact_machine, explain_step, is_boot, step_index
from kduel.run.exact.subject import BOOT, operation_study
from kduel.run.prepare import Ready, make_ready
from kduel.study.load import Study

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


METRICS = {"instructions": "median", "instructions-mean": "mean"}


class CountedCommit(Struct, frozen=True, kw_only=True):
    value: float
    """Instructions per operation."""
    ready: Ready
    counted: CountedTrial | None = None
    """By function; None where that is not what was counted."""


class CommitCounter:
    unit = "instructions"

    def __init__(
        self,
        build: Callable[[str], str],
        benchmark: str,
        metric: str,
        *,
        machine: str = "",
        cache: Cache,
        progress: Progress,
    ) -> None:
        """`build` gives the specification of a commit's kernel. It raises Unbuildable, and what builders raise."""
        self.build, self.benchmark, self.metric, self.machine = build, benchmark, metric, machine
        self.cache, self.progress = cache, UniqueMessages(progress)
        self.counted: dict[str, CountedCommit] = {}

    def study(self, spec: str) -> Study:
        return operation_study([spec, spec], self.benchmark, self.machine)

    def _ready(self, spec: str) -> Ready:
        try:
            return make_ready(self.study(spec), cache=self.cache, progress=self.progress)
        except InputError as error:
            raise NotMeasuredError(f"what was built cannot be used: {error.message}", error.remedy) from error

    def count(self, commit: str) -> CountedCommit:
        """Build and count a commit. Raises Unbuildable, NotMeasuredError, and what builders raise."""
        if commit not in self.counted:
            ready = self._ready(self.build(commit))
            with self.progress.task(f"counting {commit[:12]}"):
                self.counted[commit] = self.count_kernel(ready, commit)
        return self.counted[commit]

    def count_kernel(self, ready: Ready, commit: str) -> CountedCommit:
        """Count a commit's kernel. Raises NotMeasuredError."""
        arm = ready.arms[0]
        script = ready.setup.script(arm.contender, range(len(ready.study.steps)))
        counted = count_arm(exact_machine(ready), arm, script, cache=self.cache)
        index = step_index(ready, self.benchmark)
        label = ready.study.steps[index].label
        if is_boot(ready, index):
            value = counted.boot_instructions(index, label)
        else:
            value = float(getattr(counted.step(index, label), METRICS[self.metric]))
        return CountedCommit(value=value, ready=ready, counted=replace(counted, name=commit[:12]))

    def by_function(self, tried: CountedCommit) -> CountedTrial | None:
        """The counts of a commit by function. For the boot this takes another boot. Raises NotMeasuredError."""
        ready, arm = tried.ready, tried.ready.arms[0]
        if tried.counted is None or not is_boot(ready, step_index(ready, self.benchmark)):
            return tried.counted
        with self.progress.task(f"counting {tried.counted.name} by function"):
            script = ready.setup.script(arm.contender, range(len(ready.study.steps)))
            counted = count_arm(exact_machine(ready), arm, script, cache=self.cache, boot=True)
        return replace(counted, name=tried.counted.name)


class ExactSearch(Struct, frozen=True, kw_only=True):
    found: ExactResult
    old_value: float
    new_value: float
    unit: str = "instructions"
    before: float | None = None
    """Cost of the commit before the first new one, where it was counted."""
    after: float | None = None
    explanation: Explanation | None = None
    path: list[PathStep] = []
    """Every commit that was counted, in the order of the history."""

    def outcome(self, good: str, bad: str, metric: str) -> SearchOutcome:
        """Outcome in the form of a search under noise. A count has no interval: its two ends are the count."""
        status = {"old": "before", "new": "after", "skip": "skipped"}
        levels = [exact_level(good, self.old_value, "good")]
        for step in self.found.steps:
            what = f"skipped: {step.why}" if step.value is None else status[step.judgement]
            levels.append(exact_level(step.commit, step.value, what))
        levels.append(exact_level(bad, self.new_value, "bad"))
        effect = None
        if self.before and self.after is not None:
            change = 100 * (self.after - self.before) / self.before
            effect = Interval(change, change, change)
        commits = [step.commit for step in self.found.steps]
        return SearchOutcome(
            good=good,
            bad=bad,
            metric=metric,
            set=self.found.commits,
            probability=1.0,
            effect=effect,
            levels=levels,
            measurements=2 + sum(step.value is not None for step in self.found.steps),
            blocks=0,
            confirmed=None,
            segments=[],
            posterior=dict.fromkeys([*commits, *self.found.commits], 0.0)
            | dict.fromkeys(self.found.commits, 1 / len(self.found.commits)),
            why="",
        )


def exact_level(commit: str, value: float | None, status: str) -> Level:
    return Level(commit=commit, n=int(value is not None), mean=value, ci_low=value, ci_high=value, status=status)


def is_new(value: float, old: float, new: float) -> bool:
    """True if a value is on the new side: nearer to the new end's than to the old one's."""
    return abs(value - new) < abs(value - old)


def bisect(
    place: Path,
    old: str,
    new: str,
    trier: CommitCounter,
    *,
    progress: Progress,
    first_parent: bool = False,
    paths: Sequence[str] = (),
) -> ExactSearch:
    """The first commit after `old`, up to `new`, with its cost. Raises NotMeasuredError where both cost the same, or have none."""
    ends = []
    for commit in (old, new):
        try:
            ends.append(trier.count(commit).value)
        except (Unbuildable, NotMeasuredError) as error:
            raise NotMeasuredError(
                f"{commit[:12]} {commit_subject(place, commit)!r}, an end of the search, cannot be counted: {error}",
                "Both ends must build and boot on the machine icount.",
            ) from error
        progress.info(f"{commit[:12]}  {ends[-1]:>12,.10g}  {commit_subject(place, commit)}")
    old_value, new_value = ends
    if old_value == new_value:
        raise NotMeasuredError(
            f"{trier.benchmark} costs {old_value:,.10g} {trier.unit} at both ends: there is nothing to find",
            "Try another --benchmark, or --metric instructions-mean."
            if trier.metric == "instructions" and trier.benchmark != BOOT
            else "Try another --benchmark.",
        )

    def judge(commit: str) -> ExactStep:
        about = commit_subject(place, commit)
        try:
            value = trier.count(commit).value
        except Unbuildable as error:
            return ExactStep(commit=commit, subject=about, judgement="skip", why=f"does not build: {error}")
        except NotMeasuredError as error:
            return ExactStep(
                commit=commit, subject=about, judgement="skip", why=f"cannot be counted: {error.message}"
            )
        side = "new" if is_new(value, old_value, new_value) else "old"
        return ExactStep(commit=commit, subject=about, judgement="new" if side == "new" else "old", value=value)

    def report(step: ExactStep, left: int) -> None:
        what = f"{step.value:>12,.10g}" if step.value is not None else f"{'skipped':>12}"
        why = f"  ({step.why.splitlines()[0][:120]})" if step.why else ""
        progress.info(f"{step.commit[:12]}  {what}  {step.subject}{why}  [{left} left]")

    found = search(place, old, new, judge, report, first_parent=first_parent, paths=paths)
    first = found.commits[0]
    parents = git(place, "show", "--no-patch", "--format=%P", first).split()[: 1 if first_parent else None]
    # git looks only at commits that change the paths, and at none that GOOD contains: the commit before may be neither.
    for parent in parents if len(found.commits) == 1 else ():
        if parent in trier.counted:
            continue
        step = judge(parent)
        report(step, 0)
        found.steps.append(step)
        if step.judgement == "new":
            raise not_found_error(place, old, new, first, parent, trier, paths)
        if step.judgement == "skip":
            known = [old, *(one.commit for one in found.steps if one.judgement == "old")]
            hidden = git(place, "rev-list", "--topo-order", "--reverse", first, *(f"^{one}" for one in known))
            found = ExactResult(commits=hidden.splitlines(), steps=found.steps)
    found = ExactResult(commits=order_commits(place, old, new, found.commits), steps=found.steps)
    path = cost_path(place, old, new, counted_values(trier))
    ends_of_set = parents[0], first
    if len(found.commits) != 1:
        ends_of_set = enclosing_commits(place, found.commits, path)
    before, after = (trier.counted.get(commit) for commit in ends_of_set)
    return ExactSearch(
        found=found, old_value=old_value, new_value=new_value, unit=trier.unit,
        before=before.value if before else None, after=after.value if after else None,
        explanation=_explain(trier, before, after), path=path,
    )  # fmt: skip


def enclosing_commits(place: Path, commits: Sequence[str], path: Sequence[PathStep]) -> tuple[str, str]:
    """The counted commits right before and at the end of a set; empty where the history is not a line there."""
    counted = [step for step in path if step.commit in commits]
    if len(counted) != 1:
        return "", ""
    last, since = counted[0].commit, counted[0].since
    between = git(place, "rev-list", "--topo-order", "--reverse", last, f"^{since}").splitlines()
    return (since, last) if between == list(commits) else ("", "")


def counted_values(trier: CommitCounter) -> dict[str, float]:
    return {commit: tried.value for commit, tried in trier.counted.items()}


def not_found_error(
    place: Path, old: str, new: str, first: str, parent: str, trier: CommitCounter, paths: Sequence[str]
) -> NotMeasuredError:
    """The error where `first`, which git names, has the new cost from a `parent` at which git did not look."""
    said = (
        f"{first[:12]} {commit_subject(place, first)!r} did not cause it: {parent[:12]} {commit_subject(place, parent)!r} before it "
        f"already costs {trier.counted[parent].value:,.10g}"
    )
    if is_ancestor(place, parent, old):
        return NotMeasuredError(
            f"{said}, on a branch that began before {old[:12]}",
            f"Give an end that {parent[:12]} contains in place of {old[:12]}, or --first-parent.",
        )
    steps = {step.commit: step for step in cost_path(place, old, new, counted_values(trier))}
    why = f", and does not change {', '.join(paths)}" if paths else "; on another branch the cost changed back"
    return NotMeasuredError(
        said + why,
        f"Search between {steps[parent].since[:12]} and {parent[:12]} with the same options"
        f"{', without the paths' if paths else ''}.",
    )


def _explain(trier: CommitCounter, before: CountedCommit | None, after: CountedCommit | None) -> Explanation | None:
    if before is None or after is None:
        return None
    both = [counted for tried in (before, after) if (counted := trier.by_function(tried))]
    return explain_step(after.ready, both, step_index(after.ready, trier.benchmark)) if len(both) == 2 else None


def judge_checkout(trier: CommitCounter, place: Path, old: float, new: float) -> tuple[int, str]:
    """For `git bisect run`: 0 where the checked-out commit costs like the old end, 1 like the new one, 125 where it
    cannot be told; with a line that says why. Raises what would be no other with the next commit."""
    commit = git(place, "rev-parse", "HEAD")
    try:
        value = trier.count(commit).value
    except Unbuildable as error:
        return 125, f"{commit[:12]} does not build: {error}"
    except NotMeasuredError as error:
        return 125, f"{commit[:12]} cannot be counted: {error.message}"
    status = 1 if is_new(value, old, new) else 0
    return status, f"{commit[:12]} {trier.benchmark}: {value:,.10g} {trier.unit}, {'new' if status else 'old'}"
