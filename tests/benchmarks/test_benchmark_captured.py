"""Every parser on what real programs of four Debian releases printed: exact, and never an invented value."""

from __future__ import annotations

import re
import string

import pytest
from benchmark_cases import CASES, DOCUMENTED, GOOD, NAMES, Case
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.benchmarks import ParseError
from kduel.benchmarks.support.reading import find_one

NOISE = string.ascii_letters + string.punctuation + "\0\ufffd\N{ARABIC-INDIC DIGIT SEVEN}"
"""What garbles a byte here: all but digits and white space. One digit for another can be found only by the checksum
of the trial's envelope."""


APPLICATIONS = (
    "compile-tree",
    "git-status",
    "iperf3",
    "mariadb",
    "memcached",
    "netperf",
    "nginx",
    "pgbench",
    "redis",
    "rocksdb",
    "sqlite",
    "zstd",
)
FEWER = {
    **dict.fromkeys(("dbench", "latency-causes", "osnoise", "timerlat"), 1),
    **dict.fromkeys((*APPLICATIONS, "oslat", "signaltest"), 2),
}
"""Applications and what Debian 11 has not are captured from Debian 12 and 13; dbench has not changed for ten
years; what reads the kernel's tracers is captured in a guest."""


@pytest.mark.parametrize("case", GOOD, ids=repr)
def test_values_are_exactly_those_printed(case: Case) -> None:
    values = case.benchmark.parse(case.raw, case.parameters)
    assert case.benchmark.label(case.parameters) == case.directory.name
    assert values == pytest.approx(case.expected, rel=1e-9, abs=0)
    missing = [metric for metric in case.benchmark.metrics(case.parameters) if metric.name not in values]
    assert all(metric.optional for metric in missing)


@pytest.mark.parametrize("case", [case for case in CASES if case.expected is None], ids=repr)
def test_output_that_has_no_answer_is_refused_with_the_reason(case: Case) -> None:
    assert case.error, "its JSON file needs `expected` or `error`, written by hand"
    with pytest.raises(ParseError) as told:
        case.benchmark.parse(case.raw, case.parameters)
    assert case.error in str(told.value)


def test_every_benchmark_that_has_a_program_is_captured_from_several_versions() -> None:
    versions: dict[str, set[str]] = {}
    for case in GOOD:
        versions.setdefault(case.benchmark.name, set()).add(case.directory.parent.name)
    for name in set(NAMES) - DOCUMENTED:
        needed = FEWER.get(name, 3)
        assert len(versions.get(name, ())) >= needed, (
            f"{name} is captured from {sorted(versions.get(name, ()))}, and needs {needed} versions of its program: "
            "capture the others, or enter it in FEWER where there are no more"
        )


def places(lines: list[str]) -> list[int]:
    """Numbers of lines: of those that differ in their digits only, the first two and the last one."""
    alike: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        alike.setdefault(re.sub(r"\d+", "0", line), []).append(number)
    return sorted({number for numbers in alike.values() for number in (*numbers[:2], numbers[-1])})


@pytest.mark.slow
@pytest.mark.parametrize("case", GOOD, ids=repr)
def test_truncated_at_any_line(case: Case) -> None:
    for name, text in case.texts.items():
        lines = text.splitlines(keepends=True)
        for count in places(lines):
            found = case.outcome({name: "".join(lines[:count])})
            assert found is None or found == case.whole, f"{name} cut after line {count}: {found}"


def test_truncated_everywhere_gives_nothing() -> None:
    for case in GOOD:
        assert case.outcome(dict.fromkeys(case.texts, "")) is None, case


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.data())
def test_truncated_at_any_byte(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(GOOD))
    name = data.draw(st.sampled_from(case.written))
    text = case.texts[name]
    found = case.outcome({name: text[: data.draw(st.integers(0, len(text) - 1))]})
    assert found is None or found == case.whole


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(st.data())
def test_garbled_at_any_byte(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(GOOD))
    name = data.draw(st.sampled_from(case.written))
    text = case.texts[name]
    at = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:at] + data.draw(st.sampled_from(NOISE)) + text[at + 1 :]
    found = case.outcome({name: garbled})
    assert found is None or found == case.whole


@pytest.mark.slow
@pytest.mark.parametrize("case", GOOD, ids=repr)
def test_cut_inside_the_last_line(case: Case) -> None:
    """Where a number may be the last thing that is there."""
    for name in case.written:
        text = case.texts[name]
        for length in range(len(text.rstrip("\n").rpartition("\n")[0]) + 1, len(text)):
            found = case.outcome({name: text[:length]})
            assert found is None or found == case.whole, f"{name} cut after {length} of {len(text)}: {found}"


