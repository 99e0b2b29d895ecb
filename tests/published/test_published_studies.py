"""The four published studies: what they print comes out of their raw tables again, and what is wrong is found."""

from __future__ import annotations

import csv
import json
import math
import re
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.core.format import relative_pct
from kduel.core.metric_results import SET_BY_HARNESS, MetricResult
from kduel.core.results import Results
from kduel.judge.imported import results
from kduel.report import report_format
from kduel.store.imported import Source, bring_in

PUBLISHED = Path(__file__).parents[2] / "studies" / "published"
Values = dict[tuple[str, str, str], list[float]]


def values(name: str) -> Values:
    """By contender, benchmark and metric, in the order of trials."""
    found: Values = {}
    with (PUBLISHED / name).open(newline="") as stream:
        for row in csv.DictReader(stream):
            found.setdefault((row["contender"], row["benchmark"], row["metric"]), []).append(float(row["value"]))
    return found


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Results]:
    """A published file, imported and judged."""
    known: dict[str, Results] = {}

    def judge(name: str) -> Results:
        if name not in known:
            out = tmp_path_factory.mktemp("published") / name
            conditions = PUBLISHED / f"{name}.toml"
            bring_in([Source(PUBLISHED / f"{name}.csv")], out, conditions=conditions if conditions.exists() else None)
            known[name] = results(out)
        return known[name]

    return judge


def one(found: Results, key: str, contender: str | None = None) -> MetricResult:
    """The one verdict of that metric."""
    chosen = [m for m in found.metrics if f"{m.benchmark}/{m.metric}" == key and contender in (None, m.contender)]
    assert len(chosen) == 1
    return chosen[0]


def codes(metric: MetricResult) -> set[str]:
    return {warning.code for warning in metric.warnings}


# Study 000, Table I: mean and SD of 4.19, then of 6.6, to every digit that it prints.
TABLE_I = {
    "sysbench-cpu-1t/events_per_second": ("3230.663", "5.496687993", "3231.876", "7.456161062"),
    "sysbench-cpu-2t/events_per_second": ("6479.23", "4.432170274", "6477.699", "10.52119496"),
    "perf-stat/context_switches": ("279.6", "17.98888546", "216.7", "19.90002792"),
    "perf-stat/cpu_migrations": ("2.3", "0.674948558", "2.1", "0.316227766"),
    "perf-stat/task_clock": ("10007.267", "3.164943566", "10006.848", "21.76406049"),
    "sysbench-fileio-seqwr/total_time": ("10.00356", "0.000857904", "10.00424", "0.001886914"),
    "cyclictest/max_latency": ("415.8", "101.9191401", "444.7", "207.6246881"),
}


@pytest.mark.parametrize("key", TABLE_I)
def test_generations_table_i_comes_out_to_every_printed_digit(judged: Callable[[str], Results], key: str) -> None:
    found = one(judged("generations"), key)
    recomputed = (found.baseline_mean, found.baseline_sd, found.mean, found.sd)
    for value, printed in zip(recomputed, TABLE_I[key], strict=True):
        assert value is not None
        decimals = len(printed.partition(".")[2])
        assert f"{value:.{decimals}f}" == printed


def test_generations_only_the_context_switches_are_decided_to_differ(judged: Callable[[str], Results]) -> None:
    found = judged("generations")
    assert {f"{m.benchmark}/{m.metric}": m.verdict for m in found.metrics} == {
        "sysbench-cpu-1t/events_per_second": "equivalent",
        "sysbench-cpu-2t/events_per_second": "equivalent",
        "perf-stat/context_switches": "lower",
        "perf-stat/cpu_migrations": "undecided",
        "perf-stat/task_clock": "undecided",
        "sysbench-fileio-seqwr/total_time": "undecided",
        "cyclictest/max_latency": "undecided",
    }
    for name in ("perf-stat/task_clock", "sysbench-fileio-seqwr/total_time"):
        assert one(found, name).withheld == SET_BY_HARNESS, "that a benchmark ends after its time proves nothing"
    switches = one(found, "perf-stat/context_switches")
    assert switches.mean is not None and switches.baseline_mean is not None
    assert 100 * (switches.mean / switches.baseline_mean - 1) == pytest.approx(-22.496, abs=0.001)
    assert switches.beside["cliffs_delta"] == pytest.approx(-0.94, abs=0.005)
    assert switches.beside["p_mann_whitney"] == pytest.approx(8e-5, rel=0.06)
    for name in ("sysbench-cpu-1t", "sysbench-cpu-2t"):
        cpu = one(found, f"{name}/events_per_second")
        assert cpu.ci_low_pct is not None and cpu.ci_high_pct is not None
        assert -1 < cpu.ci_low_pct < 0 < cpu.ci_high_pct < 1


