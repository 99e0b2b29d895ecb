"""Check of a run's results.json against its raw values: the file that scripts read is derived, and in no manifest."""

import json
import math
import shlex
from collections import Counter
from collections.abc import Set
from pathlib import Path
from typing import Any

import msgspec

from kduel.core.errors import InputError
from kduel.core.results import SCHEMA, Results
from kduel.core.text import list_few, plural, visible
from kduel.core.untrusted import read_whole
from kduel.core.version import commit_of, full_version
from kduel.judge.evaluate import judge_run
from kduel.judge.lint.findings import machine_out, other_work
from kduel.judge.verdict.unfinished import find_unfinished
from kduel.store.integrity import MOST_NAMED, Integrity, compare_page, derived_plan
from kduel.store.manifest import run_checksum
from kduel.store.merged import parts
from kduel.store.rundir import EXACT, PAGE, RESULTS, RunDir

LATER = frozenset({"explanations", "judged_by"})
"""Keys of results that are not compared: `kduel explain` adds to a written run; the version may differ."""
CLOSE = 1e-9
"""The relative difference of two numbers that are the same: another processor or Python may round the last digits otherwise."""
RECOVER = "restore the run from a copy"
LONGEST = 60
"""Characters of a value that a sentence shows."""


def with_results(found: Integrity, run: Path) -> Integrity:
    """Integrity of a run's raw files, and of each results.json derived from them, if the raw files are unchanged."""
    if found.changes or found.unreadable:
        return found
    opened = RunDir.open(run)
    places = {"": run}
    if opened.merged:
        places |= {str(one.run.path.relative_to(run)): one.run.path for one in parts(run)}
    elif opened.exact_part is not None:
        places[EXACT] = opened.exact_part
    for name, place in places.items():
        for changes, notes in (compare_kept(place), compare_page(place)):
            found = found.together(Integrity(checked=0, changes=changes, notes=notes), name)
    if opened.merged or found.changes or found.notes or not (run / RESULTS).exists():
        return found
    left = find_unfinished(msgspec.json.decode(read_whole(run / RESULTS), type=Results))
    notes = (
        [f"the run has {left.blocks}: it was interrupted or stopped, or its last trials were removed"] if left else []
    )
    return found.together(Integrity(checked=0, changes=[], notes=notes), "")


def compare_kept(run: Path) -> tuple[list[str], list[str]]:
    """Differences of RUN/results.json from what the raw values give, and reasons why it was not compared, a sentence
    each. Nothing where an import or a merged run has none. Judges the run again."""
    path, kept_run = run / RESULTS, RunDir.find(run)
    remedy = f"`kduel report {shlex.quote(str(run))} -f json -o {shlex.quote(str(path))}` writes it again"
    if not path.exists():
        if not kept_run.single:
            return [], []
        planned, there = len(derived_plan(kept_run.lock())), len(kept_run.names())
        ended = there >= planned or (there > 0 and find_unfinished(judge_run(kept_run.path)) is None)
        if there >= planned or (ended and (kept_run.path / PAGE).is_file()):
            return [f"{RESULTS} is missing; {remedy}"], []
        if ended:
            return [], [f"{RESULTS} is missing: the run has ended and was never written up; {remedy}"]
        return [], [f"{RESULTS} is missing: the run has {there} of {planned} trials, and was interrupted"]
    if path.is_dir():
        remedy = f"remove it; {remedy}"
    try:
        data = read_whole(path)
        kept = msgspec.json.decode(data, type=dict[str, Any])
        check_unique_keys(data)
    except PermissionError as error:
        return [], [f"{RESULTS} cannot be read and was not compared: {error.strerror}"]
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else visible(error, LONGEST)
        return [f"{RESULTS} cannot be read ({why}); {remedy}"], []
    lost = missing_parts(kept, kept_run)
    try:
        earlier = None if lost else earlier_state(kept, kept_run)
        results = judge_run(run, earlier)
    except InputError as error:
        if lost:
            return lost, []
        return [], [f"{RESULTS} was not compared, as the run cannot be judged again here: {error.message}"]
    present = msgspec.json.decode(msgspec.json.encode(results))
    differing = difference(identity(kept), identity(present))
    if lost and not differing:
        return lost, []
    warnings = kept.get("warnings")
    if earlier is not None and isinstance(warnings, list):
        # Which machines were out of service is not known of an earlier state.
        out = machine_out.PLUGIN.name
        kept |= {"warnings": without_finding(warnings, out)}
    if not (found := difference(kept, present)):
        if earlier is None:
            return [], []
        now = len(kept_run.names())
        return [], [f"{RESULTS} is of the first {len(results.trials)} of now {now} trials; {remedy}"]
    if differing:
        return [f"{RESULTS} is of another run: {differing}; {remedy}"], []
    version = kept.get("judged_by")
    if isinstance(version, str) and version != full_version():
        writer = f"{RESULTS} was written by KDuel {visible(version, LONGEST)}, this is {full_version()}"
        return [], [f"{writer}, which may judge otherwise: {found}; {remedy}"]
    if isinstance(kept.get("schema"), int) and kept["schema"] < SCHEMA:
        return [], [
            f"{RESULTS} has schema {kept['schema']}, this is {SCHEMA}, which has other words: {found}; {remedy}"
        ]
    # One version without a commit stands for many.
    older = (
        "" if commit_of(version) else " (it does not name the commit of KDuel that wrote it, which may be another)"
    )
    return [f"{RESULTS}: {found}{older}; {remedy}"], []


