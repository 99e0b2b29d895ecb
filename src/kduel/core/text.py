"""Text that others wrote (a guest, a study file, an import), made safe to show: a terminal obeys escape sequences,
which set titles, clear the screen or forge links. Whatever KDuel prints goes through one of these."""

import os
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence

PLAIN_WIDTH = 100
"""Columns of a page where no terminal sets another number."""
CUT = "…"
LONGEST = 2000
"""Characters of one string that a report shows; the raw files have the rest."""
HIDDEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What is invisible, reorders text or is a terminal's command, and JSON needs not escape."""


def list_few(names: Sequence[str], most: int = 6, more: str = "more") -> str:
    """`a, b and 7 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} {more}" if len(names) > most else "")


def enumerate_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def visible(text: object, longest: int = LONGEST) -> str:
    """One line in which nothing is hidden: white space becomes a space, what is invisible or controls a terminal
    \\x1b or \\u202e. Cut at `longest` characters, with a mark."""
    line = str(text)
    if len(line) > longest:
        line = f"{line[:longest]}... ({len(line) - longest:,} more characters)"
    if line.isprintable():
        return line
    return "".join(escape_invisible(character) for character in line)


def check_names(*names: str) -> None:
    """Raises ValueError for a name that could end or hide the line of a message."""
    if wrong := next((name for name in names if not name.isprintable()), None):
        raise ValueError(f"{visible(repr(wrong), 80)} is no name: it has invisible characters")


def printable(text: str) -> str:
    """Text of several lines in which nothing is hidden, for messages: line ends and tabs stay, and it is not cut."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" else escape_invisible(c) for c in text)


def escape_json(text: str) -> str:
    """A JSON document in which nothing is hidden: such characters stand in strings only, where an escape means the same."""
    return HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def escape_invisible(character: str) -> str:
    if character.isprintable():
        return character
    if character.isspace():
        return " "
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # A byte that is not UTF-8, as Python holds it.
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def show_bytes(text: str) -> str:
    """A message in which bytes that are not UTF-8 stand as \\xff, also where `repr` has made \\udcff of them."""
    return re.sub(r"\\udc(?=[89a-f][0-9a-f])", r"\\x", printable(text))


ASCII = str.maketrans("−–—≈µμ·‘’“”", "---~uu*''\"\"") | str.maketrans(
    {"±": "+-", "≠": "!=", "×": "x", "…": "...", "→": "->"}
)


def ascii_only(text: str) -> str:
    """For places where only plain ASCII is sure to arrive: our own signs spelled out, the rest as \\u00e9."""
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode("ascii")


def obeys_escapes() -> bool:
    """True if a terminal of this type (TERM) is known to obey escape sequences: colours, bold, movement of the cursor."""
    return os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def did_you_mean(name: str, known: Iterable[str], form: str = "{}") -> str:
    """`Did you mean pipe? ` where one of the known names is like a misspelt one, which stands in `form`; else empty."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), list(known), 1, 0.6)
    return f"Did you mean {form.format(near[0])}? " if near else ""


def cut_in_the_middle(text: str, width: int) -> str:
    """At most so many characters: names of functions differ at both ends, and a message ends with its reason."""
    if len(text) <= width:
        return text
    left = width - len(CUT)
    return f"{text[: left - left // 2]}{CUT}{text[len(text) - left // 2 :]}"


def fold(text: str, width: int = PLAIN_WIDTH) -> list[str]:
    """Lines of at most `width` columns, the further ones indented. No word is broken, and no code in backquotes."""
    whole = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    after = " " * (len(text) - len(text.lstrip()) + 2)
    lines = textwrap.wrap(whole, width, subsequent_indent=after, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines] or [""]


def align_columns(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Lines of columns, each as wide as its widest cell, two spaces apart; those at `left` are set to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def plural(number: int, noun: str, nouns: str = "") -> str:
    """`1 block`, `1,200 blocks`; `nouns` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
