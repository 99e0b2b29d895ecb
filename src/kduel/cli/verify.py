"""`kduel verify`: whether a run's files are those that its trials left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kduel.cli.options import format_option, output_option, run_argument
from kduel.cli.output import emit, emit_json
from kduel.core.errors import HOST_LACKS, NOT_MEASURED, InputError
from kduel.core.text import plural

if TYPE_CHECKING:
    from kduel.store.integrity import Integrity


@click.command("verify")
@run_argument
@format_option("text", "json")
@output_option
def command(run: Path, form: str, output: Path | None) -> None:
    """Check that no file of RUN was changed, added or removed after its trial had ended.

    Each trial keeps a manifest of SHA-256 (manifest.sha256, for `sha256sum --check` too), which covers its raw files,
    lock.json, plan.jsonl and study.toml. The plan is compared with the one that the study and its seed give. Imported
    files are compared with their hashes in import.json. Of a merged run every part is checked. Where the raw files are as they
    were, they are judged again, and RUN/results.json must say the same; `kduel report RUN -f json -o RUN/results.json` writes
    it again. Other reports, such as RUN/report/index.html, are not checked: `kduel report` writes them from the raw files.

    Exit status: 0 if nothing was changed, 1 if something was, or is damaged, 3 if this user may
    not read a file. It detects damage and careless edits, not
    deliberate fraud: anybody can write new manifests.
    """
    from kduel.core.text import printable
    from kduel.judge.kept import with_results
    from kduel.store.imported.support.store import examine as examine_import
    from kduel.store.integrity import of_error, verify
    from kduel.store.merged import examine as examine_merged
    from kduel.store.rundir import EXACT, RunDir

    opened = RunDir.open(run)
    what = "imported file" if opened.imported else "trial"
    try:
        if opened.imported:
            found = examine_import(run)
        elif opened.merged:
            found = examine_merged(run)
        else:
            found = verify(opened)
            if opened.exact_part is not None:
                found = found.together(verify(RunDir.open(opened.exact_part)), EXACT)
        found = with_results(found, run)
    except InputError as error:
        # A damaged document is the answer to the question, not a wrong question.
        found = of_error(error)
    if form == "json":
        emit_json(found, output)
    else:
        emit(printable(as_text(found, what)), output)
    if found.changes:
        raise click.exceptions.Exit(NOT_MEASURED)
    if found.unreadable:
        raise click.exceptions.Exit(HOST_LACKS)


def as_text(found: Integrity, what: str) -> str:
    """A line of counts, then a line for each change, and for each file that was not checked."""
    head = f"{plural(found.checked, what)} checked, "
    lines = [head + (f"{len(found.changes)} changed afterwards:" if found.changes else "nothing changed afterwards")]
    if found.unprotected:
        lines.append(f"{found.unprotected} trials of KDuel 0.1.0 have no manifest: nothing is known of their files")
    lines += [f"  {change}" for change in found.changes]
    if found.unreadable:
        lines.append(f"{plural(len(found.unreadable), 'file')} cannot be read:")
        lines += [f"  {one}" for one in found.unreadable]
    return "\n".join([*lines, *(f"note: {note}" for note in found.notes), ""])