def test_generations_welch_on_the_plain_values_has_the_known_p(judged: Callable[[str], Results]) -> None:
    from scipy.stats import ttest_ind

    table = values("generations.csv")
    arms = [table[name, "perf-stat", "context_switches"] for name in ("linux-4.19.309", "linux-6.6.0")]
    assert ttest_ind(*arms, equal_var=False).pvalue == pytest.approx(8e-7, rel=0.1)


def test_generations_lint(judged: Callable[[str], Results]) -> None:
    found = judged("generations")
    assert {f"{m.benchmark}/{m.metric}": codes(m) for m in found.metrics} == {
        "sysbench-cpu-1t/events_per_second": set(),
        "sysbench-cpu-2t/events_per_second": set(),
        "perf-stat/context_switches": set(),
        "perf-stat/cpu_migrations": {"ties", "unreliable"},
        "perf-stat/task_clock": {"fixed-by-harness"},
        "sysbench-fileio-seqwr/total_time": {"fixed-by-harness"},
        "cyclictest/max_latency": {"one-trial", "maximum", "unreliable"},
    }
    latency = one(found, "cyclictest/max_latency")
    carrying = next(w.message for w in latency.warnings if w.code == "one-trial")
    assert "968" in carrying and "trial 1 of linux-6.6.0" in carrying
    assert latency.mean is not None and latency.baseline_mean is not None
    assert latency.median is not None and latency.baseline_median is not None
    assert 100 * (latency.mean / latency.baseline_mean - 1) == pytest.approx(7.0, abs=0.1)
    assert 100 * (latency.median / latency.baseline_median - 1) == pytest.approx(-13, abs=0.5)
    assert {w.code for w in found.warnings} == {"not-interleaved"}


# Study 001: benchmark, metric and the printed delta in whole per cent.
DELTAS = [
    ("build-sandpoint", "real", 31), ("build-sandpoint", "user", 30), ("build-sandpoint", "sys", 39),
    ("size-sandpoint", "compressed_image", 27), ("size-sandpoint", "vmlinux", 20),
    ("build-tqm860l", "real", 43), ("build-tqm860l", "user", 43), ("build-tqm860l", "sys", 50),
    ("size-tqm860l", "compressed_image", 43), ("size-tqm860l", "vmlinux", 35),
    ("boot-sandpoint", "linux_version", 15), ("boot-sandpoint", "user_space", -4),
    ("boot-tqm860l", "login", 17), ("boot-sandpoint", "login", 6),
    ("memory-tqm860l", "kernel_code_and_data", 34), ("memory-tqm860l", "total", -2),
    ("memory-tqm860l", "allocatable", -8),
]  # fmt: skip
OLD, NEW = "linux-2.4.25", "linux-2.6.11.7"


@pytest.mark.parametrize(("benchmark", "metric", "printed"), DELTAS)
def test_footprint_deltas_recompute(
    judged: Callable[[str], Results], benchmark: str, metric: str, printed: int
) -> None:
    found = one(judged("footprint"), f"{benchmark}/{metric}")
    percent = relative_pct(found)
    assert percent is not None and round(percent) == printed


@pytest.mark.parametrize(("metric", "printed"), [("linux_version", 6), ("user_space", 1)])
def test_footprint_two_deltas_hold_only_within_rounding(metric: str, printed: int) -> None:
    table = values("footprint.csv")
    (old,), (new,) = table[OLD, "boot-tqm860l", metric], table[NEW, "boot-tqm860l", metric]
    assert round(100 * (new / old - 1)) != printed
    low, high = (new - 0.05) / (old + 0.05), (new + 0.05) / (old - 0.05)
    assert 100 * (low - 1) - 0.5 < printed < 100 * (high - 1) + 0.5


