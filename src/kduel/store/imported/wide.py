"""Wide tables (CSV): a trial a line, with a column for each metric, or with a column for each contender."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.text import plural
from kduel.store.imported.support import headings
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text
from kduel.store.imported.support.names import kind_of, statistic
from kduel.store.imported.support.table import (
    Records,
    check_end,
    check_groups,
    first_line,
    plain_records,
    records,
    separator,
)
from kduel.store.imported.values_csv import CONDITION, NUMBER, SIDES, number, without_quote

NO_VALUE_COLUMNS = (*headings.TRIALS, *headings.IDENTITY, headings.INDEX)
NO_VALUE = ("na", "nan", "n/a", "#n/a", "null", "none", "-")
HEADING = re.compile(r"(.*?)\s*(?:\[([^\]:]*)(?::\s*(\w+))?\])?")
"""`latency [ms: lower]`: name, unit, the better side."""


class Wide(ForeignFormat):
    name = "wide"
    summary = (
        "a table with a column for each contender (trial,old,new), or for each metric "
        "(contender,trial,latency [ms: lower],rate [1/s: higher])"
    )
    general = True
    names_contenders = True

    def recognises(self, head: str) -> bool:
        first = first_line(head)
        names = [headings.role_of(name.strip().strip('"')) for name in first.split(separator(first))]
        columns = [name for name in names if name not in NO_VALUE_COLUMNS]
        if first.startswith(("{", "[", "<", "# ", "|")) or "value" in names or {"contender", "metric"} <= {*names}:
            return False
        alone = "contender" in names or any(map(headings.is_kernel, names)) or any(map(headings.UNIT.search, columns))
        # Numbers are releases (6.1, 6.12) where another heading shows that it is no line of values.
        if any(map(NUMBER.fullmatch, columns)) and len(columns) == len(names):
            return False
        return len(columns) >= (1 if alone or {*names} & {*headings.TRIALS} - {""} else 2)

    def order(self, path: Path, contender: str | None) -> Sequence[str]:
        names, *_ = open_table(path, contender is not None)
        return [] if contender or "contender" in names else [name for name in names if name not in NO_VALUE_COLUMNS]

    def new_rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        return self._rows(path, contender, skipped, new=True)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        return self._rows(path, contender, skipped, new=False)

    def _rows(self, path: Path, contender: str | None, skipped: list[str], *, new: bool) -> Iterator[ForeignRow]:
        """The rows; of a `new` table also refused is what former imports took: columns that are no contenders or several trials,
        sizes of which one contender has two, and lines that are no trials by their quantiles or by two moments."""
        names, header, first, table = open_table(path, contender is not None, skipped if new else None)
        where = location_text(path, 1)
        numbering = [name for name in names if name in headings.TRIALS]
        by_metric = contender is not None or "contender" in names
        if (contender is not None) == ("contender" in names) and by_metric:
            raise InputError(f"{path.name} names its contenders itself", f"Give it without {contender!r} before it.")
        own = [name for name in names if name not in NO_VALUE_COLUMNS]
        if new and by_metric:
            headings.check_trials(where, own, rf"{headings.TRIAL}|[\d.]+")
        elif new:
            headings.check_contenders(where, own, len(own) < len(names))
        kernels = headings.kernels_among(own, first)
        about = [name for name in own if by_metric and (name in kernels or headings.is_parameter(name))]
        if by_metric and (misplaced := [name for name in ("metric", "unit", "better") if name in names]):
            raise InputError(
                f"{where}: a table with a column for each metric has a column {misplaced[0]!r}",
                "Write unit and better side into the heading: latency [ms: lower].",
            )
        renamed = by_metric and contender is None and "contender" not in map(str.casefold, map(str.strip, header))
        named: list[tuple[int, str]] = []
        dates = [
            name
            for name in own
            if by_metric and numbering and "[" not in name and headings.DATES & headings.words_of(name)
        ]
        moments = [
            name for name in own if by_metric and "[" not in name and headings.MOMENTS & headings.words_of(name)
        ]
        moments += [
            name
            for name in own
            if new and by_metric and "[" not in name and headings.QUANTILES & headings.words_of(name)
        ]
        series: dict[str, list[float]] = {name: [] for name in moments if not numbering}
        sizes = [name for name in own if new and by_metric and headings.is_size(name)]
        counters: dict[tuple[str, ...], Iterator[int]] = {}
        stated: dict[tuple[str, ...], str] = {}
        numbers = set[int]()
        line, without = 1, 0
        for line, fields in table:
            if any(map(str.strip, fields[len(names) :])):
                raise InputError(f"{location_text(path, line)}: a column without a name has a value", "Name it.")
            facts = {name: without_quote(field.strip()) for name, field in zip(names, fields, strict=False)}
            key = tuple(facts.get(name, "") for name in headings.IDENTITY)
            if new:
                check_trial(path, line, facts)
            trial = (
                trial_of(path, line, facts[numbering[0]]) if numbering else next(counters.setdefault(key, count(1)))
            )
            numbers.add(trial)
            named += [(trial, facts["contender"])] if renamed else []
            for name in about:
                # A contender has one kernel, and a benchmark one parameter for all of them.
                if stated.setdefault((name, *(key if name in kernels else key[1:])), facts[name]) != facts[name]:
                    raise second_value(path, line, name, contender or facts["contender"], facts[name])
            for name in own:
                if name in about or name in dates or not facts[name]:
                    continue
                if facts[name].casefold() in NO_VALUE:
                    without += 1
                    continue
                if name in series and not NUMBER.fullmatch(facts[name]):
                    raise series_error(path, name)
                if re.match("[A-Za-z]", facts[name]):
                    raise InputError(
                        f"{location_text(path, line)}: the column {name[:60]!r} is {facts[name][:60]!r}, not a number",
                        "Leave a cell without a value empty. Call the column with the names of the contenders 'contender', "
                        "that of the benchmarks 'benchmark', and leave others out.",
                    )
                value = number(path, line, facts[name], f"the column {name[:60]!r}")
                series.get(name, []).append(value)
                if name in sizes and stated.setdefault((name, *key), facts[name]) != facts[name]:
                    raise second_value(path, line, name, contender or facts["contender"], facts[name])
                if by_metric:
                    arm = contender if contender is not None else facts["contender"]
                    metric, unit, better = heading(path, name)
                else:
                    arm, metric = name, facts.get("metric", "value")
                    unit, better = facts.get("unit", ""), facts.get("better", "none")
                benchmark = facts.get("benchmark", "")
                if not (arm and metric and (benchmark or "benchmark" not in facts)):
                    raise InputError(
                        f"{location_text(path, line)}: a contender, benchmark or metric has no name", "Name it."
                    )
                if better not in SIDES:
                    place, column = (1, f" the column {name[:60]!r}:") if by_metric else (line, "")
                    raise InputError(
                        f"{location_text(path, place)}:{column} better is {better[:60]!r}",
                        f"It is {', '.join(SIDES)}.",
                    )
                yield ForeignRow(
                    arm, trial, benchmark, metric, unit, SIDES[better], value, line, statistic(metric),
                    kind=kind_of(benchmark, metric, unit), numbered=bool(numbering),
                    settings=tuple((one, facts[one]) for one in about if one not in kernels),
                )  # fmt: skip
        check_end(path, line)
        if (
            new
            and numbering == ["block"]
            and len(numbers) > 1
            and all(2 * a == b for a, b in pairwise(sorted(numbers)))
            and min(numbers) > 1
        ):
            raise InputError(
                f"{where}: the column 'block' numbers no trials, and may have the sizes of blocks",
                "Call it 'trial' if it numbers them; put a size into the names in the column 'benchmark', such as read-4k.",
            )
        if numbering and len(named) > 1 and all(len({*column}) == len(named) for column in zip(*named, strict=True)):
            raise InputError(
                f"{where}: the column of kernels has another value in each trial",
                "Call it 'contender' if it is that, or give a file for each contender, NAME=FILE.",
            )
        for name, values in series.items():
            short = new and values and (headings.DATES & headings.words_of(name) or headings.is_moment(name, values))
            if (short or len(values) > 2) and all(one < other for one, other in pairwise(values)):
                raise series_error(path, name)
        skipped += [f"{path.name}: the column {name[:60]!r}, which is no metric." for name in (*about, *dates)]
        if without:
            skipped.append(
                f"{path.name}: {plural(without, 'cell')} that {'say' if without > 1 else 'says'} that there is no value (NA, NaN, null, -)."
            )


def open_table(
    path: Path, given: bool, new: list[str] | None = None
) -> tuple[list[str], list[str], dict[str, str], Records]:
    """The columns by name, the header as written, the first record by column, and all records. Of a new table, how its numbers
    were read goes to `new`. Raises InputError."""
    table = records(path, "Its first line names the columns.")
    _, header = next(table)
    first = next(table, None)
    cells = [] if first is None else first[1]
    names = read_header(location_text(path, 1), header, cells, given, new is not None)
    facts = dict(zip(names, cells, strict=False))
    whole = table if first is None else chain([first], table)
    numbers = numbers_among(names, facts)
    known = None if new is None else check_groups(path, header, numbers, new)
    return names, header, facts, plain_records(path, whole, numbers, known)


def numbers_among(names: list[str], first: dict[str, str]) -> list[int]:
    """The places of columns in which what looks like a number is one, and no name."""
    named = {*headings.IDENTITY, CONDITION, *headings.kernels_among(names, first)}
    return [place for place, name in enumerate(names) if name not in named]


def read_header(where: str, header: list[str], cells: list[str], given: bool, new: bool) -> list[str]:
    """The columns by name. A column of kernels is that of the contenders, unless another one is or the contender is `given`.
    Raises InputError where two have one name or one purpose."""
    names = [headings.role_of(without_quote(name.strip())) for name in header]
    while len(names) > 1 and not names[-1]:
        # Left by a spreadsheet.
        names.pop()
    if names[0] == "" and {*names[1:]} & {*headings.TRIALS}:
        # The index of a data frame, beside a column that numbers the trials.
        names[0] = headings.INDEX
    if len({*names}) < len(names):
        raise InputError(f"{where}: a column is named twice", "Give each column a name of its own.")
    numbering = [name for name in names if name in headings.TRIALS]
    if len(numbering) > 1:
        raise InputError(f"{where}: {' and '.join(map(repr, numbering))} both number trials", "Keep one.")
    if not given and "contender" not in names:
        # Former imports took the stage of a boot for it, too, and no new one takes such a table by itself.
        kernels = (
            headings.kernels_among(names, dict(zip(names, cells, strict=False)))
            if new
            else [*filter(headings.is_kernel, names)]
        )
        if len(kernels) > 1:
            raise InputError(
                f"{where}: {kernels[0][:60]!r} and {kernels[1][:60]!r} may both name the contender",
                "Call one of them 'contender', and leave out the other.",
            )
        names = ["contender" if name in kernels else name for name in names]
    return names


def check_trial(path: Path, line: int, facts: dict[str, str]) -> None:
    """Raises InputError for a line that is calculated from others, or is of what failed."""
    for column in ("contender", "benchmark"):
        if facts.get(column, "").casefold() in headings.SUMMARIES:
            raise InputError(
                f"{location_text(path, line)}: the {column} {facts[column]!r} looks like a line that is calculated from others",
                f"Leave the line out, or give the {column} another name.",
            )
    for name, cell in facts.items():
        if headings.words_of(name) in headings.STATUS and NUMBER.fullmatch(cell) and float(cell):
            raise InputError(
                f"{location_text(path, line)}: the column {name[:60]!r} is {cell[:60]}: what failed measured nothing",
                "Leave the lines of failed trials out, and the column.",
            )


def second_value(path: Path, line: int, name: str, arm: str, value: str) -> InputError:
    """The refusal of a column that one contender and benchmark have one value of."""
    return InputError(
        f"{location_text(path, line)}: the column {name[:60]!r} has a second value for {arm[:60]!r}: {value[:60]!r}",
        "Name what differs: kernels in the column 'contender', parameters in the column 'benchmark', such as hackbench-4t. "
        "What was measured has its unit in the heading: size [B: lower].",
    )


def series_error(path: Path, name: str) -> InputError:
    """The refusal of a table with a moment, or a share of all samples, in each line."""
    what = "a share" if headings.QUANTILES & headings.words_of(name) else "a moment"
    return InputError(
        f"{location_text(path, 1)}: the column {name[:60]!r} is {what}, so that the lines are samples of one series and no "
        "trials",
        "Give one line for each trial, such as the mean of its samples. A duration has its unit in the heading: time [s: lower].",
    )


def heading(path: Path, name: str) -> tuple[str, str, str]:
    """Metric, unit and better side of a column."""
    found = HEADING.fullmatch(name)
    if found is None or not found[1]:
        raise InputError(
            f"{location_text(path, 1)}: the heading {name[:60]!r} is not NAME [UNIT: SIDE]", "Name the metric."
        )
    return found[1], (found[2] or "").strip(), found[3] or "none"


def trial_of(path: Path, line: int, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InputError(
            f"{location_text(path, line)}: the trial is {text[:60]!r}, not a whole number",
            "Number the trials 1, 2, 3.",
        )
    return int(text)


PLUGIN = Wide()
