"""The importers' samples, as targets of the fuzzer: the fixtures and the published studies."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fuzzing import NUMBER, Texts, Values, finding, mutate, numbers_in, swollen

from kduel.core.errors import InputError
from kduel.core.plugins import plugins
from kduel.core.temporary import temporary_directory
from kduel.store.imported.support.gather import Gathering
from kduel.store.imported.support.store import the_format

__all__ = ["FORMATS", "SAMPLES", "Sample", "finding", "mutate", "swollen"]
FIXTURES = Path(__file__).parents[1] / "store/imported/fixtures"
PUBLISHED = Path(__file__).parents[2] / "studies" / "published"
HELD = ExitStack()
PLACE = HELD.enter_context(temporary_directory(prefix="kduel-imports-"))
"""A worker of pytest-xdist ends without clean-up: the next one made removes it."""


class Sample:
    """One file of one format. Names in it are free, so that only values are compared."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.format: Any = the_format(path, None)
        self.texts = {"file": path.read_text()}
        self.whole = self.outcome(self.texts)

    def __repr__(self) -> str:
        return self.path.name

    def outcome(self, texts: Texts) -> Values | None:
        """Its values, by what they are; None for an InputError."""
        copy = PLACE / self.path.name
        copy.write_bytes(texts["file"].encode())
        gathering = Gathering()
        try:
            the_format(copy, None)
            contender = self.format.contender_of(copy, None, False)
            gathering.add(copy, self.format.rows(copy, contender, []))
            self.format.environments(copy, contender)
        except InputError as error:
            assert error.remedy and "\x1b" not in str(error.message).replace(copy.name, ""), error
            return None
        finally:
            copy.unlink()
        found = (
            value for metric in gathering.found.values() for arm in metric.values.values() for value in arm.values()
        )
        return {repr(value): value for value in found}

    def untrue(self, values: Values) -> str:
        """As fuzzing.Target says: any value that the untouched file does not hold. What a value is called, and which of
        several numbers of an entry count, are names in the file, which may be any."""
        return "" if self.format.derived else self.impossible(values, self.texts)

    def impossible(self, values: Values, texts: Texts) -> str:
        """As fuzzing.Target says."""
        if not all(math.isfinite(value) for value in values.values()):
            return f"gave {values}"[:300]
        # A comma separates values here, never thousands.
        spaced = {name: text.replace(",", ", ") for name, text in texts.items()}
        if not self.format.derived:
            present = numbers_in(spaced)
            return next(
                (f"{value} stands nowhere" for value in values.values() if f"{value:.10g}" not in present), ""
            )
        numbers = [float(token) for token in NUMBER.findall(spaced["file"])]
        return next(
            (f"{value} is out of range" for value in values.values() if not min(numbers) <= value <= max(numbers)), ""
        )


def importable(path: Path) -> bool:
    """Whether it is a sample of values, not of what is refused."""
    try:
        return Sample(path).whole is not None
    except InputError:
        return False


FILES = [
    path
    for path in sorted([*FIXTURES.iterdir(), *PUBLISHED.glob("*.csv")])
    if path.suffix in (".csv", ".json", ".txt", ".xml")
]
SAMPLES = [Sample(path) for path in FILES if importable(path)]
FORMATS = sorted(plugins("imported"))
