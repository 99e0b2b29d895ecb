"""Measuring a commit with a command of the user's, run in a checkout of that commit."""

import contextlib
import math
import os
import re
import shutil
import subprocess
from pathlib import Path

from kduel.core.errors import HostError
from kduel.core.supervised_process import supervised_process
from kduel.core.text import printable
from kduel.run.bisect.git import check_out, git
from kduel.run.bisect.terms import Unmeasurable

KEPT = 8
"""Checkouts that are kept, with what the command built there; the ends' two are always."""
MOST_OUTPUT = 1 << 20
"""Bytes that a command may print."""


class ShellMeasurement:
    """Runs a command in a checkout for each commit; the checkouts are below `place` and stay until `close`."""

    def __init__(self, tree: Path, place: Path, line: str, ends: tuple[str, str], timeout: float) -> None:
        self.tree, self.place, self.line, self.ends, self.timeout = tree, place, line, ends, timeout
        self.used: list[str] = []

    def __call__(self, commit: str) -> float:
        """One value. Raises Unmeasurable where the command fails, hangs, or prints anything but one number."""
        checkout = self.check_out(commit)
        status, output, errors = self.run(checkout, commit)
        if status:
            last = (errors.strip() or output.strip()).splitlines()[-1:]
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            raise Unmeasurable(printable(f"the command {how}{': ' + last[0][:200] if last else ''}"))
        return parse_number(output)

    def run(self, checkout: Path, commit: str) -> tuple[int, str, str]:
        """The command's status, standard output and standard error. What it started ends with it, and with us."""
        log, said = checkout.with_suffix(".out"), checkout.with_suffix(".err")
        environment = {**os.environ, "KDUEL_COMMIT": commit}
        with contextlib.ExitStack() as held:
            out, err = held.enter_context(log.open("wb")), held.enter_context(said.open("wb"))
            try:
                process = held.enter_context(
                    supervised_process(
                        ["/bin/sh", "-c", self.line], stdout=out, stderr=err, environment=environment, cwd=checkout
                    )
                )
            except OSError as error:
                raise HostError(f"cannot run /bin/sh: {error.strerror}", "Install a shell there.") from error
            try:
                status = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                raise Unmeasurable(
                    f"the command did not end within {self.timeout:g} s", "Give it more time with --timeout."
                ) from None
        return status, read_beginning(log), read_beginning(said)

    def check_out(self, commit: str) -> Path:
        """The commit's checkout, made if need be. What the command left there stays; changed sources are restored."""
        path = self.place / commit
        if commit in self.used and path.is_dir():
            self.used.remove(commit)
        else:
            shutil.rmtree(path, ignore_errors=True)
            git(self.tree, "worktree", "prune")
            git(self.tree, "worktree", "add", "--quiet", "--force", "--detach", str(path), commit)
            spare = [one for one in self.used if one not in self.ends]
            if len(self.used) >= KEPT and spare:
                self.remove(spare[0])
        self.used.append(commit)
        check_out(path, commit)
        return path

    def remove(self, commit: str) -> None:
        git(self.tree, "worktree", "remove", "--force", str(self.place / commit), check=False)
        shutil.rmtree(self.place / commit, ignore_errors=True)
        self.used = [one for one in self.used if one != commit]

    def close(self) -> None:
        for commit in list(self.used):
            self.remove(commit)
        shutil.rmtree(self.place, ignore_errors=True)
        git(self.tree, "worktree", "prune", check=False)


def read_beginning(path: Path) -> str:
    """The first MOST_OUTPUT bytes of a file, as text."""
    with path.open("rb") as stream:
        return stream.read(MOST_OUTPUT).decode("utf-8", errors="replace")


def parse_number(output: str) -> float:
    """The one number that a command printed. Raises Unmeasurable where it is anything else."""
    words = output.split()
    if not words:
        raise Unmeasurable("the command printed nothing", "It must print one number on standard output.")
    if len(words) > 1:
        many = sum(re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", word, re.IGNORECASE) is not None for word in words)
        what = f"{many} numbers" if many == len(words) else f"{printable(output.strip())[:80]!r}"
        raise Unmeasurable(f"the command printed {what}, not one number", "Send everything else to standard error.")
    try:
        value = float(words[0])
    except ValueError:
        raise Unmeasurable(f"the command printed {printable(words[0])[:80]!r}, which is no number") from None
    if not math.isfinite(value):
        raise Unmeasurable(f"the command printed {words[0][:20]}, which is no finite number")
    return value
