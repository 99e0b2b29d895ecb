"""Numbers as spreadsheets write them: marks of thousands, and decimal commas."""

import re

GROUPED = re.compile(
    r"[-+]?\d{1,3}(?:([ \u00a0\u202f'])\d{3}(?:\1\d{3})*(?:[.,]\d+)?|(?:\.\d{3})+,\d+|(?:,\d{3})+\.\d+|(?:([.,])\d{3})(?:\2\d{3})+)"
)
"""Digits in groups of three, where it is certain which mark is that of the groups."""
EITHER = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}", re.ASCII)
"""Digits of which the mark may be that of the groups, or the decimal one."""
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?", re.ASCII)


class Notation:
    """Meaning of the marks `.` and `,` in one column, by its cells."""

    def __init__(self) -> None:
        self.groups = set[str]()
        self.decimals = set[str]()
        self.either: dict[str, str] = {}
        """By mark, the first cell that may be read in two ways."""
        self.below_thousand = ""
        self.ungrouped = False
        """A whole number from a thousand on has no mark."""

    def add(self, cell: str) -> None:
        if found := EITHER.fullmatch(cell):
            self.either.setdefault(found[1], cell)
        elif GROUPED.fullmatch(cell):
            marks, decimal = re.findall("[.,]", cell), decimal_of(cell)
            self.decimals |= {*decimal}
            self.groups |= {*marks} - {decimal}
        elif found := re.fullmatch(r"[-+]?\d*([.,])\d*(?:[eE][-+]?\d+)?", cell, re.ASCII):
            self.decimals.add(found[1])
        elif re.fullmatch(r"[-+]?\d{1,3}", cell, re.ASCII):
            self.below_thousand = cell
        else:
            self.ungrouped |= bool(re.fullmatch(r"[-+]?\d+", cell, re.ASCII))

    def are_groups(self, mark: str) -> bool:
        """True where a cell shows that the mark is that of the groups: by two of it, or by the other one as the decimal one."""
        return mark not in self.decimals and bool(self.groups & {mark} or self.decimals)


def decimal_of(grouped: str) -> str:
    """The decimal mark of a number with digits in groups; the empty text where there is none."""
    marks = re.findall(r"[.,]", grouped)
    return marks[-1] if marks and marks.count(marks[-1]) == 1 else ""


def plain_number(field: str, delimiter: str) -> str:
    """A number of a spreadsheet as this house writes it, by itself; any other field as it is."""
    text = field.strip()
    if GROUPED.fullmatch(text):
        decimal = decimal_of(text)
        whole, _, fraction = text.rpartition(decimal) if decimal else (text, "", "")
        return re.sub(r"[^\d+-]", "", whole) + (f".{fraction}" if fraction else "")
    return text.replace(",", ".") if delimiter != "," and DECIMAL_COMMA.fullmatch(text) else field