def missing_parts(kept: dict[str, Any], run: RunDir) -> list[str]:
    """Parts that the kept results were made of and that are missing now, a sentence each: a rewrite hides them."""
    if not run.single:
        return []
    lost = (
        [f"{EXACT}/ is missing, whose counts {RESULTS} has; {RECOVER}"]
        if kept.get("exact") and run.exact_part is None
        else []
    )
    if names := sorted(trials_in(kept) - {*run.names()}):
        told = list_few([f"trials/{visible(name, LONGEST)}" for name in names], MOST_NAMED)
        lost.append(f"{told} {'is' if len(names) == 1 else 'are'} missing, which {RESULTS} has; {RECOVER}")
    return lost


def trials_in(kept: dict[str, Any]) -> set[str]:
    """Names of the trials in kept results; none where these are damaged."""
    try:
        return {str(trial["id"]) for trial in kept["trials"]}
    except (KeyError, TypeError):
        return set()


def earlier_state(kept: dict[str, Any], run: RunDir) -> Set[str] | None:
    """The directories that the kept results are of, where the run was continued since; None where they are of all trials, or
    of some that one machine never had alone. Raises InputError."""
    if not run.single:
        return None
    known, names, study = trials_in(kept), {*run.names()}, kept.get("study")
    stated = study.get("checksum") if isinstance(study, dict) else None
    if not known or not known < names or stated == run_checksum(run.trials, names):
        return None
    if not run.lock().hosts and known != {*sorted(names)[: len(known)]}:
        return None
    boots = kept.get("repeated")
    again = (
        [str(boot.get("directory")) for boot in boots if isinstance(boot, dict)] if isinstance(boots, list) else []
    )
    return {*(f"{run.trials.name}/{name}" for name in known), *again}


def identity(results: dict[str, Any]) -> dict[str, Any]:
    """The values that distinguish a run from others: no version of KDuel gives it other ones."""
    contenders = results.get("contenders")
    return {
        "study": items_of(results.get("study"), "name", "seed"),
        "contenders": [
            items_of(one, "name", "sha256", "cmdline") for one in (contenders if isinstance(contenders, list) else [])
        ],
    }


def items_of(table: object, *names: str) -> dict[str, Any]:
    return {name: table.get(name) if isinstance(table, dict) else None for name in names}


def check_unique_keys(data: bytes) -> None:
    """Raises ValueError for JSON with a key that an object has twice: of these programs read one, or the other."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
            raise ValueError(f"it has the key {name!r} twice")

    json.loads(data, object_pairs_hook=check)


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
    if isinstance(kept, list) and isinstance(present, list):
        # `kduel explain` adds this finding to a run that is written up.
        kept, present = (without_finding(one, other_work.PLUGIN.name) for one in (kept, present))
    if isinstance(kept, list) and isinstance(present, list) and len(kept) == len(present):
        pairs = enumerate(zip(kept, present, strict=True))
        return next(filter(None, (difference(*pair, f"{where}[{number}]") for number, pair in pairs)), "")
    if (type(kept) is type(present) and kept == present) or equal_but_rounding(kept, present):
        return ""
    return f"{visible(where, 2 * LONGEST)} is {json_text(kept)}, but the raw values give {json_text(present)}"


def without_finding(found: list[Any], code: str) -> list[Any]:
    return [one for one in found if not (isinstance(one, dict) and one.get("code") == code)]


def equal_but_rounding(kept: Any, present: Any) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (kept, present))
    return numbers and math.isclose(kept, present, rel_tol=CLOSE, abs_tol=CLOSE * CLOSE)


def json_text(value: Any) -> str:
    """A value as JSON, cut; of a list or an object its length."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {plural(len(value), 'key')}"
    return visible(msgspec.json.encode(value).decode(errors="replace"), LONGEST)