def test_footprint_printed_figures_are_the_raw_ones_rounded() -> None:
    table = values("footprint.csv")
    printed = {
        ("build-sandpoint", "real"): (77.7, 101.6), ("build-sandpoint", "user"): (268.2, 348.5),
        ("build-tqm860l", "real"): (50.3, 72.2), ("build-tqm860l", "user"): (175.3, 251.5),
        ("build-tqm860l", "sys"): (19.6, 29.4), ("build-sandpoint", "sys"): (28.3, 39.4),
    }  # fmt: skip
    for (benchmark, metric), pair in printed.items():
        assert (table[OLD, benchmark, metric][0], table[NEW, benchmark, metric][0]) == pytest.approx(pair, abs=0.051)
    sizes = {
        ("size-sandpoint", "compressed_image"): (887.9, 1123.5), ("size-sandpoint", "vmlinux"): (2086.4, 2513.6),
        ("size-tqm860l", "compressed_image"): (495.8, 706.8), ("size-tqm860l", "vmlinux"): (1189.6, 1602.8),
    }  # fmt: skip
    for (benchmark, metric), pair in sizes.items():
        raw = [table[name, benchmark, metric][0] / 1024 for name in (OLD, NEW)]
        assert [round(size, 1) for size in raw] == list(pair)


@pytest.mark.parametrize(("benchmark", "metric", "printed"), DELTAS)
def test_footprint_deltas_are_printed_in_the_studys_form(
    judged: Callable[[str], Results], benchmark: str, metric: str, printed: int
) -> None:
    text = report_format("summary").render(judged("footprint"))
    part = text[text.index(f"{benchmark} ") :].partition("\n\n")[0]
    (row,) = [line for line in part.splitlines() if line.startswith(f"{metric} (")]
    told = row.split("|")[3].partition("%")[0].replace(" ", "").replace("−", "-")
    assert float(told) == pytest.approx(printed, abs=0.551), "to the digits of both"
    assert row.endswith("exact" if benchmark.startswith("size-") else "n = 1: may be chance")


def test_footprint_lint_speaks_and_the_summary_claims_nothing(judged: Callable[[str], Results]) -> None:
    found = judged("footprint")
    differing = {f"{d.group}.{d.key}": d.declared for d in found.differences}
    assert differing == {"kernel.release": True, "conditions.make": False, "config.SCSI": True}
    assert {w.code for w in found.warnings} == {"not-interleaved", "confounds", "config-differs"}
    text = " ".join(report_format("summary").render(found).split())
    assert "conditions: make" in text and "configurations differ in 1 option" in text
    assert "measured once each, so that no difference can be distinguished from chance" in text
    claims = re.split("Costs: |Gains: ", text.partition("Summary:")[2])[1:]
    assert claims and all(claim.startswith("size-") for claim in claims), "only what chance has no part in is claimed"


def test_footprint_parts_add_up() -> None:
    table = values("footprint.csv")
    for name in (OLD, NEW):
        for board in ("size-sandpoint", "size-tqm860l"):
            parts = sum(table[name, board, part][0] for part in ("text", "data", "bss"))
            assert parts == table[name, board, "vmlinux"][0]
        memory = {metric: table[name, "memory-tqm860l", metric][0] for metric in
                  ("total", "used", "free", "kernel_code", "kernel_data", "kernel_code_and_data")}  # fmt: skip
        assert memory["used"] + memory["free"] == memory["total"]
        assert memory["kernel_code"] + memory["kernel_data"] == memory["kernel_code_and_data"]


@pytest.mark.parametrize("name", ["footprint", "desktop", "desktop-power", "desktop-smt"])
def test_one_measurement_decides_nothing_and_is_told(judged: Callable[[str], Results], name: str) -> None:
    found = judged(name)
    sizes = [m for m in found.metrics if m.benchmark.startswith("size-")]
    assert {m.verdict for m in sizes} <= {"different"} and bool(sizes) == (name == "footprint")
    others = [m for m in found.metrics if m not in sizes]
    assert {m.verdict for m in others} == {"undecided"}
    measured = [m for m in others if m.n == 1]
    assert measured and all("single-trial" in codes(m) for m in measured)
    assert all("Cannot decide" in m.told for m in others)
    assert all(m.ci_low_pct is None and m.ci_high_pct is None for m in others)
    assert all(m.ci_low_pct == m.effect_pct == m.ci_high_pct for m in sizes)


def test_footprint_sizes_differ_for_certain(judged: Callable[[str], Results]) -> None:
    """1,838,116 against 2,253,870 bytes of text is no matter of chance."""
    text = one(judged("footprint"), "size-sandpoint/text")
    assert (text.verdict, text.scale, text.effect, text.n) == ("different", "exact", 2_253_870 - 1_838_116, 1)
    assert "single-trial" not in codes(text)


# Study 002.


