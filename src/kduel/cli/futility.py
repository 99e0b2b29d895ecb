"""`--futility`: what a run does when no undecided primary metric is likely to be decided any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kduel.cli.options import option
from kduel.core.errors import InputError

if TYPE_CHECKING:
    from kduel.cli.terminal import Terminal
    from kduel.core.results import Results
    from kduel.judge.verdict.futility import Hopeless
    from kduel.judge.verdict.rule import Rule

Choice = Literal["stop", "continue", "ask"]

CAUSES = ("two-modes", "drift", "autocorrelation", "order-effect", "quantised", "ties", "host-load", "host-wait")
"""Codes of the lint's findings that explain why values vary."""

futility_option = option(
    "--futility", "What to do if no undecided primary metric is likely to be decided within the maximum of blocks.  "
    "[default: ask on a terminal, else continue]", ["stop", "continue", "ask"],
)  # fmt: skip


def choose_action(given: Choice | None, quiet: bool) -> Choice:
    """The choice, or its default here. Raises InputError where there is no terminal to ask on."""
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if given == "ask" and not terminal:
        raise InputError("--futility ask needs a terminal to ask on", "Give --futility stop or --futility continue.")
    return given or ("ask" if terminal and not quiet else "continue")


def should_give_up(choice: Choice, terminal: Terminal, run: Path, hopeless: list[Hopeless], rule: Rule) -> bool:
    """Print which metrics are unlikely to be decided and why. True if the run ends now."""
    from kduel.judge.evaluate import judge_run
    from kduel.judge.verdict.futility import futility_text

    terminal.warn(futility_text(hopeless, rule, list(explain_spread(judge_run(run), hopeless))))
    if choice == "ask":
        return terminal.confirm("End the run here, as undecided?")
    if choice == "continue":
        terminal.info("The run continues (--futility stop would end it).")
    return choice == "stop"


def explain_spread(results: Results, hopeless: list[Hopeless]) -> Iterator[str]:
    """Messages of the findings that explain the spread of those metrics, each once."""
    keys = {(one.benchmark, one.metric, one.contender) for one in hopeless}
    concerned = [m for m in results.metrics if (m.benchmark, m.metric, m.contender) in keys]
    every = [*results.warnings, *(warning for one in concerned for warning in one.warnings)]
    found = [warning for warning in every if warning.code in CAUSES]
    yield from {warning.code: warning.message for warning in reversed(found)}.values()
