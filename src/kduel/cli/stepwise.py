"""`kduel bisect --step` as a command for `git bisect run`, to which a status from 1 to 127 is a verdict on the commit."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from kduel.cli.interrupt import is_interruption
from kduel.cli.trouble import as_user_error
from kduel.core.errors import KduelError

STEP = "--step"
ABORT = 255
"""Ends `git bisect run`: nothing is known of the commit, nor will be of the next one. All that ends commands otherwise (1, 2
and 3) would mean to git that the commit is bad, and it would name a wrong one."""


class Stepwise(click.Command):
    """A command of which every error ends with ABORT where it has the option --step, that of a misspelt option, too."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the command line. Raises what click raises."""
        with abort_on_error(args):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Carry it out. Raises what the command raises."""
        with abort_on_error([STEP] if ctx.params.get("step") is not None else []):
            return super().invoke(ctx)


@contextmanager
def abort_on_error(words: Sequence[str]) -> Iterator[None]:
    """Give every error the exit status ABORT, if --step is among the words of the command line."""
    words = list(words)  # Parsing takes them away.
    try:
        yield
    except (click.exceptions.Exit, click.exceptions.Abort):
        raise
    except Exception as error:
        if is_interruption(error) or not any(word.partition("=")[0] == STEP for word in words):
            raise
        told = error if isinstance(error, click.ClickException | KduelError) else as_user_error(error)
        if isinstance(told, KduelError):
            told.exit_status = ABORT
            raise told from error.__cause__
        if isinstance(told, click.ClickException):
            told.show()
        else:
            traceback.print_exception(error)
        raise click.exceptions.Exit(ABORT) from error
