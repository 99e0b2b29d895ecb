"""How a reader repeats a run, in three commands."""

from __future__ import annotations

import re
import shlex

from kduel.core.results import Results
from kduel.core.text import visible

LONGEST = 70
"""Characters of a command in a mail; a longer one is replaced by one that takes the run's study file."""
OUT = "again"


def reproduction(results: Results) -> list[str]:
    """Commands that get KDuel, measure again with the same seed, and report; empty for imported results."""
    study = results.study
    if study.imported or study.seed is None:
        return []
    version = f"=={study.kduel}" if re.fullmatch(r"[0-9][0-9A-Za-z.+]{0,30}", study.kduel or "") else ""
    return [f"pip install kduel{version}", run_command(results), f"kduel report {OUT} --format mail"]


def run_command(results: Results) -> str:
    """`kduel run`, with the kernels and the suite where these are sufficient, else with the study file of the run."""
    study, words = results.study, [f"--seed={results.study.seed}", f"--out={OUT}"]
    plain = all(not (one.cmdline or one.scheduler or one.policy) for one in results.contenders)
    suite = study.origin or ""
    if plain and suite.isidentifier():
        kernels = [visible(one.kernel, 200) for one in results.contenders]
        command = shlex.join(["kduel", "run", *kernels, f"--suite={suite}", *words])
        if len(command) <= LONGEST:
            return command
    return shlex.join(["kduel", "run", "study.toml", *words])