@pytest.mark.slow
@pytest.mark.parametrize("case", GOOD, ids=repr)
def test_a_line_lost_or_doubled(case: Case) -> None:
    for name in case.written:
        lines = case.texts[name].splitlines(keepends=True)
        for at in places(lines):
            for times in (0, 2):
                found = case.outcome({name: "".join(lines[:at] + times * [lines[at]] + lines[at + 1 :])})
                assert found is None or found == case.whole, f"line {at + 1} of {name} {times} times: {found}"


@pytest.mark.slow
@pytest.mark.parametrize("nonsense", ["nan", "inf", "-1.00", "1e3", "1,234.5", "1.234,5", "٣", "9" * 400, ""])
def test_nonsense_in_place_of_any_number_that_counts(nonsense: str) -> None:
    """Each value of each case, replaced wherever it stands as printed."""
    tried = 0
    for case in GOOD:
        for name, text in case.texts.items():
            for value in {f"{v:.2f}" for v in (case.expected or {}).values()} | {
                f"{v:g}" for v in (case.expected or {}).values()
            }:
                if text.count(f" {value}\n") != 1:
                    continue
                tried += 1
                found = case.outcome({name: text.replace(f" {value}\n", f" {nonsense}\n")})
                assert found is None or found == case.whole, (case, value)
    assert tried > 50


def test_the_output_of_other_parameters_is_refused() -> None:
    """A file in the wrong directory is no measurement."""
    for name, known in (
        ("sysbench-cpu", "threads"),
        ("sysbench-fileio", "mode"),
        ("sysbench-memory", "operation"),
        ("perf-sched-pipe", "loops"),
        ("perf-sched-messaging", "groups"),
        ("hackbench", "datasize"),
        ("stress-ng", "stressor"),
        ("vmstat", "time"),
    ):
        cases = [case for case in GOOD if case.benchmark.name == name]
        for case in cases:
            for other in cases:
                if getattr(case.parameters, known) != getattr(other.parameters, known):
                    with pytest.raises(ParseError):
                        case.benchmark.parse(case.raw, other.parameters)


def one(name: str, **parameters: object) -> Case:
    """The first good case of a benchmark with these parameters."""
    return next(
        case
        for case in GOOD
        if case.benchmark.name == name
        and all(getattr(case.parameters, key) == value for key, value in parameters.items())
    )


@pytest.mark.parametrize(
    ("case", "file", "pattern", "wrong"),
    [
        (one("sysbench-cpu"), "stdout", r"(events per second: +)", r"\g<1>9"),
        (one("sysbench-cpu"), "stdout", r"(total time: +)\d", r"\g<1>0"),
        (one("sysbench-cpu"), "stdout", r"(events \(avg/stddev\): +)\d", r"\1"),
        (one("sysbench-fileio"), "stdout", r"(fsyncs/s: +|reads/s: +(?=[1-9]))", r"\g<1>999999"),
        (one("sysbench-cpu"), "stdout", r"(total number of events: +)\d", r"\1"),
        (one("sysbench-cpu"), "stdout", r"( sum: +)\d", r"\1"),
        (one("sysbench-cpu"), "stdout", r"( min: +)", r"\g<1>9"),
        (one("sysbench-cpu"), "stdout", r"(95th percentile: +)", r"\g<1>99"),
        (one("sysbench-memory"), "stdout", r"(MiB transferred \()", r"\g<1>9"),
        (one("sysbench-memory"), "stdout", r"\d([.]\d+ MiB transferred \()", r"\1"),
        (one("perf-sched-pipe"), "stdout", r"(\d)([.]\d+ usecs/op)", r"\g<1>0\2"),
        (one("cyclictest"), "cyclictest.json", r'("avg": )\d', r"\1"),
        (one("cyclictest"), "cyclictest.json", r'("cycles": )\d', r"\1"),
        (one("cyclictest"), "cyclictest.json", r'("max": )', r"\g<1>1"),
        (one("cyclictest"), "cyclictest.json", r'("return_code": )0', r"\g<1>1"),
        (one("cyclictest"), "cyclictest.json", r'("num_threads": )2', r"\g<1>3"),
        (one("stress-ng"), "metrics.yaml", r"(\n {6}bogo-ops-per-second-real-time: )\d", r"\1"),
        (one("stress-ng"), "metrics.yaml", r"(\n {6}bogo-ops: )\d", r"\1"),
        (one("fio", rw="read"), "fio.json", r'("read" : \{[^{}]*"iops" : )', r"\g<1>1"),
        (one("fio", rw="read"), "fio.json", r'("read" : \{[^{}]*"bw_bytes" : )', r"\g<1>1"),
        (one("fio", rw="read"), "fio.json", r'("error" : )0', r"\g<1>5"),
        (one("perf-stat"), "counts.csv", r",100.00,", ",57.31,"),
        (one("perf-stat"), "counts.csv", r"\n\d+,,context", "\n<not counted>,,context"),
        (one("perf-stat"), "cpus", r".*", "0"),
    ],
    ids=repr,
)
def test_figures_that_contradict_each_other_are_refused(case: Case, file: str, pattern: str, wrong: str) -> None:
    changed, times = re.subn(pattern, wrong, case.texts[file], count=1)
    assert times == 1 and changed != case.texts[file]
    assert case.outcome({file: changed}) is None