def test_policies_have_27_cells_of_five() -> None:
    table = values("policies.csv")
    assert len(table) == 27 * 6
    assert all(len(each) == 5 for each in table.values())
    assert {name for name, _, _ in table} == {"SCHED_RR", "SCHED_OTHER", "SCHED_FIFO"}


def test_policies_the_misplaced_row_stands_where_it_belongs() -> None:
    table = values("policies.csv")
    assert table["SCHED_RR", "cpu-large", "wall"][-1] == 12.08
    assert max(table["SCHED_OTHER", "cpu-small", "wall"]) < 1
    # A row's times explain its share of CPU: 42.93 s + 1.13 s in 12.08 s is 364 %.
    row = [table["SCHED_RR", "cpu-large", metric][-1] for metric in ("wall", "user", "system", "cpu")]
    assert 100 * (row[1] + row[2]) / row[0] == pytest.approx(row[3], rel=0.01)


def test_policies_cfs_needs_less_wall_time_for_much_io(judged: Callable[[str], Results]) -> None:
    found = one(judged("policies"), "io-large/wall", "SCHED_OTHER")
    assert found.verdict == "faster"
    assert found.baseline == "SCHED_RR"
    assert found.effect_pct == pytest.approx(-25.8, abs=0.05)
    assert found.mean is not None and found.baseline_mean is not None
    assert 100 * (found.mean / found.baseline_mean - 1) == pytest.approx(-25.8, abs=0.06)


def test_policies_cfs_is_slower_with_much_cpu_and_not_quicker_with_little_mixed(
    judged: Callable[[str], Results],
) -> None:
    table = values("policies.csv")
    mean = {
        name: statistics.mean(table[name, "cpu-large", "wall"]) for name in ("SCHED_RR", "SCHED_OTHER", "SCHED_FIFO")
    }
    against_rr = 100 * (mean["SCHED_OTHER"] / mean["SCHED_RR"] - 1)
    against_fifo = 100 * (mean["SCHED_OTHER"] / mean["SCHED_FIFO"] - 1)
    assert (round(against_fifo, 1), round(against_rr, 1)) == (7.5, 8.3)
    small = one(judged("policies"), "mixed-small/wall", "SCHED_OTHER")
    assert small.verdict == "undecided"
    assert small.effect_pct is not None and small.effect_pct > 0


def test_policies_what_the_report_claims_of_io_is_not_in_its_table(judged: Callable[[str], Results]) -> None:
    for count in ("medium", "large"):
        found = one(judged("policies"), f"io-{count}/wall", "SCHED_OTHER")
        assert found.ci_low_pct is not None
        assert found.effect_pct is not None and found.effect_pct > -30, "40 % was claimed"


def test_policies_times_below_the_clock_step_decide_nothing(judged: Callable[[str], Results]) -> None:
    found = one(judged("policies"), "cpu-small/system", "SCHED_OTHER")
    assert found.verdict == "undecided"
    assert "ties" in codes(found)


# Study 003: from, to, benchmark, metric, printed per cent, decimals.
STOCK, CUSTOM, DOCKED, CLEANED = "dec26-zen", "dec26-zen-x1c", "dec29-zen-x1c", "dec31-zen-x1c"
BPFLAND, LAVD = "jan03-cachyos-bpfland", "jan03-cachyos-lavd-gaming"
CPU, MEMORY, FILE = (
    ("sysbench-cpu-20t", "events_per_second"),
    ("sysbench-memory", "throughput"),
    ("sysbench-fileio", "throughput"),
)
SWITCH, BOOT, INITRAMFS = ("context-switch", "time"), ("boot", "time"), ("system", "initramfs")
CLAIMS = [
    (STOCK, CUSTOM, CPU, -0.45, 2), (DOCKED, CLEANED, CPU, 4.9, 1), (DOCKED, CLEANED, MEMORY, 74, 0),
    (DOCKED, CLEANED, FILE, 17, 0), (CLEANED, BPFLAND, CPU, 8, 0), (CLEANED, BPFLAND, MEMORY, 2, 0),
    (CLEANED, BPFLAND, FILE, -7, 0), (CLEANED, BPFLAND, SWITCH, -12, 0), (LAVD, BPFLAND, CPU, 1.2, 1),
    (BPFLAND, LAVD, SWITCH, -15, 0), (STOCK, DOCKED, CPU, -21, 0), (STOCK, CLEANED, MEMORY, 165, 0),
    (STOCK, CLEANED, FILE, 244, 0), (STOCK, CLEANED, BOOT, -13, 0), (STOCK, BPFLAND, MEMORY, 170, 0),
    (STOCK, BPFLAND, FILE, 219, 0), (STOCK, CUSTOM, INITRAMFS, -21, 0), (STOCK, DOCKED, BOOT, -12, 0),
    (STOCK, DOCKED, SWITCH, -48, 0), (STOCK, DOCKED, FILE, 195, 0), (STOCK, BPFLAND, SWITCH, -28, 0),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "what", "printed", "decimals"), CLAIMS)
