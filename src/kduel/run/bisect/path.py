"""The cost of every commit that an exact search counted, in the order of the history, with each change between them:
where the ends differ by more than the commit that was found, other commits changed it, too."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kduel.core.format import with_sign
from kduel.run.bisect.git import git
from kduel.run.bisect.history import is_ancestor

SHORT = 12


class PathStep(Struct, frozen=True, kw_only=True):
    """A commit that was counted."""

    commit: str
    value: float
    """Instructions per operation."""
    since: str = ""
    """A nearest ancestor that was counted; empty for the first."""
    change: float = 0.0
    """Against that ancestor."""


def cost_path(tree: Path, good: str, bad: str, values: Mapping[str, float]) -> list[PathStep]:
    """The commits of `values`, each after its ancestors, with the change against the nearest of these; of a merge,
    against the side nearest in cost."""
    order = [good, *order_commits(tree, good, bad, values)]
    steps = [PathStep(commit=good, value=values[good])]
    for place, commit in enumerate(order[1:], 1):
        nearest: list[str] = []
        for one in reversed(order[:place]):
            if is_ancestor(tree, one, commit) and not any(is_ancestor(tree, one, later) for later in nearest):
                nearest.append(one)
        # A merge has what either side has: it changes nothing itself where it costs what one of them costs.
        since = min(nearest or [good], key=lambda one: abs(values[commit] - values[one]))
        steps.append(
            PathStep(commit=commit, value=values[commit], since=since, change=values[commit] - values[since])
        )
    return steps


def order_commits(tree: Path, good: str, bad: str, commits: Iterable[str]) -> list[str]:
    """Commits between the ends, each after its ancestors."""
    wanted = set(commits)
    listed = git(tree, "rev-list", "--topo-order", "--reverse", bad, f"^{good}").split()
    return [commit for commit in listed if commit in wanted]


def path_lines(
    steps: list[PathStep], found: list[str], subjects: Mapping[str, str], order: Sequence[str] = ()
) -> list[str]:
    """A line for each commit, and what other changes there are than that of the commits `found`. `order` has the commits
    between the ends that were tried, those that could not be counted among them, as in the history."""
    counted = {step.commit: step for step in steps}
    lines = ["Every commit that was tried, in the order of the history:", ""]
    for commit in [steps[0].commit, *(order or [step.commit for step in steps[1:]])]:
        step, mark = counted.get(commit), "*" if commit in found else " "
        change = with_sign(step.change, ",.10g") if step and step.change else ""
        value = f"{step.value:,.10g}" if step else "skipped"
        lines.append(f"{mark} {commit[:SHORT]} {value:>12} {change:>10}  {subjects[commit]}".rstrip())
    others = [step for step in steps[1:] if step.change and step.commit not in found]
    if len(found) == 1 and others:
        whole = steps[-1].value - steps[0].value
        lines += ["", f"It is not the only change: the ends differ by {with_sign(whole, ',.10g')}. The others lie"]
        lines += [
            f"  after {step.since[:SHORT]}, up to {step.commit[:SHORT]}: {with_sign(step.change, ',.10g')}"
            for step in others
        ]
        lines.append("Such a change is found by a search between its two commits, with the same options.")
    return lines
