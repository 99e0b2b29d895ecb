"""Outputs that are known, and are not read (unread.toml): what they are, and what to give instead."""

import re
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.toml import table_beside

LINES = 30


def check_read(path: Path, head: str) -> None:
    """Raises InputError where a file begins like one of these."""
    begin = "\n".join(head.split("\n", LINES)[:LINES])
    for known in table_beside(__file__)["output"]:
        if re.search(known["pattern"], begin, re.MULTILINE):
            raise InputError(f"{path.name} is {known['what']}", known["remedy"])
