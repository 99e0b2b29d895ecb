"""`kduel resume`: continues an interrupted run from its directory."""

import contextlib
from pathlib import Path

import click

from kduel.cli.execute import RunRequest, carry_out
from kduel.cli.futility import Choice, futility_option
from kduel.cli.options import fail_on_option, notify_option, offline_option, quiet_option, run_argument
from kduel.core.errors import InputError
from kduel.store.documents import study_of
from kduel.store.rundir import PROFILE_ORIGIN, RunDir


@click.command("resume")
@run_argument
@offline_option
@futility_option
@fail_on_option
@notify_option
@quiet_option
def command(run: Path, offline: bool, futility: Choice | None, fail_on: str | None, notify: str, quiet: bool) -> None:
    """Continue the interrupted RUN (a directory). Plan, interim analyses and verdict are those of an uninterrupted run.

    Relative paths in the study are relative to the directory in which the run was started.
    """
    opened = RunDir.open(run)
    lock = opened.lock(prepared=False)
    if lock.origin == PROFILE_ORIGIN:
        raise InputError(
            f"{run} holds the profiled trials of another run",
            "Continue it with `kduel explain` and the same options.",
        )
    study = study_of(lock, opened.study_text())
    # A relative path is one of here, not of where the run was started.
    out = run.absolute()
    # A directory that is gone (a run of another host) cannot mislead: the kernels' hashes are compared.
    with contextlib.chdir(lock.directory if lock.directory and Path(lock.directory).is_dir() else "."):
        request = RunRequest(
            study=study, out=out, origin=lock.origin, seed=lock.seed, offline=offline, futility=futility,
            fail_on=fail_on, notify=notify, quiet=quiet,
        )  # fmt: skip
        carry_out(request)
