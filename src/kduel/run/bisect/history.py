"""The commits between two ends, and which of them each one contains."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kduel.core.errors import InputError
from kduel.run.bisect.git import commit_of, git

MOST_WITH_MERGES = 4096
"""Commits of a history with merges, for a noisy search: which contains which is a square matrix."""


class History:
    """The commits after GOOD up to BAD, the oldest first. Raises InputError where a parent does not stand before."""

    def __init__(self, good: str, bad: str, parents: Mapping[str, Sequence[str]]) -> None:
        self.good, self.bad = good, bad
        self.commits = list(parents)
        self.index = {commit: number for number, commit in enumerate(self.commits)}
        self.parents = [[self.index[one] for one in names if one in self.index] for names in parents.values()]
        if any(parent >= number for number, own in enumerate(self.parents) for parent in own):
            raise InputError("the commits are not in the order of their history")
        self.linear = all(own == ([number - 1] if number else []) for number, own in enumerate(self.parents))

    def check_size(self) -> None:
        """Raises InputError where a search under noise cannot hold which commit contains which."""
        if not self.linear and len(self.commits) > MOST_WITH_MERGES:
            raise InputError(
                f"there are {len(self.commits):,} commits with merges between the ends; of measurements that vary, "
                f"{MOST_WITH_MERGES:,} can be searched",
                "Give --first-parent, a path (-- kernel/sched), or ends that are nearer to one another.",
            )

    def __len__(self) -> int:
        return len(self.commits)

    @cached_property
    def _containment(self) -> NDArray[np.float32]:
        """(commit, culprit): 1 where the commit contains the culprit."""
        bits: list[int] = []
        for number, own in enumerate(self.parents):
            mask = 1 << number
            for parent in own:
                mask |= bits[parent]
            bits.append(mask)
        width = (len(bits) + 7) // 8
        packed = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in bits), np.uint8)
        rows = np.unpackbits(packed.reshape(-1, width), axis=1, bitorder="little")[:, : len(bits)]
        return rows.astype(np.float32)

    def row(self, commit: str) -> NDArray[np.float64]:
        """For each possible culprit: 1 where `commit` contains it, else 0. GOOD contains none, BAD contains all."""
        if commit == self.good:
            return np.zeros(len(self))
        if commit == self.bad:
            return np.ones(len(self))
        if self.linear:
            return (np.arange(len(self)) <= self.index[commit]).astype(float)
        found: NDArray[np.float64] = self._containment[self.index[commit]].astype(float)
        return found

    def mass(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each commit: the probability that it contains the culprit."""
        if self.linear:
            return np.cumsum(probability)
        found: NDArray[np.float64] = (self._containment @ probability.astype(np.float32)).astype(float)
        return found

    def groups(self, measurable: NDArray[np.bool_]) -> NDArray[np.intp]:
        """For each commit the number of its group: commits that no measurable one separates are of one group."""
        chosen = np.flatnonzero(measurable)
        if self.linear:
            return np.searchsorted(np.minimum(chosen, len(self) - 1), np.arange(len(self)))
        packed = np.packbits(self._containment[chosen].astype(bool), axis=0)
        found: NDArray[np.intp] = np.unique(packed, axis=1, return_inverse=True)[1].reshape(-1)
        return found

    def sizes(self) -> NDArray[np.float64]:
        """For each commit: how many of the possible culprits it contains."""
        return np.round(self.mass(np.ones(len(self))))

    def section(self, low: str, high: str) -> History:
        """The commits after `low` up to `high`, both commits of this history or its ends."""
        chosen = np.flatnonzero((self.row(high) > 0) & (self.row(low) == 0))
        names = {self.commits[number]: [self.commits[parent] for parent in self.parents[number]] for number in chosen}
        return History(low, high, names)


def read_history(
    tree: Path, good: str, bad: str, *, first_parent: bool = False, paths: Sequence[str] = ()
) -> History:
    """The history between two revisions of a git tree. Raises InputError with the remedy where there is none."""
    old, new = commit_of(tree, good), commit_of(tree, bad)
    if old == new:
        raise InputError(
            f"{good} and {bad} are the same commit, {old[:12]}", "Give two commits with some between them."
        )
    shallow = git(tree, "rev-parse", "--is-shallow-repository") == "true"
    if not is_ancestor(tree, old, new):
        raise _unrelated_error(tree, good, bad, old, new, shallow=shallow)
    words = ["rev-list", "--topo-order", "--reverse", "--parents", *(["--first-parent"] if first_parent else [])]
    parents: dict[str, Sequence[str]] = {}
    for line in git(tree, *words, f"{old}..{new}", "--", *paths).splitlines():
        commit, *own = line.split()
        parents[commit] = own[:1] if first_parent else own
    if not parents:
        raise InputError(
            f"no commit between {good} and {bad} changes {', '.join(paths)}", "Leave the paths out, or correct them."
        )
    if shallow:
        cut = (tree / git(tree, "rev-parse", "--git-path", "shallow")).read_text("utf-8").split()
        if any(commit in parents for commit in cut):
            raise InputError(
                f"{tree} is a shallow clone, and its history is cut between {good} and {bad}",
                "Get the rest first: git fetch --unshallow.",
            )
    return History(old, new, parents)


def is_ancestor(tree: Path, old: str, new: str) -> bool:
    """True if `old` is an ancestor of `new`, or the same commit. Raises where git cannot say."""
    return git(tree, "rev-list", "--max-count=1", old, f"^{new}") == ""


def _unrelated_error(tree: Path, good: str, bad: str, old: str, new: str, *, shallow: bool) -> InputError:
    if is_ancestor(tree, new, old):
        return InputError(
            f"{bad} is older than {good}: the ends are swapped",
            f"Give the older commit first: {shlex.join(['kduel', 'bisect', bad, good])}. A change for the better is found as well.",
        )
    if shallow:
        return InputError(
            f"{tree} is a shallow clone, in which {good} is not an ancestor of {bad}",
            "Get the rest of the history first: git fetch --unshallow.",
        )
    base = git(tree, "merge-base", old, new, check=False).split("\n")[0]
    if not base:
        return InputError(f"{good} and {bad} have no history in common", "Give two commits of one history.")
    return InputError(
        f"{good} is not an ancestor of {bad}: they are on different branches",
        f"Compare {good} with the commit where the branches part, {base[:12]}, and search from there: "
        f"{shlex.join(['kduel', 'bisect', base[:12], bad])}.",
    )


def changed_files(tree: Path) -> int:
    """Number of tracked files of the working tree that differ from its commit: no search measures them."""
    if git(tree, "rev-parse", "--is-bare-repository") == "true":
        return 0
    return len(git(tree, "status", "--porcelain", "--untracked-files=no").splitlines())
