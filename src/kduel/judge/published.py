"""Comparison of exact counts with those that somebody published: every one, to the instruction or the line."""

import lzma
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kduel.core.errors import InputError
from kduel.core.format import amount
from kduel.core.results import SCHEMA, ContenderResult, Results
from kduel.core.text import plural, visible
from kduel.core.toml import reason_of
from kduel.core.untrusted import read_whole
from kduel.core.version import full_version
from kduel.judge.evaluate import judge_run
from kduel.judge.results_check import check_unique_keys, difference
from kduel.store.integrity import Integrity

SAME = ("qemu", "cpu", "cpus", "memory_mib", "layouts")
"""Facts of the machine on which counts depend."""
LARGEST = 1 << 30
"""Bytes that a compressed file may have in it."""
GIVE = "Give a run's results.json as KDuel wrote it."
JUDGED = (
    "n", "baseline_mean", "mean", "effect", "effect_pct", "ci_low", "ci_high", "ci_low_pct", "ci_high_pct", "verdict",
)  # fmt: skip
"""What follows from exact counts and the smallest effect of interest."""
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
    """The counts of a run held against another run's results.json, perhaps compressed by xz. Raises InputError where
    no count need be the same: other machines, seeds or kernels, or nothing exact."""
    ours, theirs = judge_run(run), read_results(published)
    mine, others = counts(ours, run), counts(theirs, published)
    common = [one for one in mine if one in others]
    if not common:
        raise nothing_common(run, published, mine, others, surroundings(ours, theirs))
    means = mean_metrics(ours) | mean_metrics(theirs)
    names = {kernel_of(one): one.name for part in exact_parts(ours) for one in part.contenders}
    differing = [
        line
        for what, chosen in (
            ("median", [one for one in common if one.metric not in means]),
            ("mean", [one for one in common if one.metric in means]),
        )
        for line in differences(what, chosen, mine, others, names)
    ]
    elsewhere = surroundings(ours, theirs)
    changes, notes = ([], []) if elsewhere else (differing, [])
    if elsewhere and differing:
        notes = [
            f"other surroundings, so these differences show no change of what is counted: {'; '.join(elsewhere)}"
        ]
        notes += differing
    if changes and ours.study.kduel != theirs.study.kduel:
        changes.append(f"KDuel was {ours.study.kduel} here, {theirs.study.kduel} there: its programs may differ")
    contradicted = contradictions(ours, theirs)
    same_judge = theirs.judged_by == ours.judged_by
    if same_judge:
        changes += contradicted
    lacking = sum(one.kernel in names and one not in mine for one in others)
    notes += [f"{plural(lacking, 'published count')} of these kernels not in this run"] if lacking else []
    if contradicted and not same_judge:
        notes += [f"KDuel {visible(theirs.judged_by, 60)} may judge otherwise: {one}" for one in contradicted]
    return Integrity(checked=len(common), changes=changes, notes=notes)


def mean_metrics(results: Results) -> set[str]:
    """Metrics that are means over calls, which a rare long call moves; the others are medians, or one value."""
    return {metric.metric for part in exact_parts(results) for metric in part.metrics if metric.statistic == "mean"}


def differences(
    what: str, counts: list[Count], mine: dict[Count, float], others: dict[Count, float], names: dict[str, str]
) -> list[str]:
    """Lines about those of the counts that differ: how many, then the largest by share."""
    wrong = [one for one in counts if mine[one] != others[one]]
    if not wrong:
        return []

    def share(one: Count) -> float:
        return abs(mine[one] - others[one]) / (max(abs(mine[one]), abs(others[one])) or 1.0)

    wrong.sort(key=share, reverse=True)
    lines = [
        f"{len(wrong)} of {plural(len(counts), what)} differ{'s' if len(wrong) == 1 else ''}, the largest first:"
    ]
    for one in wrong[:MOST_NAMED]:
        short = amount(mine[one]), amount(others[one])
        here, there = short if short[0] != short[1] else (repr(mine[one]), repr(others[one]))
        lines.append(
            f"{one.benchmark}, {one.metric}, {names[one.kernel]}, {one.condition}: {here} here, {there} there "
            f"({100 * share(one):.2g} %)"
        )
    return [*lines, *([f"and {len(wrong) - MOST_NAMED} more"] if len(wrong) > MOST_NAMED else [])]


def surroundings(ours: Results, theirs: Results) -> list[str]:
    """Differences of what is around the counts and may move them: which operations a boot runs before them, and under which
    conditions. Those without which no count need be the same are in `Count.machine`."""
    found = []
    for here in exact_parts(ours):

        def nearness(one: Results) -> tuple[bool, int]:
            common = set(operations_of(one)) & set(operations_of(here))  # noqa: B023
            return machine_of(one) == machine_of(here), len(common)  # noqa: B023

        there = max(exact_parts(theirs), key=nearness)
        for what, of in (("operations", operations_of), ("conditions", conditions_of)):
            mine, others = of(here), of(there)
            if mine != others:
                found.append(f"{what}: {unlike_lists(mine, others)}")
    return found


