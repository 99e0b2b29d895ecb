"""Whether a run's results.json is what its raw values give: the file that scripts read is derived, and in no manifest."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import msgspec

from kduel import __version__
from kduel.core.errors import InputError
from kduel.core.results import Results
from kduel.core.text import visible
from kduel.core.untrusted import read_whole
from kduel.judge.evaluate import judge_run
from kduel.store.integrity import Integrity
from kduel.store.merged import parts
from kduel.store.rundir import EXACT, RESULTS, RunDir

LATER = frozenset({"explanations", "judged_by"})
"""Keys of results that are not compared: `kduel explain` adds to a run that is written up, and the version is read first."""
CLOSE = 1e-9
"""The relative difference of two numbers that are the same: another processor or Python may round the last digits otherwise."""
LONGEST = 60
"""Characters of a value that a sentence shows."""


def with_results(found: Integrity, run: Path) -> Integrity:
    """What was found of the raw files of a run, and of each results.json that was written of them. Where a raw file differs, so
    do they: then they are not compared."""
    opened = RunDir.open(run)
    if found.changes or found.unreadable or opened.imported:
        return found
    if opened.merged:
        places = {str(one.run.path.relative_to(run)): one.run.path for one in parts(run)}
    else:
        places = {"": run} | ({EXACT: opened.exact_part} if opened.exact_part is not None else {})
    for name, place in places.items():
        changes, notes = compare_kept(place)
        more = Integrity(checked=0, changes=changes, notes=notes)
        found = found.together(more, name)
    return found


def compare_kept(run: Path) -> tuple[list[str], list[str]]:
    """What of RUN/results.json is not what the raw values give, and why it was not compared, a sentence each.

    Nothing where there is none: a run that was interrupted, an import, a merged run. Judges the run again.
    """
    path = run / RESULTS
    if not path.exists():
        return [], []
    remedy = f"`kduel report {shlex.quote(str(run))} -f json -o {shlex.quote(str(path))}` writes it again"
    try:
        kept = msgspec.json.decode(read_whole(path), type=dict[str, Any])
    except PermissionError as error:
        return [], [f"{RESULTS} cannot be read and was not compared: {error.strerror}"]
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else visible(error, LONGEST)
        return [f"{RESULTS} cannot be read ({why}); {remedy}"], []
    version = kept.get("judged_by")
    if isinstance(version, str) and version != __version__:
        told = (
            f"{RESULTS} was written by KDuel {visible(version, LONGEST)}, this is {__version__}: it was not compared"
        )
        return [], [f"{told}; {remedy}"]
    try:
        results = judge_run(run)
    except InputError as error:
        return [], [f"{RESULTS} was not compared, as the run cannot be judged again here: {error.message}"]
    if (fewer := behind(kept, results)) is not None:
        now = len(results.trials)
        return [], [f"{RESULTS} is of the first {fewer} of now {now} trials and was not compared; {remedy}"]
    present = msgspec.json.decode(msgspec.json.encode(results))
    if found := difference(kept, present):
        older = "" if version else " (it does not name the version of KDuel that wrote it, which may be an older one)"
        return [f"{RESULTS}: {found}{older}; {remedy}"], []
    return [], []


def behind(kept: dict[str, Any], results: Results) -> int | None:
    """How many trials the kept results are of, where the run was continued since; None where they are of all."""
    try:
        known = {trial["id"] for trial in kept["trials"]}
    except (KeyError, TypeError):
        return None
    there = {trial.id for trial in results.trials}
    return len(known) if known < there and kept.get("study") != msgspec.to_builtins(results.study) else None


def difference(kept: Any, present: Any, where: str = "") -> str:
    """The first key with another value, in words; empty where there is none."""
    if isinstance(kept, dict) and isinstance(present, dict):
        for key in [*present, *(key for key in kept if key not in present)]:
            if key in LATER:
                continue
            name = f"{where}.{key}" if where else str(key)
            if key not in kept or key not in present:
                return f"{visible(name, 2 * LONGEST)} is {'missing' if key in present else 'no key of results'}"
            if found := difference(kept[key], present[key], name):
                return found
        return ""
    if isinstance(kept, list) and isinstance(present, list) and len(kept) == len(present):
        pairs = enumerate(zip(kept, present, strict=True))
        return next(filter(None, (difference(*pair, f"{where}[{number}]") for number, pair in pairs)), "")
    if (type(kept) is type(present) and kept == present) or close(kept, present):
        return ""
    return f"{visible(where, 2 * LONGEST)} is {shown(kept)}, but the raw values give {shown(present)}"


def close(kept: Any, present: Any) -> bool:
    """Whether two numbers are the same but for rounding."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (kept, present))
    return numbers and math.isclose(kept, present, rel_tol=CLOSE, abs_tol=CLOSE * CLOSE)


def shown(value: Any) -> str:
    """A value as JSON, cut; of a list its length."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return visible(msgspec.json.encode(value).decode(errors="replace"), LONGEST)
