"""The terminal's page for counted instructions: a line each, what holds first, the next command last."""

from __future__ import annotations

import re
import shlex

import pytest
from examples import ROOT, exact
from msgspec import structs

from kduel.benchmarks.kbench import Kbench
from kduel.core.metric_results import ConditionResult, MetricResult, Verdict
from kduel.core.results import Results
from kduel.core.samples import Mode
from kduel.judge.verdict.headline import headlines
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.wording import verdict_text
from kduel.report import report_format
from kduel.report.content.closing import closing
from kduel.report.content.counted import BOOT, LARGEST, OF_BOOT, OUTSIDE_PCT, is_counted, next_command
from kduel.report.content.digest import digest
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
        metric("null-call", "system calls and files", "fewer", [(378, 373), (378, 373)]),
        metric("tcp", "network", "undecided", [(27_911, 28_624), (30_500, 28_620), (27_911, 28_600)]),
        metric("fork-exit", "processes", "more", [(161_356, 172_763), (161_000, 172_500)]),
        metric("pipe", "scheduling and communication", "fewer", [(12_629, 10_650), (12_629, 10_650)]),
        metric("stat", "system calls and files", "equivalent", [(3_412, 3_413), (3_412, 3_411)]),
        metric("pipe", "", "fewer", [(13_200, 8_580)], role="exploratory", kind="-cgroup"),
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
    found.metrics = [metric("fault-anonymous", "memory", "more", [(335_844, 351_984), (335_844, 355_021)])]
    rendered = render_text(found, width=80, colour=False).splitlines()
    [line] = [line for line in rendered if "fault-anonymous" in line and " → " in line]
    assert line.endswith("335,844 → 351,984") and len(line) == 80


def complete() -> Results:
    """The widest lines of the suite `exact`: a boot has four digits more than any operation."""
    found = exact()
    boot = metric("boot", "boot", "more", [(551_181_873, 934_941_698)])
    boot.conditions, boot.ci_low_pct, boot.ci_high_pct = [], None, None
    found.metrics = [
        boot,
        metric(
            "unix", "scheduling and communication", "more", [(17_113, 17_460), (17_113, 17_435), (17_113, 20_119)]
        ),
        metric("switch-2-16k", "scheduling and communication", "fewer", [(6_329.5, 5_328), (6_330.5, 5_323)]),
        metric("fault-protection", "signals and timers", "more", [(3_468, 3_535), (3_468, 3_535)]),
        metric("fork-exec", "processes", "more", [(321_490, 337_818), (331_000, 346_358), (301_000, 319_722)]),
        metric("clone", "processes", "undecided", [(85_544, 84_331), (85_544, 84_031), (75_000, 82_905)]),
    ]
    return found


def test_every_line_of_the_complete_suite_fits_80_characters() -> None:
    rendered = render_text(complete(), width=80, colour=False).splitlines()
    head = next(number for number, line in enumerate(rendered) if "before → after" in line)
    table = rendered[head : next(n for n, line in enumerate(rendered) if line.startswith("What"))]
    for operation in complete().metrics:
        [line] = [line for line in table if f" {operation.benchmark} " in line and "→" in line]
        assert len(line) <= 80 and line.split()[-2:-1] == ["→"], line
    assert max(len(line) for line in table) <= 80, max(table, key=len)
    assert any("+383,759,825 (+69.6 %)" in line and "551,181,873 → 934,941,698" in line for line in table)
    [place] = [number for number, line in enumerate(table) if " clone " in line]
    assert table[place + 1].strip() == "2 of 3 conditions", (
        "in how many conditions it is so, below where it has no room"
    )


def test_wide_columns_stay_where_there_is_room() -> None:
    rendered = render_text(complete(), width=120, colour=False).splitlines()
    lines = [line for line in rendered if " → " in line and "before" not in line and " clone" not in line][:5]
    assert len({line.index("→") for line in lines}) > 1 and len({len(line) for line in lines}) == 1, lines
    assert any(line.startswith(" depends clone") and line.endswith("  2 of 3 conditions") for line in rendered)