def operations_of(results: Results) -> list[str]:
    return list(dict.fromkeys(metric.benchmark for metric in results.metrics))


def conditions_of(results: Results) -> list[str]:
    return list(dict.fromkeys(one.name for metric in results.metrics for one in metric.conditions))


def unlike_lists(mine: list[str], others: list[str]) -> str:
    """Two different lists in words: what only one of them has, or that the order differs."""
    only = [
        f"{len(extra)} only {where} ({', '.join(visible(one, 40) for one in extra[:3])}{', ...' if extra[3:] else ''})"
        for where, extra in (
            ("here", [one for one in mine if one not in others]),
            ("there", [one for one in others if one not in mine]),
        )
        if extra
    ]
    return ", ".join(only) or "in another order"


def contradictions(ours: Results, theirs: Results) -> list[str]:
    """Differences in what both results say of the same counts, a sentence each: what they say must follow from the counts."""
    mine, others = judgements(ours), judgements(theirs)
    return [
        f"{key[-2]}, {key[-1]}, {name}, in the file: {differing}"
        for key, (name, evidence, judged) in mine.items()
        if key in others and others[key][1] == evidence and (differing := difference(others[key][2], judged))
    ]


def judgements(results: Results) -> dict[tuple[object, ...], tuple[str, object, dict[str, Any]]]:
    """Contender, exact counts and what is said of them, by machine, kernels, rule, benchmark and metric."""
    found: dict[tuple[object, ...], tuple[str, object, dict[str, Any]]] = {}
    for part in exact_parts(results):
        kernels = {one.name: kernel_of(one) for one in part.contenders}
        for metric in part.metrics:
            pair = metric.baseline, metric.contender
            key = (
                machine_of(part),
                *(kernels[name] for name in pair),
                part.study.delta,
                metric.benchmark,
                metric.metric,
            )
            evidence = part.blocks, [metric.values.get(name) for name in pair], metric.conditions
            judged = {name: getattr(metric, name) for name in JUDGED} | {
                f"modes of {name}": metric.modes.get(name) for name in pair
            }
            found[key] = metric.contender, evidence, msgspec.to_builtins(judged)
    return found


def nothing_common(
    run: Path, published: Path, mine: dict[Count, float], others: dict[Count, float], elsewhere: list[str]
) -> InputError:
    """The error that names what differs; `elsewhere` are the surroundings."""
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
    return InputError(
        f"the counts need not be the same: {'; '.join([*differ, *elsewhere])}", "Repeat the run with those."
    )


def read_results(path: Path) -> Results:
    """Raises InputError for what is no results.json that this version reads."""
    try:
        data = read_whole(path)
        if path.suffix == ".xz":
            data = lzma.LZMADecompressor().decompress(data, LARGEST)
        found = msgspec.json.decode(data, type=Results)
        check_unique_keys(data)
    except (OSError, ValueError, RecursionError, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be read as results: {visible(reason_of(error), 200)}", GIVE) from error
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
    for part in results.parts[:-1]:
        check_contenders(part, f"{where}exact.")


def counts(results: Results, path: Path) -> dict[Count, float]:
    """Every exact count of a run and its exact part, under every condition, in every block. Raises InputError."""
    found = {count: value for part in exact_parts(results) for count, value in counts_of(part).items()}
    if not found:
        raise InputError(f"{path} has no exact counts", "Only exact counts can be verified against others.")
    return found


def exact_parts(results: Results) -> list[Results]:
    """The run itself, and its exact part, where they are exact."""
    return [one for one in reversed(results.parts) if not one.machine.evidence.varies]


def kernel_of(contender: ContenderResult) -> str:
    return f"{contender.sha256} {contender.cmdline}"


def machine_of(results: Results) -> tuple[tuple[str, str], ...]:
    """Facts on which exact counts depend beside the kernel."""
    facts = {name: results.machine.facts.get(name) for name in SAME} | {"seed": results.study.seed}
    return tuple((name, "not recorded" if value is None else str(value)) for name, value in facts.items())


def counts_of(results: Results) -> dict[Count, float]:
    machine = machine_of(results)
    kernels = {one.name: kernel_of(one) for one in results.contenders}
    found: dict[Count, float] = {}
    for metric in results.metrics:

        def add(contender: str, condition: str, value: float | None) -> None:
            if value is not None:
                found[Count(machine, kernels[contender], metric.benchmark, metric.metric, condition)] = value  # noqa: B023

        for one in metric.conditions:
            add(metric.baseline, f"block {one.block}{one.name and f', {one.name}'}", one.baseline)
            add(metric.contender, f"block {one.block}{one.name and f', {one.name}'}", one.contender)
        for contender, values in metric.values.items():
            for block, value in zip(results.blocks, values, strict=False):
                add(contender, f"block {block}", value)
    return found
