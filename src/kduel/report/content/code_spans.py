"""Commands in backquotes in a sentence, which formats show as code."""

from __future__ import annotations

import re

CODE = re.compile(r"`(kduel [^`]+|--[a-z][a-z-]* [\w:]+|-*\w[\w=./+-]*)`")
"""Our own commands, options with their value, and single words. Names of contenders and metrics may hold backquotes: what
stands between two of them is none."""


def split_code(text: str) -> list[str]:
    """Parts of a text, of which each second one is code, without its backquotes."""
    return CODE.split(text)