@pytest.mark.parametrize(
    ("name", "metric", "value", "printed"),
    [
        ("sysbench-cpu", "events-per-second", 16 / 18.1320, 0.88),
        ("sysbench-memory", "throughput", 144.18 / 17.5562, 8.21),
        ("sysbench-fileio", "reads-per-second", 60 / 9.1012, 6.59),
    ],
)
def test_a_program_that_waited_for_a_cpu_is_read(name: str, metric: str, value: float, printed: float) -> None:
    """Captured at the lowest priority beside sixteen busy processes on two CPUs."""
    (case,) = (case for case in GOOD if case.benchmark.name == name and "starved" in case.name)
    assert case.whole is not None and case.whole[metric] == pytest.approx(value, rel=0.01)
    assert "latency-p95" not in case.whole or case.whole.get("total-events", 20) >= 20
    assert case.benchmark.details(case.raw, case.parameters).printed[metric] == printed


def test_a_rate_until_a_late_report_is_computed_from_events_and_time() -> None:
    """506 events in 1.0045 s, of which sysbench printed 419.66 per second after waiting for a CPU."""
    case = one("sysbench-cpu")
    text = case.texts["stdout"]
    for pattern, figure in (
        (r"(events per second: +)\S+", "419.66"),
        (r"(total time: +)\S+(?=s)", "1.0045"),
        (r"(number of events: +)\S+", "506"),
        (r"(events \(avg/stddev\): +)[^/]+", "506.0000"),
        (r"( min: +)\S+", "1.50"),
        (r"( avg: +)\S+", "1.98"),
        (r"( sum: +)\S+", "1003.00"),
    ):
        text = re.sub(pattern, rf"\g<1>{figure}", text)
    values = case.outcome({"stdout": text})
    assert values is not None and values["events-per-second"] == pytest.approx(506 / 1.0045)


@pytest.mark.parametrize("name", ["sysbench-cpu", "sysbench-memory", "sysbench-fileio"])
def test_a_report_without_its_last_line_is_refused(name: str) -> None:
    case = one(name)
    assert case.outcome({"stdout": case.texts["stdout"].partition("    execution time")[0]}) is None


def test_one_line_is_wanted_and_only_whole() -> None:
    assert find_one(r"rate: (\S+)", "rate: 1\nrates: 2\n", "the rate") == "1"
    for text in ("rate: 1\nrate: 1\n", "rate: 1", "a rate: 1\n", "rate: 1 2\n", ""):
        with pytest.raises(ParseError, match="the rate"):
            find_one(r"rate: (\S+)", text, "the rate")


def test_hackbench_that_passed_other_messages_is_refused() -> None:
    case = one("hackbench")
    other = case.benchmark.read_parameters({"groups": case.parameters.groups, "loops": 7})
    with pytest.raises(ParseError, match="number of messages"):
        case.benchmark.parse(case.raw, other)


def test_of_schbench_reports_the_last_one_counts() -> None:
    """It reports every ten seconds, over all until then; other versions indent by a tab."""
    case = one("schbench", time=90)
    early = one("schbench", time=10).texts["stdout"].replace("average rps", "current rps")
    assert case.outcome({"stdout": early + case.texts["stdout"]}) == case.whole
    assert case.outcome({"stdout": case.texts["stdout"].replace("        ", "\t")}) == case.whole
    assert case.outcome({"stdout": early}) is None
