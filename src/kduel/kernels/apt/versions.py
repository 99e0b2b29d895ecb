"""Debian's version numbers, compared as its policy manual (5.6.12) says."""

import re

Number = tuple[int, str]
"""Its digits and their count: one of a damaged list may have more than Python makes a number of."""
Part = tuple[tuple[tuple[int, ...], Number], ...]


def version_key(version: str) -> tuple[Number, Part, Part]:
    """A key that sorts versions as dpkg does: epoch, upstream version, Debian revision."""
    epoch, colon, rest = version.rpartition(":")
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return (
        _number_key(epoch if colon and re.fullmatch("[0-9]+", epoch) else ""),
        _part_key(upstream),
        _part_key(revision),
    )


def _part_key(text: str) -> Part:
    """Pairs of a word and a number. In a word `~` sorts before its end, letters before everything else. A missing part is `0`."""
    pairs = re.findall(r"([^0-9]*)([0-9]*)", text or "0")
    key = [((*map(_rank, word), 0), _number_key(number)) for word, number in pairs if word or number]
    return (*key, ((0,), _number_key("")))


def _number_key(digits: str) -> Number:
    value = digits.lstrip("0")
    return len(value), value


def _rank(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256


def upstream(version: str) -> str:
    """The upstream part of a Debian version: `6.1.192` of `6.1.192-2`, `7.3~rc7` of `7.3~rc7-1~exp1`."""
    return version.rpartition(":")[2].rpartition("-")[0] or version
