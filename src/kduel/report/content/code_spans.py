"""Commands in backquotes in a sentence, which formats show as code."""

from __future__ import annotations


def split_code(text: str) -> list[str]:
    """Parts of a text, of which each second one is code. A backquote without another one belongs to a name, as does an empty pair."""
    parts = text.split("`")
    return parts if len(parts) % 2 and all(parts[1::2]) else [text]
