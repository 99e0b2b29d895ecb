"""The outcome of a search by exact counts as text."""

from pathlib import Path
from textwrap import wrap

from kduel.core.format import with_sign
from kduel.core.text import plural, printable
from kduel.explain.show import as_text as explained
from kduel.run.bisect.exact import ExactSearch
from kduel.run.bisect.git import commit_subject, git
from kduel.run.bisect.path import SHORT, order_commits, path_lines
from kduel.run.exact.subject import BOOT

AMONG = 50
"""Commits that are listed where skipped ones hide which it is."""


def as_text(tree: Path, result: ExactSearch, benchmark: str, limit: int, width: int) -> str:
    """The commit, or a set of them, the cost along the history, and functions: `limit` rows (0: all)."""
    skipped = sum(step.judgement == "skip" for step in result.found.steps)
    lines = [f"{plural(len(result.found.steps), 'commit')} tried between the ends, {skipped} of them skipped."]
    if len(result.found.commits) != 1:
        lines.append("Skipped commits hide which one it is. It is one of these:")
        among = result.found.commits
        lines += [f"  {git(tree, 'show', '--no-patch', '--format=%h %s', commit)}" for commit in among[:AMONG]]
        lines += [f"  and {len(among) - AMONG:,} more, up to {among[-1][:SHORT]}"] if len(among) > AMONG else []
    else:
        form = "--format=commit %H%nAuthor: %an%nDate:   %ad%n%n    %s"
        header = git(tree, "show", "--no-patch", form, result.found.commits[0])
        lines += [f"The first commit {describe_cost(result)}:", "", header]
    if result.before is not None and result.after is not None:
        each = "" if benchmark == BOOT else " per operation"
        them = "it" if len(result.found.commits) == 1 else "them"
        lines += [
            "",
            f"{benchmark}: {result.before:,.10g} {result.unit} before {them}, {result.after:,.10g} with {them} "
            f"({with_sign(result.after - result.before, ',.10g')}{each}).",
        ]
    tried = {*(step.commit for step in result.path), *(step.commit for step in result.found.steps)}
    subjects = {commit: commit_subject(tree, commit) for commit in tried}
    order = order_commits(tree, result.path[0].commit, result.path[-1].commit, tried)
    lines += ["", *path_lines(result.path, result.found.commits, subjects, order)]
    if reasons := [
        line
        for step in result.found.steps
        if step.judgement == "skip"
        for line in wrap(
            f"{step.commit[:SHORT]} {step.why.splitlines()[0]}", width, initial_indent="  ", subsequent_indent="    "
        )
    ]:
        lines += ["", "What was skipped:", *reasons]
    text = "\n".join([*lines, ""])
    if result.explanation is not None:
        text += "\n" + explained(result.explanation, limit, width)
    return printable(text)


def describe_cost(result: ExactSearch) -> str:
    """Words on the cost of the commit that was found. A later change may have taken part of its own back."""
    if result.after in (None, result.new_value):
        return "with the new cost"
    return f"that costs more like BAD ({result.new_value:,.10g}) than like GOOD ({result.old_value:,.10g})"
