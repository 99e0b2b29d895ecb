"""Making strings safe to show: what a guest, a study file or an import said may hold anything.

Every format first makes hidden characters visible with kduel.text, then escapes what is special to itself.
"""

from __future__ import annotations

from kduel.text import LONGEST, shown, visible

__all__ = ["ASCII", "LONGEST", "ascii_only", "shown", "visible"]

ASCII = str.maketrans(
    {"−": "-", "–": "-", "—": "-", "±": "+-", "≈": "~", "≠": "!=", "µ": "u", "μ": "u", "×": "x", "·": "*", "…": "..."}
)


def ascii_only(text: str) -> str:
    """For places where only plain ASCII is sure to arrive: our own signs spelled out, the rest as \\u00e9."""
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode("ascii")