def test_desktop_printed_changes_recompute(
    before: str, after: str, what: tuple[str, str], printed: float, decimals: int
) -> None:
    table = values("desktop.csv")
    change = 100 * (table[after, *what][0] / table[before, *what][0] - 1)
    assert round(change, decimals) == printed


def test_desktop_summary_table_is_held() -> None:
    table = values("desktop.csv")
    rows = {
        CPU: (40109, 33284, 35959), MEMORY: (5263, 13923, 14197), FILE: (7272, 25023, 23219),
        SWITCH: (31.6, 25.6, 22.6), ("system", "modules"): (248, 238, 260), INITRAMFS: (29, 30, 33), BOOT: (55.0, 47.6, 57.8),
    }  # fmt: skip
    for what, printed in rows.items():
        assert tuple(table[name, *what][0] for name in (STOCK, CLEANED, BPFLAND)) == printed


def test_desktop_power_and_scaling_recompute() -> None:
    power = values("desktop-power.csv")
    per_watt = [
        power[name, "sysbench-cpu-14t", "events_per_second"][0] / power[name, "power", "load"][0]
        for name in ("zen", "zen-x1c")
    ]
    assert [round(each) for each in per_watt] == [1113, 1053]
    threads = {6: 6839, 14: 12908, 20: 13036}
    table = values("desktop-smt.csv")
    assert {n: table[f"{n}-threads", "sysbench-cpu", "events_per_second"][0] for n in threads} == threads
    each = {n: total / n for n, total in threads.items()}
    assert [math.floor(each[n] + 0.5) for n in threads] == [1140, 922, 652]
    assert [round(100 * each[n] / each[6]) for n in threads] == [100, 81, 57]
    assert round(100 * (threads[20] / threads[14] - 1)) == 1


def test_desktop_latency_differs_eightyfold_and_misses_the_baseline(judged: Callable[[str], Results]) -> None:
    table = values("desktop.csv")
    assert round(table[LAVD, "latency", "max_latency"][0] / table[BPFLAND, "latency", "max_latency"][0]) == 80
    found = one(judged("desktop"), "latency/max_latency", BPFLAND)
    assert found.n == 0 and found.effect_pct is None and "has no value" in found.told


def test_desktop_confounds_and_the_page_cache_are_noticed(judged: Callable[[str], Results]) -> None:
    found = judged("desktop")
    differing = {f"{d.group}.{d.key}": d.declared for d in found.differences}
    assert differing["kernel.release"] and differing["scheduler.scheduler"]
    assert differing["conditions.cooldown"] is False
    assert differing["hardware.connected"] is False
    assert differing["packages.laptop-mode-tools"] is False
    assert "conditions.platform_profile" not in differing
    assert {"confounds", "not-interleaved"} <= {w.code for w in found.warnings}
    cached = {m.contender for m in found.metrics if "page-cache" in codes(m)}
    assert cached == {DOCKED, CLEANED, BPFLAND}


@pytest.mark.parametrize("format_name", ["text", "markdown", "csv", "latex", "mail", "summary"])
@pytest.mark.parametrize("name", ["generations", "footprint", "policies", "desktop"])
def test_every_study_is_written_up(judged: Callable[[str], Results], name: str, format_name: str) -> None:
    found = judged(name)
    text = report_format(format_name).render(found)
    escaped = text.replace("\\_", "_").replace("\\allowbreak{}", "")
    if format_name != "csv":
        assert "mported" in text, "what is not known of the run is said"
    for contender in found.contenders[1:]:
        assert contender.name in escaped


def test_the_json_has_null_for_what_is_missing(judged: Callable[[str], Results]) -> None:
    document = json.loads(report_format("json").render(judged("desktop")))
    (latency,) = [m for m in document["metrics"] if m["metric"] == "max_latency" and m["contender"] == BPFLAND]
    assert latency["effect_pct"] is None and latency["baseline_mean"] is None
    assert latency["values"][STOCK] == [None] and latency["values"][BPFLAND] == [5.8]
