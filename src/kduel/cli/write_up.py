"""The end of a run: its report in the terminal, its page and results.json beside the raw files."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kduel.cli.stdout import NobodyReadsError
from kduel.cli.terminal import say
from kduel.core.errors import NOT_MEASURED, SLOWER, HostError
from kduel.core.text import printable
from kduel.store.rundir import PAGE, RESULTS
from kduel.store.whole_files import as_disk_error, write_whole

if TYPE_CHECKING:
    from kduel.core.results import Results

VERSIONS = PAGE.with_name("versions.html")
"""The page of a run of several kernels as a history."""
LINES_BESIDES = 3
"""Lines reserved below the table: the report's place, the prompt, and a contender that could not be measured."""


def write_up(path: Path, fail_on: str | None, *, keep: bool = True, notify: str = "") -> None:
    """Write the report to the terminal and, to `keep` it, as a page; start `notify`. May end by `--fail-on`."""
    from kduel.judge.evaluate import judge_run
    from kduel.report.text import show_closing

    results = judge_run(path)
    try:
        click.echo(show_closing(results, shlex.quote(str(path)), LINES_BESIDES), nl=False, color=True)
    except (HostError, NobodyReadsError):
        if keep:
            keep_report(path, results)
        raise
    if keep:
        keep_report(path, results)
    else:
        click.echo(f"Report: {path / PAGE}")
    status, reason = conclude(results, fail_on)
    if notify:
        sys.stdout.flush()
        from kduel.report import report_format

        environment = os.environ | {"KDUEL_RUN": str(path.resolve()), "KDUEL_STATUS": str(status)}
        done = subprocess.run(
            ["sh", "-c", notify], input=report_format("mail").render(results), env=environment, text=True, check=False
        )
        if done.returncode:
            say(printable(f"kduel: the command of --notify ended with status {done.returncode}: {notify}"))
    if status:
        sys.stdout.flush()
        say(printable(f"kduel: {reason}"))
        raise click.exceptions.Exit(status)


def conclude(results: Results, fail_on: str | None) -> tuple[int, str]:
    """Exit status of a finished run, and the reason where it is not 0."""
    from kduel.judge.verdict.headline import matters

    slower = [m for m in results.gating if m.role == "primary" and matters(m) and m.verdict in ("slower", "more")]
    if fail_on == "slower" and slower:
        named = ", ".join(f"{m.benchmark}/{m.metric} of {m.contender}" for m in slower)
        return SLOWER, f"status {SLOWER} by --fail-on slower: {named}"
    whole = {trial.contender for trial in results.trials if trial.status != "void"}
    lost = [contender.name for contender in results.contenders if contender.name not in whole]
    if lost:
        return NOT_MEASURED, f"not measured: {', '.join(lost)}; the report gives the reasons."
    return 0, ""


def keep_report(path: Path, results: Results) -> None:
    """Write results.json and the page of a run next to its raw files. Ends the process where the page cannot be written."""
    from kduel.analysis.versions import courses

    with as_disk_error(path):
        write_whole(path / RESULTS, msgspec.json.encode(results) + b"\n")
    sys.stdout.flush()
    pages = [["--format", "html"]]
    if len(results.contenders) > 2 and courses(results):
        pages.append(["--format", "versions", "--output", str(path / VERSIONS)])
    for words in pages:
        if failed := start_kduel("report", *words, "--", str(path)):
            raise click.exceptions.Exit(failed)


def start_kduel(*words: str) -> int:
    """The exit status of `kduel WORDS...` in its own process: drawing takes memory and never gives it back."""
    return subprocess.run([sys.executable, "-P", "-m", "kduel", *words], check=False).returncode
