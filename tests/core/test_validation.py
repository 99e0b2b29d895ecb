"""What is wrong with a value, in the words of the file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from kduel.core.errors import InputError
from kduel.core.plugins import convert_table
from kduel.core.validation import validation_message


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mode: Literal["fast", "slow", "idle"] = "fast"


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    share: float | None = None
    inner: Inner = Inner()
    many: list[Inner] = []
    perhaps: Inner | None = None


class Chosen(msgspec.Struct):
    pick: Literal["this", "that"]


class Either(msgspec.Struct):
    turns: int | Literal["off"] | None = None
    words: list[str] | Literal["*"] = "*"


def test_of_words_and_numbers_both_are_named() -> None:
    for table, said in (
        ({"turns": "on"}, "turns: 'on' is not possible; give off or a whole number"),
        ({"words": "x"}, "words: 'x' is not possible"),
    ):
        with pytest.raises(msgspec.ValidationError) as caught:
            msgspec.convert(table, Either, strict=True)
        assert validation_message(caught.value, Either) == said


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "`name` is missing"),
        ({"name": 5}, "name: this must be text, and is a whole number"),
        ({"name": "a", "share": "5 %"}, "share: this must be a number, and is text"),
        ({"name": "a", "count": 0}, "count: this must be a whole number >= 1"),
        ({"name": "a", "inner": 5}, "inner: this must be a table, and is a whole number"),
        ({"name": "a", "inner": {"mode": "quick"}}, "inner.mode: 'quick' is not possible; give fast or slow or idle"),
        ({"name": "a", "many": [{}, {"mood": 1}]}, "many[#2]: there is no key `mood`. Did you mean mode?"),
        ({"name": "a", "cont": 1}, "there is no key `cont`. Did you mean count?"),
        ({"name": "a", "perhaps": {"moda": 1}}, "perhaps: there is no key `moda`. Did you mean mode?"),
        ({"name": "a", "zzz": 1}, "there is no key `zzz`"),
        (
            {"name": "a", "inner": {"mode": "Fasst"}},
            "inner.mode: 'Fasst' is not possible. Did you mean fast? There are: fast, slow, idle",
        ),
        ({"name": "a", "many": [{"mode": "x"}]}, "many[#1].mode: 'x' is not possible"),
    ],
)
def test_messages_are_in_the_words_of_the_file(table: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(table, Outer, strict=True)
    assert validation_message(caught.value, Outer) == said
    with pytest.raises(InputError) as refused:
        convert_table(table, Outer, "machine x", "settings")
    assert str(refused.value).startswith(f"machine x: {said}")
    inner = "must be a table" in said or ": there is no key" in said
    assert f": {'mode' if inner else 'name, count, share, inner, many, perhaps'}." in str(refused.value.remedy)


def test_a_missing_key_is_told_with_its_choices() -> None:
    with pytest.raises(InputError) as refused:
        convert_table({}, Chosen, "machine x", "settings")
    assert refused.value.message == "machine x: `pick` is missing; give this or that"
