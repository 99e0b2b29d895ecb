"""A whole search under noise: history, journal, what measures a commit, and what is shown of its progress."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from kduel.core.progress import Progress
from kduel.core.text import plural
from kduel.run.bisect.git import commit_subject
from kduel.run.bisect.history import History
from kduel.run.bisect.journal import Head, Journal
from kduel.run.bisect.noisy import Search
from kduel.run.bisect.outcome import SearchOutcome
from kduel.run.bisect.terms import SearchSettings, State


class SearchTask(Struct, frozen=True, kw_only=True):
    """Request of a search. Raises InputError where the history is too large to be searched under noise."""

    tree: Path
    history: History
    metric: str
    subject: str
    """Description of the measurement, for people; with the history it identifies the search."""
    settings: SearchSettings
    made_by: tuple[str, ...] = ()
    """Other things that determine a measurement: how kernels are built, the contents of files that a command names."""
    restart: bool = False

    def __post_init__(self) -> None:
        self.history.check_size()


def make_head(task: SearchTask) -> Head:
    commits = hashlib.sha256("\n".join(task.history.commits).encode()).hexdigest()
    history = task.history
    return Head(
        good=history.good, bad=history.bad, commits=commits, subject=f"{task.metric}: {task.subject}",
        seed=task.settings.seed,
        made_by=hashlib.sha256("\0".join(task.made_by).encode()).hexdigest() if task.made_by else "",
    )  # fmt: skip


def state_directory(work: Path, task: SearchTask) -> Path:
    """Directory of the search's measurements, below the directory of its tree."""
    head = make_head(task)
    parts = [head.good, head.bad, head.commits, head.subject, str(head.seed), *filter(None, [head.made_by])]
    key = hashlib.sha256("\0".join(parts).encode())
    return work / "searches" / key.hexdigest()[:16]


def search(task: SearchTask, directory: Path, measure: Callable[[str], float], progress: Progress) -> SearchOutcome:
    """Carry the search out, or go on with it. Raises InputError, NotMeasuredError, HostError."""
    directory.mkdir(parents=True, exist_ok=True)
    journal = Journal(directory, make_head(task), measure, progress, restart=task.restart)

    def watch(state: State) -> None:
        progress.info(progress_line(state, commit_subject(task.tree, state.best)))

    count = len(task.history)
    progress.info(f"{plural(count, 'commit')} after {task.history.good[:12]} up to {task.history.bad[:12]}.")
    return Search(task.history, task.metric, journal, task.settings, watch).run()


def progress_line(state: State, best: str) -> str:
    done = f"block {state.block}, {plural(state.measurements, 'measurement')}"
    if state.phase == "confirmation":
        return f"{done}: confirmation"
    known = f"{plural(state.set_size, 'commit')} with {100 * state.probability:.0f} %"
    if not state.certain:
        known += ", no difference established yet"
    left = f"; about {plural(state.blocks_left, 'block')} left" if state.blocks_left else ""
    return f"{done}: {known}; best {state.best[:12]} ({100 * state.best_probability:.0f} %) {best[:60]}{left}"
