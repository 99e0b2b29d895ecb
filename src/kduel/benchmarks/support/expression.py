"""Regular expressions of a study, searched by RE2 within bounds: Python's own engine may take exponential time."""

import time
from collections.abc import Iterator
from typing import Any

from kduel.core.untrusted import MalformedError

MOST_MEMORY = 1 << 18
"""Bytes of an expression when it is compiled, which bound the time a byte of text."""
MOST_CPU_SECONDS = 10.0
"""CPU time of all matches of a step: each is found in linear time, and there may be as many as bytes."""
MOST_WORK = 2_000_000_000
"""Characters times instructions of the expression: about 10 s of CPU time for the worst expressions, which keep as many
states as instructions. An expression of 100 instructions may search all that is read of a file."""


def compile_expression(text: str) -> Any:
    """The expression with `^` and `$` at every line. Raises ValueError where it is none of RE2's, or too large."""
    import re2

    options = re2.Options()
    options.max_mem = MOST_MEMORY
    options.log_errors = False
    try:
        return re2.compile(f"(?m){text}", options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        # Where a parenthesis is missing, the part is the whole, with the flag.
        what, _, part = reason.partition(": ")
        where = f" at character {text.index(part) + 1}: {part}" if part and text.count(part) == 1 else ""
        raise ValueError(
            f"regex {text!r} is no regular expression of RE2 ({what}{where}), which has neither look-around nor "
            "back-references"
        ) from error


def find_matches(text: str, within: str, started: float) -> Iterator[Any]:
    """Each match. Raises MalformedError where they take too long since the thread's CPU time `started`."""
    expression = compile_expression(text)
    if expression.programsize * len(within) > MOST_WORK:
        raise MalformedError(
            f"regex {text[:100]!r} is too large for {len(within):,} characters: make it or the output shorter"
        )
    for match in expression.finditer(within):
        yield match
        if time.thread_time() - started > MOST_CPU_SECONDS:
            break
    if time.thread_time() - started > MOST_CPU_SECONDS:
        raise MalformedError(
            f"regex {text[:100]!r}, with those before it, takes more than {MOST_CPU_SECONDS:g} s of CPU time on "
            f"{len(within):,} characters"
        )
