"""`kduel verify`: check that a run's files are those that its trials left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kduel.cli.options import NamedPath, format_option, option, output_option, run_argument
from kduel.cli.output import emit, emit_json
from kduel.core.errors import HOST_LACKS, NOT_MEASURED, InputError
from kduel.core.text import fold, plural, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kduel.store.integrity import Integrity

REMEDY = "Restore the run from a copy, remove what was added, or measure again.\n"
"""For raw files: a line about a derived one names its own."""


@click.command("verify")
@run_argument
@option(
    "--against", "Compare each exact count with another run's results.json, too.",
    NamedPath(exists=True, dir_okay=False), "FILE",
)  # fmt: skip
@format_option("text", "json")
@output_option
def command(run: Path, against: Path | None, form: str, output: Path | None) -> None:
    """Check that no file of RUN was changed, added or removed after its trial had ended.

    Each trial keeps a manifest of SHA-256 (manifest.sha256, for `sha256sum --check` too), which covers its raw files,
    lock.json, plan.jsonl and study.toml. The plan is compared with the one that the study and its seed give. Imported
    files are compared with their hashes in import.json. Of a merged run every part is checked. Where the raw files are as they
    were, they are judged again, and RUN/results.json must say the same, whichever version wrote it; `kduel report RUN -f json -o RUN/results.json`
    writes it again. A link, a FIFO or a device anywhere in RUN is a change, and then nothing else is compared. Of RUN/report
    the page is compared with the SHA-256 that was kept when it was written; the rest is not checked, nor are the results of `kduel explain` in RUN/explain, but for
    the trials there.

    Exit status: 0 if nothing was changed, 1 if something was, is missing or is damaged, 2 if RUN is no run, 3 if something could not be compared
    (this user may not read it, or another version of KDuel wrote it), if results.json is of fewer trials than RUN has now, or if
    RUN is not finished. It detects damage and careless edits, not deliberate fraud: anybody can write new manifests.

    Exact counts are the same on every host. With --against, every count that FILE has of the same kernels must be the same in RUN,
    and what FILE says of them must follow from them, or 1 is the exit status; 3 if RUN lacks some of them, or if some differ and
    other operations or conditions were counted around them; 2 if none need be the same: other machines, QEMU, seeds or kernels.
    FILE may be compressed by xz.
    """
    from kduel.judge.results_check import with_results
    from kduel.store.imported.support.store import examine as examine_import
    from kduel.store.integrity import Integrity, check_special_files, of_error, verify
    from kduel.store.merged import examine as examine_merged
    from kduel.store.rundir import RunDir

    # A run that has lost its lock.json still has its plan.
    opened = RunDir(run) if (run / "plan.jsonl").is_file() else RunDir.find(run)
    what = "imported file" if opened.imported else "trial"
    try:
        if special := check_special_files(run):
            found = special
        elif opened.imported:
            found = examine_import(run)
        elif opened.merged:
            found = examine_merged(run)
        else:
            found = verify(opened)
        raw = found
        found = with_results(found, run)
    except InputError as error:
        # A damaged document is the answer to the question, not a wrong question.
        raw = found = of_error(error)
    text = as_text(found, what) + (REMEDY if raw.changes else "")
    if against is not None:
        from kduel.judge.published import compare_published, read_results

        try:
            compared = compare_published(run, against)
        except InputError as error:
            read_results(against)
            if not found.changes and not found.unreadable:
                raise
            compared = Integrity(checked=0, changes=[], notes=[f"not compared: {error.message}"])
        text += comparison_text(compared, against)
        found = found.together(compared, str(against))
    if form == "json":
        emit_json(found, output)
    else:
        emit(printable(text), output)
    if found.changes:
        raise click.exceptions.Exit(NOT_MEASURED)
    if found.unreadable or found.notes:
        raise click.exceptions.Exit(HOST_LACKS)


def comparison_text(compared: Integrity, against: Path) -> str:
    """Number of counts that equal those of a file, and the others."""
    said = "these differ:" if compared.changes else "all the same" if compared.checked and not compared.notes else ""
    lines = [f"{plural(compared.checked, 'count')} compared with {against}{said and f': {said}'}"]
    return in_lines([*lines, *(f"  {one}" for one in compared.changes), *(f"note: {one}" for one in compared.notes)])


def as_text(found: Integrity, what: str) -> str:
    """A line of counts, then a line for each change, and for each file that was not checked."""
    lines = [f"{plural(found.checked, what)} checked, {conclusion(found)}"]
    lines += [f"  {change}" for change in found.changes]
    if found.unreadable:
        lines.append(f"{plural(len(found.unreadable), 'file')} cannot be read:")
        lines += [f"  {one}" for one in found.unreadable]
    return in_lines([*lines, *(f"note: {note}" for note in found.notes)])


def in_lines(sentences: Sequence[str]) -> str:
    """Text that is folded, with a hanging indent; commands are to be pasted and stay whole."""
    return "".join(f"{line}\n" for one in sentences for line in fold(one))


def conclusion(found: Integrity) -> str:
    """The end of the first line, which says no more than what was compared."""
    if found.changes:
        return f"{plural(len(found.changes), 'change')} found:"
    if found.unreadable:
        return "no change found in what could be read"
    return "no raw file changed afterwards" if found.notes else "nothing changed afterwards"
