"""The terminal's page for counted instructions: a line each, what holds first, the next command last."""

from __future__ import annotations

from examples import exact

from kduel.core.results import ConditionResult, MetricResult, Results, Verdict
from kduel.report.content.counted import is_counted, next_command
from kduel.report.text import render_text


def metric(
    name: str,
    group: str,
    verdict: Verdict,
    pairs: list[tuple[float, float]],
    *,
    role: str = "primary",
    kind: str = "",
) -> MetricResult:
    gaps = sorted(b - a for a, b in pairs)
    shares = sorted(100 * (b - a) / a for a, b in pairs)
    return MetricResult(
        benchmark=name, metric=f"instructions{kind}", unit="instructions", better="lower", role=role, group=group,  # type: ignore[arg-type]
        baseline="parent", contender="patched", n=1, baseline_mean=pairs[0][0], baseline_sd=None, mean=pairs[0][1], sd=None,
        scale="exact", effect_pct=shares[len(shares) // 2], ci_low_pct=shares[0], ci_high_pct=shares[-1],
        effect=gaps[len(gaps) // 2], ci_low=gaps[0], ci_high=gaps[-1], verdict=verdict,
        conditions=[] if kind else [
            ConditionResult(name=str(number), block=1, baseline=a, contender=b) for number, (a, b) in enumerate(pairs)
        ],
    )  # fmt: skip


def results() -> Results:
    found = exact()
    found.metrics = [
        metric("null-call", "system calls and files", "faster", [(378, 373), (378, 373)]),
        metric("tcp", "network", "undecided", [(27_911, 28_624), (30_500, 28_620), (27_911, 28_600)]),
        metric("fork-exit", "processes", "slower", [(161_356, 172_763), (161_000, 172_500)]),
        metric("pipe", "scheduling and communication", "faster", [(12_629, 10_650), (12_629, 10_650)]),
        metric("stat", "system calls and files", "equivalent", [(3_412, 3_413), (3_412, 3_411)]),
        metric("pipe", "", "faster", [(13_200, 8_580)], role="exploratory", kind="-cgroup"),
    ]
    return found


def lines() -> list[str]:
    return render_text(results(), width=120, colour=False).splitlines()


def place(text: str) -> int:
    (found,) = [number for number, line in enumerate(lines()) if text in line]
    return found


def test_each_operation_has_one_line_the_largest_robust_differences_first() -> None:
    order = [place(name) for name in ("12,629 → 10,650", "161,356 → 172,763", "378 → 373", "27,911 → 28,624")]
    assert order == sorted(order)
    assert lines()[order[0] - 1].strip() == "scheduling and communication"
    assert lines()[order[0]].startswith(" fewer") and " of " not in lines()[order[0]], "all conditions agree"
    assert "exploratory" not in "\n".join(lines())


def test_a_line_of_large_counts_fits_80_characters() -> None:
    found = results()
    found.metrics = [metric("fault-anonymous", "memory", "slower", [(335_844, 351_984), (335_844, 355_021)])]
    rendered = render_text(found, width=80, colour=False).splitlines()
    [line] = [line for line in rendered if "fault-anonymous" in line and "→" in line]
    assert line.endswith("335,844 → 351,984") and len(line) == 80


def test_what_depends_on_conditions_is_no_verdict() -> None:
    line = lines()[place("27,911 → 28,624")]
    assert line.startswith(" depends") and "−6.16 to +2.55 %" in line and "2 of 3" in line


def test_what_is_the_same_is_listed_and_another_situation_shown_where_it_differs() -> None:
    assert lines()[place("the same:")] == "the same: stat"
    assert "pipe, cgroup" in lines()[place("13,200 → 8,580")]


def test_the_next_command_opens_the_largest_difference_that_holds() -> None:
    assert is_counted(results())
    assert next_command(results(), "RUN") == "kduel explain RUN -b pipe"
    open_only = results()
    open_only.metrics = open_only.metrics[1:2]
    assert next_command(open_only, "RUN") == ""
