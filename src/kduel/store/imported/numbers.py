"""One number a line, as ministat reads them and perf bench --format=simple prints them: a trial is a line."""

from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, text_lines
from kduel.store.imported.support.headings import is_moment
from kduel.store.imported.values_csv import NUMBER, number

LINES = 50
COMMENT = "#"


class Numbers(ForeignFormat):
    name = "numbers"
    summary = "one number a line (ministat, perf bench --format=simple), a trial being one line: old=a.txt new=b.txt"
    general = True

    def recognises(self, head: str) -> bool:
        lines = [line.strip() for line in head.split("\n") if line.strip() and not line.startswith(COMMENT)]
        return bool(lines) and all(map(NUMBER.fullmatch, lines[:LINES]))

    def check(self, path: Path, contender: str | None) -> None:
        values = [row.value for row in self.rows(path, contender, [])]
        if len(values) > 1 and is_moment("", values):
            raise InputError(
                f"{path.name} holds moments (seconds since 1970), which are no trials", "Give what was measured."
            )

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trial = 0
        for line, text in text_lines(path):
            if text.strip() and not text.startswith(COMMENT):
                trial += 1
                value = number(path, line, text.strip())
                yield ForeignRow(str(contender), trial, "", "value", "", "none", value, line)


PLUGIN = Numbers()
