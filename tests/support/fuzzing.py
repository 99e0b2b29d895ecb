"""Mutated output, and what must hold of whatever a parser makes of it. Generic over the plug-ins.

A mutation is strict where it adds no number that could be true: then a parser gives what it gave before, or refuses.
Where it may put one digit for another, no parser can know; what it gives must still stand in the text and be possible.

What holds always:

- nothing but ParseError (an importer: InputError) leaves a parser, and no fault of its own;
- a value is finite and within the range that its metric states;
- a value that its metric does not call derived stands in the text, as a whole number there, in a unit or another.
"""

from __future__ import annotations

import math
import random
import re
import string
from collections.abc import Callable
from typing import NamedTuple, Protocol

Texts = dict[str, str]
Values = dict[str, float]

NUMBER = re.compile(r"(?<![\w.])(?<!\d,)[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
UNIT = re.compile(r"(?<=[0-9])( ?)(%|[A-Za-z]+(?:/[A-Za-z]+)?)(?![\w])", re.ASCII)
UNITS = ["s", "ms", "us", "ns", "usec", "msec", "KB/sec", "GB/sec", "MiB", "kB", "MB", "", "x"]
SCALES = (1.0, 1e-3, 1e3, 1e-6, 1e6, 2.0**-20)
"""Changes of unit: what a parser may do to a printed number without its metric being called derived."""
NOISE = string.ascii_letters + string.punctuation + "\0\x1b\ufffd\N{ARABIC-INDIC DIGIT SEVEN}\N{SUPERSCRIPT TWO}"
"""What garbles a byte: all but digits and white space."""
JOINS = str.maketrans("", "", ".eE")
NONSENSE = (
    "nan",
    "inf",
    "-inf",
    "NaN",
    "Infinity",
    "9" * 400,
    "9" * 5000,
    "²",
    "٣",
    "0x10",
    "1_000",
    "",
    "--1",
)
ODD = (
    "0",
    "1",
    "-1",
    "0.0",
    "1e3",
    "1e308",
    "-0",
    "18446744073709551616",
    "9223372036854775808",
    "0.0000000000001",
    "007",
)
JUNK = (
    "[" * 100_000,
    "{" * 5000,
    '{"a":' * 20_000,
    "\0" * 100,
    "\r\n",
    "\u2028",
    "\x0c",
    "9" * 100_000,
    " " * 100_000,
    "# ",
    "<" * 5000,
)


class Target(Protocol):
    """A parser with one sample of what it reads."""

    @property
    def texts(self) -> Texts: ...

    @property
    def whole(self) -> Values | None: ...

    def outcome(self, texts: Texts) -> Values | None:
        """What the parser makes of these texts, None where it refuses them. Raises anything that it must not."""

    def untrue(self, values: Values) -> str:
        """What is wrong with these values, if the mutation added no number; empty where nothing is."""

    def impossible(self, values: Values, texts: Texts) -> str:
        """What is wrong with these values, were these the texts; empty where nothing is."""


class Mutation(NamedTuple):
    """Texts to try; `strict` as above."""

    kind: str
    texts: Texts
    strict: bool


def numbers_in(texts: Texts) -> set[str]:
    """Every number that stands in the texts, written with ten digits, in every unit."""
    found = set()
    for name, text in texts.items():
        for token in NUMBER.findall(text.replace(",", " ") if name.endswith(".csv") else text):
            value = float(token)
            if math.isfinite(value):
                found |= {f"{value * scale:.10g}" for scale in SCALES}
    return found


def examine(target: Target, mutation: Mutation) -> tuple[str, Values | None]:
    """What a parser did wrong with a mutation, empty where nothing, and what it made of it."""
    try:
        values = target.outcome(mutation.texts)
    except Exception as error:  # noqa: BLE001 whatever it is, it is what is looked for
        return f"raised {type(error).__name__}: {str(error)[:200]}", None
    if values is None:
        return "", None
    if mutation.strict and (untrue := target.untrue(values)):
        return untrue[:300], values
    return target.impossible(values, mutation.texts), values


def finding(target: Target, mutation: Mutation) -> str:
    """What a parser did wrong with a mutation, empty where nothing."""
    return examine(target, mutation)[0]


def mutate(target: Target, source: random.Random, other: Target) -> Mutation:
    """One mutation of the target's texts, sometimes with lines of `other`."""
    written = [name for name, text in target.texts.items() if text]
    name = source.choice(written)
    kind = source.choice(list(MUTATORS))
    mutator, strict = MUTATORS[kind]
    text = mutator(target.texts[name], source, other.texts.get(name, ""))
    return Mutation(kind, target.texts | {name: text}, strict)


def cut(text: str, source: random.Random, _: str) -> str:
    """At any byte, one time in two in the last line."""
    last = len(text.rstrip("\n").rpartition("\n")[0])
    return text[: source.randrange(last if source.random() < 0.5 else 0, len(text))]


def garble(text: str, source: random.Random, _: str) -> str:
    place = source.randrange(len(text))
    between = (text[place - 1 : place] + text[place + 1 : place + 2]).isdigit()
    # A point or an e between two numbers makes one of them that could be true.
    return text[:place] + source.choice(NOISE.translate(JOINS) if between else NOISE) + text[place + 1 :]


def drop_line(text: str, source: random.Random, _: str) -> str:
    lines = text.splitlines(keepends=True)
    del lines[source.randrange(len(lines))]
    return "".join(lines)


def double_line(text: str, source: random.Random, _: str) -> str:
    lines = text.splitlines(keepends=True)
    place = source.randrange(len(lines))
    return "".join([*lines[:place], lines[place], *lines[place:]])


def replace(pattern: re.Pattern[str], by: Callable[[random.Random, re.Match[str]], str]) -> Mutator:
    """One place that is like the pattern, replaced."""

    def mutator(text: str, source: random.Random, _: str) -> str:
        places = list(pattern.finditer(text))
        if not places:
            return ""
        match = source.choice(places)
        return text[: match.start()] + by(source, match) + text[match.end() :]

    return mutator


def digit(text: str, source: random.Random, _: str) -> str:
    """A digit lost, added or changed."""
    places = [place for place, character in enumerate(text) if character in string.digits]
    if not places:
        return ""
    place = source.choice(places)
    fresh = source.choice(["", source.choice(string.digits), text[place] + source.choice(string.digits)])
    return text[:place] + fresh + text[place + 1 :]


def swap_lines(text: str, source: random.Random, _: str) -> str:
    lines = text.splitlines(keepends=True)
    one, two = source.randrange(len(lines)), source.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return "".join(lines)


def interleave(text: str, source: random.Random, other: str) -> str:
    """Some lines of another output, put between."""
    lines, foreign = text.splitlines(keepends=True), other.splitlines(keepends=True) or ["\n"]
    for _ in range(source.randint(1, 4)):
        lines.insert(source.randint(0, len(lines)), source.choice(foreign))
    return "".join(lines)


def junk(text: str, source: random.Random, _: str) -> str:
    place = source.randint(0, len(text))
    return text[:place] + source.choice(JUNK) + text[place:]


def remove(text: str, source: random.Random, _: str) -> str:
    """A part taken out, from anywhere to anywhere near."""
    place = source.randrange(len(text))
    return text[:place] + text[place + source.randint(1, 200) :]


def noise(text: str, source: random.Random, _: str) -> str:
    """Several places at once."""
    characters = list(text)
    for _unused in range(source.randint(2, 30)):
        characters[source.randrange(len(characters))] = source.choice(NOISE + string.digits + "\n\t ")
    return "".join(characters)


def nothing(text: str, source: random.Random, _: str) -> str:
    return ""


Mutator = Callable[[str, random.Random, str], str]
MUTATORS: dict[str, tuple[Mutator, bool]] = {
    "cut": (cut, True),
    "emptied": (nothing, True),
    "byte garbled": (garble, True),
    "line lost": (drop_line, True),
    "line doubled": (double_line, True),
    "number made nonsense": (replace(NUMBER, lambda source, _: source.choice(NONSENSE)), True),
    "unit changed": (replace(UNIT, lambda source, match: match[1] + source.choice(UNITS)), True),
    "digit changed": (digit, False),
    "number replaced": (replace(NUMBER, lambda source, _: source.choice(ODD)), False),
    "number negated": (replace(NUMBER, lambda _, match: f"-{match[0]}"), False),
    "lines swapped": (swap_lines, False),
    "lines of another": (interleave, False),
    "junk put in": (junk, False),
    "part removed": (remove, False),
    "noise": (noise, False),
}


def swollen(text: str, source: random.Random, size: int) -> str:
    """The text with one of its own parts repeated until it has about `size` characters: what a parser that goes back
    and forth takes a time for that grows with the square."""
    start = source.randrange(len(text))
    part = text[start : start + source.choice([1, 1, 2, 5, 20, 60, 200])]
    if source.random() < 0.5:
        part = part.replace("\n", " ")
    place = source.choice([0, start, len(text)])
    return text[:place] + part * (size // len(part)) + text[place:]