def test_what_depends_on_conditions_is_no_verdict() -> None:
    line = lines()[place("27,911 → 28,624")]
    assert line.startswith(" depends") and "−6.16 to +2.55 %" in line and "2 of 3" in line


TURNS = [(1000.0, 1030.0), (1000.0, 980.0)]
"""Counts whose difference changes its sign with the condition."""


def headline_of(*metrics: MetricResult) -> str:
    found = results()
    found.metrics = list(metrics)
    (said,) = [comparison.headline for comparison in digest(found).comparisons]
    for form in ("text", "markdown", "html"):
        assert said in " ".join(report_format(form).render(found).split()), form
    assert [one.text for one in headlines(found)] == [said], "as results.json has it"
    return said


@pytest.mark.slow
def test_the_headline_says_that_conditions_decide_and_not_that_the_run_cannot_distinguish() -> None:
    pipe, tcp = (metric(name, "", "undecided", TURNS) for name in ("pipe", "tcp"))
    stat = metric("stat", "", "equivalent", [(3_412, 3_413), (3_412, 3_411)])
    lost = metric("udp", "", "undecided", [(1.0, 1.0)])
    lost.n, lost.conditions = 0, []
    for metrics, numbers in (
        ([pipe], []),
        ([pipe, tcp], ["of 2", "2 depend"]),
        ([pipe, lost], ["of 2", "1 depends", "undecided in 1"]),
        ([pipe, stat], ["±0.1 %", "1 of 2", "1 depends"]),
    ):
        said = headline_of(*metrics)
        assert "conditions" in said and "patched" in said and "parent" in said
        assert re.findall(r"±[\d.]+ %|(?:\d+ |undecided in )?(?:of )?\d+(?: depends?)?", said) == numbers


def test_what_is_the_same_is_listed_and_another_situation_shown_where_it_differs() -> None:
    assert lines()[place("equivalent:")] == "equivalent: stat"
    assert "pipe, cgroup" in lines()[place("13,200 → 8,580")]


def test_the_next_command_opens_the_largest_difference_that_holds() -> None:
    assert is_counted(results())
    loss = next(m for m in results().metrics if m.benchmark == "fork-exit")
    assert next_command(results(), "RUN") == (LARGEST["worse"].format("fork-exit"), "kduel explain RUN -b fork-exit")
    gains = results()
    gains.metrics = [m for m in gains.metrics if m.benchmark != loss.benchmark]
    assert next_command(gains, "RUN") == (LARGEST["better"].format("pipe"), "kduel explain RUN -b pipe")
    open_only = results()
    open_only.metrics = open_only.metrics[1:2]
    assert next_command(open_only, "RUN") == ("", "")


def test_the_next_command_explains_the_boot_only_where_nothing_else_differs() -> None:
    """It takes minutes and 2 GB of memory, where an operation takes seconds."""
    found = results()
    boot = metric("boot", "", "more", [(100_000, 900_000)])
    boot.metric = BOOT
    found.metrics.insert(0, boot)
    assert next_command(found, "RUN") == (LARGEST["worse"].format("fork-exit"), "kduel explain RUN -b fork-exit")
    found.metrics = [boot]
    assert next_command(found, "RUN") == (OF_BOOT, "kduel explain RUN -b boot") and "2 GB" in OF_BOOT


def test_the_page_of_a_known_run_begins_with_that_command() -> None:
    ended = results()
    ended.study.fixed = 1
    rendered = render_text(ended, width=80, colour=False, run="'my runs/one'")
    assert "→ Where the loss in fork-exit comes from:\n  kduel explain 'my runs/one' -b fork-exit\n" in rendered
    assert "kduel explain RUN -b fork-exit" in render_text(ended, width=80, colour=False)


