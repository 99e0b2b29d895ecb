"""TOML tables: lists expanded to combinations."""

from __future__ import annotations

import itertools
import typing
from typing import Any


def combinations(table: dict[str, Any], keys: typing.Iterable[str]) -> list[dict[str, Any]]:
    """The table once for every combination of what its `keys` list."""
    spread = [key for key in keys if isinstance(table.get(key), list)]
    if not spread:
        return [table]
    return [
        {**table, **dict(zip(spread, chosen, strict=True))}
        for chosen in itertools.product(*(table[key] for key in spread))
    ]
