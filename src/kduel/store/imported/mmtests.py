"""MMTests' extract-mmtests.pl --print-json: the samples of each operation, by iteration."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Annotated

from msgspec import Meta, Struct, field

from kduel.core.errors import InputError
from kduel.core.experiment import Better, Statistic
from kduel.store.imported.support import foreign
from kduel.store.imported.values_csv import NUMBER

PROGRAM = "extract-mmtests.pl --print-json of one kernel (-n NAME)"
BETTER: dict[str, Better] = {"Lower": "lower", "Higher": "higher"}


class Iteration(Struct):
    values: Annotated[list[float | str], Meta(min_length=1)] = field(name="Values")
    """A parser that is a shell script gives them as text."""


class Module(Struct):
    """Results of one kernel, by operation and iteration."""

    name: str = field(name="_ModuleName")
    data: dict[str, list[Iteration | None]] = field(name="_ResultData")
    test: str = field(name="_TestName", default="")
    """The kernel, as its run was called."""
    preferred: str = field(name="_PreferredVal", default="")


class Mmtests(foreign.ForeignFormat):
    """An iteration is a trial, and its value the mean of its samples; where there is only one, its samples are trials."""

    name = "mmtests"
    summary = "MMTests' extract-mmtests.pl --print-json, a trial being an iteration"
    derived = "mean of an iteration's samples"
    begins = r"\s*\[?\s*\{"
    holds = ('"_ModuleName"',)

    def contender_of(self, path: Path, given: str | None, alone: bool) -> str | None:
        return given or foreign.read_json(path, Module, PROGRAM).test or foreign.file_stem(path)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[foreign.ForeignRow]:
        module = foreign.read_json(path, Module, PROGRAM)
        benchmark = module.name.removeprefix("Extract").removeprefix("Shellpack")
        better = BETTER.get(module.preferred, "none")
        single = all(len(iterations) == 1 for iterations in module.data.values())
        statistic: Statistic = "value" if single else "mean"
        if not module.data:
            raise InputError(
                f"{path.name} has no results", "Extract it again, with --sub-heading where it needs one."
            )
        for operation, iterations in module.data.items():
            place = f"operation {operation[:80]!r}"
            samples = [
                [
                    foreign.json_number(
                        path,
                        place,
                        "a value",
                        float(value) if isinstance(value, str) and NUMBER.fullmatch(value) else value,
                    )
                    for value in one.values
                ]
                if one
                else []
                for one in iterations
            ]
            values = samples[0] if single else [fmean(values) if values else None for values in samples]
            if not any(value is not None for value in values):
                raise InputError(f"{foreign.location_text(path, place)} has no values", "Extract it again.")
            for trial, value in enumerate(values, 1):
                if value is not None:
                    yield foreign.ForeignRow(
                        str(contender), trial, benchmark, operation, "", better,
                        value, place, statistic, numbered=not single,
                    )  # fmt: skip
        if single:
            skipped.append(
                f"{path.name}: its benchmark ran once, so that its samples are of one boot; they are taken as repetitions."
            )


PLUGIN = Mmtests()