def test_the_page_has_every_condition_with_both_counts() -> None:
    """It named only those that reverse a sign."""
    found = results()
    pipe = metric("pipe", "network", "fewer", [(12_629, 10_650), (12_700.25, 10_651)])
    names = ("plain", "1: after <mmap>")
    pipe.conditions = [structs.replace(one, name=name) for one, name in zip(pipe.conditions, names, strict=True)]
    found.metrics = [pipe]
    page = " ".join(re.sub(r"<[^>]*>", " ", report_format("html").render(found)).split())
    assert "plain 12,629 10,650 −1,979 " in page and "1: after &lt;mmap&gt; 12,700 10,651 −2,049 " in page


def test_the_change_is_that_of_the_shown_values() -> None:
    found = results()
    found.metrics = [metric("fork-exit", "processes", "more", [(160_847, 172_388.5)])]
    assert "+11,542 (+7.18 %)" in (text := render_text(found, width=80, colour=False)) and "160,847 → 172,389" in text
    found.metrics = [metric("switch-8-0k", "", "more", [(6332.375, 7718.5), (6332.375, 7718.5)])]
    assert "+1,387 (+21.9 %)" in (text := render_text(found, width=80, colour=False)) and "6,332 → 7,719" in text


def parsed(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


FRACTIONS = [
    (889_343.5, 887_790.5),
    (277_289.5, 341_268.5),
    (153_521.0, 164_287.5),
    (160_858.0, 170_110.5),
    (6_143.625, 10_375.625),
    (6_334.125, 7_718.375),
    (3_262.62135922, 3_737.15533981),
    (3_262.62135922, 3_262.5631068),
]


@pytest.mark.slow
@pytest.mark.parametrize("pair", FRACTIONS)
@pytest.mark.parametrize("sd", [None, 1_500.0])
def test_the_shown_counts_subtract_to_the_shown_change_wherever_both_are_shown(
    pair: tuple[float, float], sd: float | None
) -> None:
    found = results()
    one = metric("shell", "processes", "more" if pair[1] > pair[0] else "fewer", [pair, pair])
    one.baseline_sd = one.sd = sd
    one.conditions = one.conditions if sd is None else []
    one.told = verdict_text(one, Rule.of_edition(2), 1)
    found.metrics = [one]
    for form in ("text", "markdown", "mail", "html", "latex"):
        words = report_format(form).render(found)
        words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", words).replace(r"\(-\)", "−").replace("|", " "))
        said = {parsed(number) for number in re.findall(r"[+−-][\d,.]+(?= (?:instructions )?\()", words)}
        (change,) = said
        assert change and abs(change - (pair[1] - pair[0])) <= 1, form
        shown = [parsed(number) for number in re.findall(r"(?<![\d,.+−-])\d+,[\d,]+(?:\.\d+)?", words)]
        # A page has the exact values of the conditions, too.
        before, after = ([number for number in shown if abs(number - value) <= 0.5] for value in pair)
        assert any(change == round(to - this, 4) for this in before for to in after), (form, shown)


def test_a_mail_has_words_for_what_is_counted() -> None:
    """It printed the escapes of signs that it knew only before `faster` and `slower`."""
    found = results()
    found.metrics.append(metric("size", "", "slower", [(100, 103)]))
    found.metrics[-1].unit = "B"
    mail = report_format("mail").render(found)
    assert "\\" not in mail and mail.isascii()
    for word in ("fewer", "more", "depends", "larger", "equivalent"):
        assert re.search(rf"^{word} +\S+/instructions", mail, re.MULTILINE), word


def modal(many: int) -> Results:
    found = results()
    found.metrics = [metric(f"op{number}", "processes", "more", [(100, 110), (100, 110)]) for number in range(many)]
    for one in found.metrics:
        one.modes = {"parent": [Mode(100, 0.6), Mode(120, 0.4)], "patched": [Mode(110, 1.0)]}
    return found


def test_what_names_the_other_modes_is_a_command_that_shows_them() -> None:
    """It was a command without a run, and that format had them of three operations."""
    found = modal(12)
    assert "and 4 operations more: kduel report my/run --format markdown" in render_text(
        found, width=90, colour=False, run="my/run"
    )
    bare = render_text(found, width=90, colour=False)
    assert "4 operations more, which the formats markdown, html and json have" in bare and "kduel report" not in bare
    said = report_format("markdown").render(found)
    assert all(f"- op{number}: 100 (60 %), 120 (40 %) → 110 (100 %)" in said for number in range(12))


def test_an_operation_keeps_its_subsystem_and_says_so_where_its_mean_decides() -> None:
    (mean,) = [
        one
        for one in Kbench().metrics(Kbench.Parameters(operation="pipe", mode="exact"))
        if one.name.endswith("-mean")
    ]
    assert mean.group == "scheduling and communication"
    found = results()
    found.metrics = [metric("pipe", mean.group, "more", [(100, 110)], kind="-mean")]
    text = render_text(found, width=90, colour=False)
    assert "scheduling and communication\n more    pipe, mean" in text and "\nother\n" not in text


@pytest.mark.parametrize("height", [16, 22, 24, 40])
def test_the_last_page_has_rows_of_every_contender(height: int) -> None:
    found = results()
    found.contenders.append(structs.replace(found.contenders[1], name="third"))
    more = [metric(f"op{number}", "processes", "more", [(100, 110)]) for number in range(8)]
    found.metrics = [*more, *(structs.replace(one, contender="third") for one in more)]
    lines = ["".join(text for text, _ in line) for line in closing(found, "RUN", 90, height)]
    assert len(lines) <= height
    heads = [lines.index(f"{name}:") for name in ("patched", "third")]
    assert all(lines[place + 1].startswith("op") for place in heads)
    shown = sum(line.startswith("op") for line in lines)
    assert shown == 16 or f"and {16 - shown} more: {16 - shown} more" in lines


def test_a_range_that_rounds_to_one_number_is_that_number() -> None:
    found = results()
    found.metrics = [metric("switch-8-0k", "", "more", [(6332, 7718), (6332, 7719)])]
    assert "+21.9 to +21.9 %" not in (text := render_text(found, width=80, colour=False)) and " +21.9 % " in text


def test_the_documentation_states_what_counts_as_a_different_change() -> None:
    said = " ".join((ROOT / "docs/exact.md").read_text().split())
    assert f"more than {OUTSIDE_PCT:g} points (per cent of the baseline) outside the range" in said


def of_pipe(kind: str, before: float, after: float, *, counted: bool) -> list[str]:
    """The page's lines about another way to look at pipe, whose usual call takes 15.7 % less."""
    found = results()
    usual = metric("pipe", "scheduling", "fewer", [(12_629, 10_650), (12_629, 10_650)])
    other = metric(
        "pipe", "", "more" if after > before else "fewer", [(before, after)], role="exploratory", kind=kind
    )
    if not counted:  # once, without conditions
        for one in (usual, other):
            one.conditions, one.ci_low_pct, one.ci_high_pct = [], None, None
    found.metrics = [usual, other]
    text = render_text(found, width=80, colour=False).splitlines()
    return [
        line
        for number, line in enumerate(text)
        if "pipe, " in line or "pipe, " in text[min(number + 1, len(text) - 1)]
    ]


@pytest.mark.parametrize("counted", [True, False])
def test_the_mean_is_shown_where_rare_calls_make_another_difference_and_never_as_a_situation(counted: bool) -> None:
    heading, line = of_pipe("-mean", 13_000, 12_900, counted=counted)
    assert "mean over all calls" in heading and "pipe, mean" in line and "−0.769 %" in line
    heading, line = of_pipe("-cgroup", 13_000, 13_900, counted=counted)
    assert "control group, or under SCHED_FIFO" in heading and line.startswith(" more")
    assert of_pipe("-mean", 13_000, 10_900, counted=counted) == [], "it is the same in the mean"


@pytest.mark.parametrize(("lines", "shown"), [("equal", True), ("more", False)])
def test_as_many_shared_lines_that_are_used_more_often_are_shown(lines: Verdict, shown: bool) -> None:
    found = results()
    usual = metric("dup", "files", lines, [(2, 2 if lines == "equal" else 3)])
    weight = metric("dup", "", "more", [(4, 6)], role="exploratory")
    found.metrics = [
        structs.replace(usual, metric="lines", unit="lines"),
        structs.replace(weight, metric="lines-locked", unit="lines-locked"),
    ]
    text = render_text(found, width=80, colour=False)
    assert ("as many shared lines, used more or less often\n more    dup, locked" in text) == shown
    found.metrics[1].role = "primary"
    told = headlines(structs.replace(found, metrics=found.metrics[1:]))[0].text
    assert "makes more locked operations on shared lines than parent" in told
    for pair, said in (
        (("lines", "lines-accesses"), "shares fewer cache lines than"),
        (("lines", "touched-lines"), "is better than"),
        (("instructions", "touched-lines"), "takes fewer instructions than"),
    ):
        found.metrics = [structs.replace(metric("dup", "", "fewer", [(4, 2)]), metric=one, unit=one) for one in pair]
        assert said in headlines(found)[0].text


def test_another_direction_is_shown_though_it_is_near() -> None:
    found = results()
    found.metrics = [
        metric("dup", "system calls and files", "fewer", [(1000, 980)]),
        metric("dup", "", "more", [(1000, 1020)], role="exploratory", kind="-mean"),
    ]
    assert "dup, mean" in render_text(found, width=80, colour=False)
    found.metrics[1].below_delta = True
    assert "dup, mean" not in render_text(found, width=80, colour=False)


def test_modes_are_shown_where_the_usual_call_is_not_nearly_all() -> None:
    found = results()
    found.metrics = found.metrics[:4]
    pipe = found.metrics[3]
    pipe.modes = {
        "parent": [Mode(12_653.0, 1.0)],
        "patched": [Mode(10_650.0, 0.63), Mode(11_511.0, 0.18), Mode(12_187.0, 0.17), Mode(20_000.0, 0.02)],
    }
    found.metrics[0].modes = {"parent": [Mode(378.0, 0.99)], "patched": [Mode(373.0, 0.97), Mode(999.0, 0.03)]}
    text = render_text(found, width=80, colour=False).splitlines()
    assert " pipe  12,653 (100 %) → 10,650 (63 %), 11,511 (18 %), 12,187 (17 %)" in text
    assert not any("378 (99 %)" in line for line in text)
    pipe.modes["parent"] = pipe.modes["patched"]
    text = render_text(found, width=80, colour=False).splitlines()
    (number,) = [number for number, line in enumerate(text) if line.startswith(" pipe  10,650 (63 %)")]
    assert text[number + 1].strip() == "→ 10,650 (63 %), 11,511 (18 %), 12,187 (17 %)"
    assert all(len(line) <= 80 for line in text)


def test_a_command_is_never_folded_for_it_is_to_be_pasted() -> None:
    run = "kduel-runs/exact-quick-debian-6.1-cloud-vs-debian-6.12-cloud"
    ended = results()
    ended.study.fixed = 1
    for lines_ in (
        render_text(ended, width=80, colour=False, run=run).splitlines(),
        ["".join(text for text, _ in line) for line in closing(ended, run, 80, 24)],
    ):
        assert any(line.strip() == f"kduel explain {run} -b fork-exit" for line in lines_)
    assert any(line.endswith(f"kduel report {run}") for line in lines_)
    assert not any("exploratory" in line for line in lines_), "the report lists those that add something"


def test_a_command_has_names_as_a_shell_takes_them() -> None:
    """A contender is called by its kernel and its command line."""
    found = results()
    for metric in found.metrics:
        metric.contender = "debian-6.12-cloud mitigations=off"
    found.metrics.append(structs.replace(found.metrics[0], contender="another", below_delta=True))
    _, command = next_command(found, "'my run'")
    named = ["-b", "fork-exit", "--contender", "debian-6.12-cloud mitigations=off"]
    assert shlex.split(command) == ["kduel", "explain", "my run", *named]


def test_what_was_counted_once_has_no_range_and_says_so() -> None:
    found = results()
    found.metrics = found.metrics[:1]
    assert "under one condition" not in render_text(found, width=80, colour=False)
    found.metrics[0].conditions, found.metrics[0].ci_low_pct, found.metrics[0].ci_high_pct = [], None, None
    text = render_text(found, width=80, colour=False)
    assert "over conditions" not in text and "counted once, under one condition" in " ".join(text.split())
    closed = "\n".join("".join(part for part, _ in line) for line in closing(found, "RUN", 100, 24))
    assert "range over conditions" not in closed and "counted once" in closed


@pytest.mark.parametrize(
    ("conditions", "unit", "blocks", "said"),
    [
        (2, "instructions", 1, "bars: range over conditions, exact"),
        (1, "instructions", 1, "counted once, under one condition"),
        (0, "ns", 1, "counted once, under one condition"),  # a time by the clock that counts instructions
        (0, "instructions", 2, "bars: range over blocks, exact"),
    ],
)
def test_the_last_screen_names_what_its_bars_are_ranges_of(
    conditions: int, unit: str, blocks: int, said: str
) -> None:
    found = results()
    found.metrics = [metric("null-call", "system calls and files", "fewer", [(378, 373)])]
    found.metrics[0].conditions = conditions * found.metrics[0].conditions
    found.metrics[0].unit, found.metrics[0].n = unit, blocks
    (legend,) = [
        line
        for pieces in closing(found, "RUN", 100, 24)
        if "smallest effect" in (line := "".join(part for part, _ in pieces))
    ]
    assert legend.endswith(f"; {said}")
    caption = re.findall(r"<caption>(.*?)</caption>", report_format("html").render(found), re.S)[0]
    over = said.removeprefix("bars: ").removesuffix(", exact") if "bars" in said else ""
    assert re.sub("<[^>]*>", "", caption) == (
        f"Primary metrics: these decide: {unit}, lower is better. Change against parent{f' with its {over}' if over else ''}."
    )
    if conditions == 1:
        assert "under one condition" in " ".join(render_text(found, width=80, colour=False).split())


def test_what_was_measured_in_neither_has_no_empty_table() -> None:
    found = results()
    found.metrics = found.metrics[:1]
    found.metrics[0].n, found.metrics[0].conditions, found.metrics[0].verdict = 0, [], "undecided"
    found.metrics[0].effect = found.metrics[0].mean = found.metrics[0].baseline_mean = None
    text = render_text(found, width=80, colour=False)
    assert "not measured in both: null-call" in text and "before → after" not in text
    assert "or read why trials are void or steps failed" in " ".join(text.split())


def test_a_panic_is_told_by_its_line_not_by_its_call_trace() -> None:
    found = results()
    frames = "".join(f"\n    [    1.{n:06}]  some_function_of_the_kernel+0x{n:x}/0x100" for n in range(40))
    for trial in found.trials:
        trial.status, trial.reason = (
            "void",
            f"panic: The guest panicked:\n    [ 1.0] Kernel panic - not syncing: VFS{frames}",
        )
    (said, *_) = [line for line in digest(found).caveats if "could not be measured" in line]
    assert "The guest panicked: [ 1.0] Kernel panic - not syncing: VFS" in said and len(said) < 400


def test_the_picture_of_counts_is_of_ranges_with_a_dot_a_condition() -> None:
    counted = results()
    page = report_format("html").render(counted)
    captions = [re.sub("<[^>]*>", "", one) for one in re.findall(r"<caption>(.*?)</caption>", page, re.S)]
    assert "range over conditions" in captions[0] and "with its interval" not in captions[0]
    drawn = re.findall(r'<svg class="interval [^"]+".*?</svg>', page, re.S)[0]
    metric = counted.gating[0]
    assert drawn.count("#dot-") == len(metric.conditions) > 1
