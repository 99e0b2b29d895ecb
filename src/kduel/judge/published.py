"""Comparison of exact counts with those that somebody published: every one, to the instruction or the line."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import NamedTuple

import msgspec

from kduel.core.errors import InputError
from kduel.core.format import amount
from kduel.core.results import SCHEMA, Results
from kduel.core.text import plural, visible
from kduel.core.untrusted import read_whole
from kduel.core.version import full_version
from kduel.judge.evaluate import judge_run
from kduel.store.integrity import Integrity

SAME = ("qemu", "cpu", "cpus", "memory_mib", "layouts")
"""Facts of the machine on which counts depend."""
LARGEST = 1 << 30
"""Bytes that a compressed file may have in it."""
GIVE = "Give a run's results.json as KDuel wrote it."
MOST_NAMED = 20
"""Counts that are named where they differ."""


class Count(NamedTuple):
    """Conditions that determine a count."""

    machine: tuple[tuple[str, str], ...]
    """Facts, and the seed of the conditions."""
    kernel: str
    """Hash of its image, and its command line."""
    benchmark: str
    metric: str
    condition: str


def compare_published(run: Path, published: Path) -> Integrity:
    """The counts of a run held against another run's results.json, which may be compressed by xz. Both may have an exact part.

    Raises InputError where no count need be the same: other machines, seeds or kernels, or nothing that is exact.
    """
    ours, theirs = judge_run(run), read_results(published)
    mine, others = counts(ours, run), counts(theirs, published)
    common = [one for one in mine if one in others]
    if not common:
        raise nothing_common(run, published, mine, others)
    wrong = [one for one in common if mine[one] != others[one]]
    changes = [
        f"{one.benchmark}, {one.metric}, {one.condition}: {here} here, {there} there"
        for one in wrong[:MOST_NAMED]
        for here, there in [unlike(mine[one], others[one])]
    ]
    if len(wrong) > MOST_NAMED:
        changes.append(f"and {len(wrong) - MOST_NAMED} more")
    if wrong and ours.study.kduel != theirs.study.kduel:
        changes.append(f"KDuel was {ours.study.kduel} here, {theirs.study.kduel} there: its programs may differ")
    kernels = {one.kernel for one in common}
    lacking = sum(one.kernel in kernels and one not in mine for one in others)
    notes = [f"{plural(lacking, 'published count')} of these kernels not in this run"] if lacking else []
    return Integrity(checked=len(common), changes=changes, notes=notes)


def unlike(here: float, there: float) -> tuple[str, str]:
    """Two different values as texts that differ."""
    short = amount(here), amount(there)
    return short if short[0] != short[1] else (repr(here), repr(there))


def nothing_common(run: Path, published: Path, mine: dict[Count, float], others: dict[Count, float]) -> InputError:
    """The error that names what differs."""
    here, there = (min(one.machine for one in found) for found in (mine, others))
    differ = [
        f"{name} is {visible(value, 60)} here, {visible(dict(there).get(name, ''), 60)} there"
        for name, value in here
        if value != dict(there).get(name)
    ]
    if {one.machine for one in mine} & {one.machine for one in others} or not differ:
        return InputError(
            f"{run} and {published} have no count of the same kernel in common", "Compare the same kernels and suite."
        )
    return InputError(f"the counts need not be the same: {'; '.join(differ)}", "Repeat the run with those.")


def read_results(path: Path) -> Results:
    """Raises InputError for what is no results.json that this version reads."""
    try:
        data = read_whole(path)
        if path.suffix == ".xz":
            data = lzma.LZMADecompressor().decompress(data, LARGEST)
        found = msgspec.json.decode(data, type=Results)
    except (OSError, ValueError, RecursionError, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be read as results: {visible(error, 200)}", GIVE) from error
    if not 1 <= found.schema <= SCHEMA:
        raise InputError(
            f"{path} has schema {found.schema}; this is {full_version()}, which reads schema 1 to {SCHEMA}",
            "Install the version that wrote it.",
        )
    check_contenders(found, f"{path}: ")
    return found


def check_contenders(results: Results, where: str) -> None:
    """Raises InputError where a metric, of the run or of its exact part, has a contender that the run has not."""
    named = {name for one in results.metrics for name in (one.baseline, one.contender, *one.values)}
    if lacking := sorted(named - {one.name for one in results.contenders}):
        raise InputError(f"{where}contenders lacks {visible(lacking[0], 60)!r}, which metrics has", GIVE)
    if results.exact is not None:
        check_contenders(results.exact, f"{where}exact.")


def counts(results: Results, path: Path) -> dict[Count, float]:
    """Every exact count of a run and of its exact part, under every condition and in every block. Raises InputError where there is
    none."""
    parts = [one for one in (results, results.exact) if one is not None and one.machine.exact]
    found = {count: value for part in parts for count, value in counts_of(part).items()}
    if not found:
        raise InputError(f"{path} has no exact counts", "Only exact counts can be verified against others.")
    return found


def counts_of(results: Results) -> dict[Count, float]:
    """Those of one part."""
    facts = {name: results.machine.facts.get(name) for name in SAME} | {"seed": results.study.seed}
    machine = tuple((name, str(value)) for name, value in facts.items())
    kernels = {one.name: f"{one.sha256} {one.cmdline}" for one in results.contenders}
    found: dict[Count, float] = {}
    for metric in results.metrics:

        def add(contender: str, condition: str, value: float | None) -> None:
            if value is not None:
                found[Count(machine, kernels[contender], metric.benchmark, metric.metric, condition)] = value  # noqa: B023

        for one in metric.conditions:
            add(metric.baseline, f"block {one.block}, {one.name}", one.baseline)
            add(metric.contender, f"block {one.block}, {one.name}", one.contender)
        for contender, values in metric.values.items():
            for block, value in zip(results.blocks, values, strict=False):
                add(contender, f"block {block}", value)
    return found
