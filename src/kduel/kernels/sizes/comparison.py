"""Two kernels' sizes side by side, as text and as a document."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.format import with_sign
from kduel.core.text import align_columns
from kduel.kernels.compile.recipe import read_settings
from kduel.kernels.sizes.account import (
    SizeAccount,
    SizeLine,
    account_for,
    compare_pieces,
    kinds_of_change,
)
from kduel.kernels.sizes.objects import NAME

NONE = {"object": "(linker)", "option": "(no option alone)", "subsystem": "(linker)", "symbol": "(no symbol)"}
"""Text where a piece has none of it."""
VIEWS = {"subsystem": "directory", "symbol": "symbol", "object": "object", "option": "option"}


class SizedKernel(Struct, frozen=True, kw_only=True):
    name: str
    vmlinux: Path
    config: Path | None = None
    files: dict[str, int]
    """Sizes of files as ls says, by what they are: `image`, `modules`."""

    def account(self) -> SizeAccount:
        """Location of its bytes. Raises InputError."""
        return account_for(self.vmlinux, self.vmlinux.parent / NAME)

    def settings(self) -> dict[str, str]:
        """Its configuration; empty where there is none."""
        return read_settings(self.config.read_text("utf-8", errors="replace")) if self.config else {}


class Option(Struct, frozen=True, kw_only=True):
    name: str
    baseline: str
    contender: str
    change: int | None
    """Bytes of vmlinux in objects that are built for this option; None where no object names it."""


class SizeComparison(Struct, kw_only=True):
    baseline: str
    contender: str
    totals: list[SizeLine]
    """text, data, bss, their sum as size(1) has it, then files as ls has them."""
    views: dict[str, list[SizeLine]]
    """Lines by `subsystem`, `symbol`, `object` and `option`; each adds up to the sum of the totals."""
    options: list[Option]
    summary: str
    """Last line of scripts/bloat-o-meter."""


def compare_sizes(baseline: SizedKernel, contender: SizedKernel, *, depth: int = 2) -> SizeComparison:
    """Both accounts, line by line. Raises InputError for what is no vmlinux."""
    one, other = baseline.account(), contender.account()
    totals = [SizeLine(name=kind, baseline=one.totals[kind], contender=other.totals[kind]) for kind in one.totals]
    totals.append(SizeLine(name="vmlinux", baseline=sum(one.totals.values()), contender=sum(other.totals.values())))
    for name in dict.fromkeys([*baseline.files, *contender.files]):
        totals.append(SizeLine(name=name, baseline=baseline.files.get(name), contender=contender.files.get(name)))
    views: dict[str, list[SizeLine]] = {"symbol": lines_of_view(one, other, "symbol", depth)}
    if one.placed and other.placed:
        views = {name: lines_of_view(one, other, name, depth) for name in VIEWS}
    return SizeComparison(
        baseline=baseline.name,
        contender=contender.name,
        totals=totals,
        views=views,
        options=differing_options(baseline.settings(), contender.settings(), views.get("option", [])),
        summary=kinds_of_change(views["symbol"]),
    )


def lines_of_view(one: SizeAccount, other: SizeAccount, name: str, depth: int) -> list[SizeLine]:
    def sums(of: SizeAccount) -> Counter[str]:
        found = of.bytes_by(lambda piece: str(getattr(piece, VIEWS[name])) or NONE[name])
        if name != "subsystem":
            return found
        short: Counter[str] = Counter()
        for directory, size in found.items():
            short["/".join(directory.split("/")[:depth])] += size
        return short

    return compare_pieces(sums(one), sums(other))


def differing_options(one: dict[str, str], other: dict[str, str], by_option: Sequence[SizeLine]) -> list[Option]:
    """The options that differ, those that bring most first. An option that is not known counts as n."""
    if not one or not other:
        return []
    brings = {line.name: line.change for line in by_option}
    found = [
        Option(name=name, baseline=one.get(name, "n"), contender=other.get(name, "n"), change=brings.get(name))
        for name in sorted(one.keys() | other.keys())
        if one.get(name, "n") != other.get(name, "n")
    ]
    return sorted(found, key=lambda option: (-abs(option.change or 0), option.name))


def as_text(found: SizeComparison, *, limit: int, views: Sequence[str]) -> str:
    """For a terminal. `limit` rows of each table, 0 for all."""
    parts = [size_table("Bytes", found.totals, found, limit=0, total=False)]
    for name in views:
        if name not in found.views:
            raise InputError(
                f"it is not known which {name} a symbol belongs to: the objects of these builds are not kept",
                "Give kernels from source (debian-source:, source:, git:), or a run on the machine build.",
            )
        parts.append(size_table(f"By {name}, the largest differences first", found.views[name], found, limit=limit))
    parts.append(found.summary)
    if found.options:
        shown = found.options[:limit] if limit else found.options
        rows = [(f"Options that differ: {len(found.options):,}", found.baseline, found.contender, "its objects")]
        for one in shown:
            change = with_sign(one.change, ",") if one.change is not None else "unknown"
            rows.append((one.name, one.baseline, one.contender, change))
        if len(shown) < len(found.options):
            rows.append((f"{len(found.options) - len(shown):,} others", "", "", ""))
        parts.append("\n".join(align_columns([[cell[:40] for cell in row] for row in rows], left=range(4))))
    return "\n\n".join(parts) + "\n"


def size_table(title: str, rows: Sequence[SizeLine], found: SizeComparison, *, limit: int, total: bool = True) -> str:
    """One table; what is left out is summed, so that the columns add up."""
    changed = [row for row in rows if row.change] if total else list(rows)
    shown = changed[:limit] if limit else changed
    cells = [
        (row.name, *(format_bytes(value) for value in (row.baseline, row.contender)), format_change(row))
        for row in shown
    ]
    if total:
        named = {row.name for row in shown}
        rest = [row for row in rows if row.name not in named]
        if rest:
            before, after = (sum(getattr(row, side) or 0 for row in rest) for side in ("baseline", "contender"))
            line = SizeLine(name=f"{len(rest):,} others", baseline=before, contender=after)
            cells.append((line.name, format_bytes(before), format_bytes(after), format_change(line)))
        before, after = (sum(getattr(row, side) or 0 for row in rows) for side in ("baseline", "contender"))
        line = SizeLine(name="all: vmlinux as size(1) says", baseline=before, contender=after)
        cells.append((line.name, format_bytes(before), format_bytes(after), format_change(line)))
    cells = [(title, found.baseline, found.contender, "change"), *cells]
    return "\n".join(align_columns(cells))


def format_bytes(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def format_change(row: SizeLine) -> str:
    if not row.baseline:
        return with_sign(row.change, ",") if row.change else "0"
    return (
        f"{with_sign(row.change, ',')} ({with_sign(100 * row.change / row.baseline, '.1f')} %)" if row.change else "0"
    )


def as_document(found: SizeComparison) -> dict[str, Any]:

    def row(line: SizeLine) -> dict[str, Any]:
        return {"name": line.name, "baseline": line.baseline, "contender": line.contender, "change": line.change}

    return {
        "schema": 1,
        "baseline": found.baseline,
        "contender": found.contender,
        "totals": [row(line) for line in found.totals],
        "views": {name: [row(line) for line in rows] for name, rows in found.views.items()},
        "options": [
            {"name": o.name, "baseline": o.baseline, "contender": o.contender, "change": o.change}
            for o in found.options
        ],
    }
