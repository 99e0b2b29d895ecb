"""Two kernels' sizes side by side, as text and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.format import plus
from kduel.kernels.build.recipe import settings
from kduel.kernels.sizes.account import SizeAccount, SizeLine, account, kinds_of_change, lines, shortened
from kduel.kernels.sizes.objects import NAME

NONE = {"object": "(linker)", "option": "(no option alone)", "subsystem": "(linker)", "symbol": "(no symbol)"}
"""What is shown where a piece has none of it."""
VIEWS = {"subsystem": "directory", "symbol": "symbol", "object": "object", "option": "option"}


class SizedKernel(Struct, frozen=True, kw_only=True):
    """A kernel whose sizes are compared."""

    name: str
    vmlinux: Path
    config: Path | None = None
    files: dict[str, int]
    """Sizes of files as ls says, by what they are: `image`, `modules`."""

    def account(self) -> SizeAccount:
        """Where its bytes are. Raises InputError."""
        return account(self.vmlinux, self.vmlinux.parent / NAME)

    def settings(self) -> dict[str, str]:
        """Its configuration; empty where there is none."""
        return settings(self.config.read_text("utf-8", errors="replace")) if self.config else {}


class Option(Struct, frozen=True, kw_only=True):
    """An option that is set differently."""

    name: str
    baseline: str
    contender: str
    change: int | None
    """Bytes of vmlinux in objects that are built for this option; None where no object names it."""


class Beside(Struct, kw_only=True):
    """A whole comparison."""

    baseline: str
    contender: str
    totals: list[SizeLine]
    """text, data, bss, their sum as size(1) has it, then files as ls has them."""
    views: dict[str, list[SizeLine]]
    """By `subsystem`, `symbol`, `object` and `option`; each adds up to the sum of the totals."""
    options: list[Option]
    summary: str
    """As scripts/bloat-o-meter ends."""


def beside(baseline: SizedKernel, contender: SizedKernel, *, depth: int = 2) -> Beside:
    """Both accounts, line by line. Raises InputError for what is no vmlinux."""
    one, other = baseline.account(), contender.account()
    totals = [SizeLine(name=kind, baseline=one.totals[kind], contender=other.totals[kind]) for kind in one.totals]
    totals.append(SizeLine(name="vmlinux", baseline=sum(one.totals.values()), contender=sum(other.totals.values())))
    for name in dict.fromkeys([*baseline.files, *contender.files]):
        totals.append(SizeLine(name=name, baseline=baseline.files.get(name), contender=contender.files.get(name)))
    views: dict[str, list[SizeLine]] = {"symbol": view(one, other, "symbol", depth)}
    if one.placed and other.placed:
        views = {name: view(one, other, name, depth) for name in VIEWS}
    return Beside(
        baseline=baseline.name,
        contender=contender.name,
        totals=totals,
        views=views,
        options=differing(baseline.settings(), contender.settings(), views.get("option", [])),
        summary=kinds_of_change(views["symbol"]),
    )


def view(one: SizeAccount, other: SizeAccount, name: str, depth: int) -> list[SizeLine]:
    """The lines of one view."""

    def sums(of: SizeAccount) -> Counter[str]:
        found = of.by(lambda piece: str(getattr(piece, VIEWS[name])) or NONE[name])
        if name != "subsystem":
            return found
        short: Counter[str] = Counter()
        for directory, size in found.items():
            short[shortened(directory, depth)] += size
        return short

    return lines(sums(one), sums(other))


def differing(one: dict[str, str], other: dict[str, str], by_option: Sequence[SizeLine]) -> list[Option]:
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


def as_text(found: Beside, *, limit: int, views: Sequence[str]) -> str:
    """For a terminal. `limit` rows of each table, 0 for all."""
    parts = [table("Bytes", found.totals, found, limit=0, total=False)]
    for name in views:
        if name not in found.views:
            raise InputError(
                f"it is not known which {name} a symbol belongs to: the objects of these builds are not kept",
                "Give kernels from source (debian-source:, source:, git:), or a run on the machine build.",
            )
        parts.append(table(f"By {name}, the largest differences first", found.views[name], found, limit=limit))
    parts.append(found.summary)
    if found.options:
        parts.append(options_table(found, limit))
    return "\n\n".join(parts) + "\n"


def table(title: str, rows: Sequence[SizeLine], found: Beside, *, limit: int, total: bool = True) -> str:
    """One table; what is left out is summed, so that the columns add up."""
    changed = [row for row in rows if row.change] if total else list(rows)
    shown = changed[:limit] if limit else changed
    cells = [(row.name, *(cell(value) for value in (row.baseline, row.contender)), change(row)) for row in shown]
    if total:
        named = {row.name for row in shown}
        rest = [row for row in rows if row.name not in named]
        if rest:
            before, after = (sum(getattr(row, side) or 0 for row in rest) for side in ("baseline", "contender"))
            line = SizeLine(name=f"{len(rest):,} others", baseline=before, contender=after)
            cells.append((line.name, cell(before), cell(after), change(line)))
        before, after = (sum(getattr(row, side) or 0 for row in rows) for side in ("baseline", "contender"))
        line = SizeLine(name="all: vmlinux as size(1) says", baseline=before, contender=after)
        cells.append((line.name, cell(before), cell(after), change(line)))
    cells = [(title, found.baseline, found.contender, "change"), *cells]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    return "\n".join(
        f"{name:<{widths[0]}}  {one:>{widths[1]}}  {other:>{widths[2]}}  {gap:>{widths[3]}}"
        for name, one, other, gap in cells
    )


def options_table(found: Beside, limit: int) -> str:
    """The configuration's differences."""
    shown = found.options[:limit] if limit else found.options
    rows = [(f"Options that differ: {len(found.options):,}", found.baseline, found.contender, "its objects")]
    rows += [
        (one.name, one.baseline, one.contender, plus(one.change, ",") if one.change is not None else "unknown")
        for one in shown
    ]
    if len(shown) < len(found.options):
        rows.append((f"{len(found.options) - len(shown):,} others", "", "", ""))
    widths = [max(len(row[column][:40]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell[:40].ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def cell(value: int | None) -> str:
    """A number of bytes, or a dash where the kernel has none of it."""
    return "–" if value is None else f"{value:,}"


def change(row: SizeLine) -> str:
    """The difference, in bytes and per cent."""
    if not row.baseline:
        return plus(row.change, ",") if row.change else "0"
    return f"{plus(row.change, ',')} ({plus(100 * row.change / row.baseline, '.1f')} %)" if row.change else "0"


def as_document(found: Beside) -> dict[str, Any]:
    """For scripts."""

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
