"""TOML tables: errors in the words of the file, and lists expanded to combinations."""

from __future__ import annotations

import itertools
import typing
from typing import Any

import msgspec


def validation_message(error: msgspec.ValidationError) -> str:
    """msgspec's message with its `$.a[0].b` written as `a[1].b`, counted from one."""
    message, _, where = str(error).partition(" - at `")
    if not where:
        return message
    path = where.rstrip("`").removeprefix("$").removeprefix(".").replace("[...]", "")
    for index in range(999, -1, -1):
        path = path.replace(f"[{index}]", f"[#{index + 1}]")
    return f"{path}: {message}" if path else message


def combinations(table: dict[str, Any], keys: typing.Iterable[str]) -> list[dict[str, Any]]:
    """The table once for every combination of what its `keys` list."""
    spread = [key for key in keys if isinstance(table.get(key), list)]
    if not spread:
        return [table]
    return [
        {**table, **dict(zip(spread, chosen, strict=True))}
        for chosen in itertools.product(*(table[key] for key in spread))
    ]
