"""The fuzzer over every benchmark that there is, in its short form; perf/fuzz_parsers.py is the long one."""

from __future__ import annotations

import random
import re
import time

import pytest
from benchmark_cases import GOOD, Case
from fuzzing import MUTATORS, Texts, Values, finding, mutate, numbers_in, swollen

from kduel.benchmarks import Benchmark, Parameters, ParseError, ParserFault, Raw
from kduel.core.experiment import Metric
from kduel.core.plugins import plugins

MUTATIONS = 100
SWOLLEN = 200_000
MOST_SECONDS = 10.0
"""CPU time for SWOLLEN characters: hundreds of times of what it takes, and far less than its square would."""
NAMES = sorted({case.benchmark.name for case in GOOD})


def of(name: str) -> list[Case]:
    return [case for case in GOOD if case.benchmark.name == name]


def test_every_benchmark_has_captured_output_to_be_fuzzed_with() -> None:
    built_in = {
        name for name, plugin in plugins("benchmarks").items() if type(plugin).__module__.startswith("kduel.")
    }
    assert built_in == set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_mutated_output_gives_its_values_or_none(name: str) -> None:
    source = random.Random(name)
    cases = of(name)
    found = []
    for _ in range(MUTATIONS):
        case = source.choice(cases)
        mutation = mutate(case, source, source.choice(cases))
        if fault := finding(case, mutation):
            found.append(f"{case}, {mutation.kind}: {fault}")
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_swollen_output_is_read_or_refused_soon(name: str) -> None:
    source = random.Random(name)
    for _ in range(4):
        case = source.choice(of(name))
        file = source.choice(case.written)
        began = time.process_time()
        case.outcome({file: swollen(case.texts[file], source, SWOLLEN)})
        assert time.process_time() - began < MOST_SECONDS


@pytest.mark.parametrize(
    "unit", ["9", "1 ", "Killed process 1 (kmem) ", "Memory: 1k available (1k a, ", "Run a as init ", "login: "]
)
def test_logs_of_one_endless_line_are_read_soon(unit: str) -> None:
    """What a guest can print to its console; the parsers of logs look for words anywhere in a line."""
    log = "     0.500 " + unit * (SWOLLEN // len(unit))
    for case in [*of("memory"), *of("boot-timeline")]:
        began = time.process_time()
        case.outcome(dict.fromkeys(["console.log", "boot-message", "killed", "meminfo"], log))
        assert time.process_time() - began < MOST_SECONDS


class Sloppy(Benchmark[Parameters]):
    """A parser as it should not be."""

    name = "sloppy"
    summary = ""
    declared_metrics = (Metric("rate", "1/s", "higher"), Metric("share", "%", "none", most=100.0))

    def script(self, parameters: object) -> str:
        return ":"

    def parse(self, raw: Raw, parameters: object) -> dict[str, float]:
        match = re.search(r"rate (-?[\d.]+), share ([\d.]+)", raw.stdout)
        if match is None:
            raise ParseError("nothing")
        return {"rate": abs(float(match[1])), "share": float(match[2])}


class Planted:
    """The sloppy parser as a target."""

    def __init__(self, parse: object) -> None:
        self.parse = parse
        self.texts: Texts = {"stdout": "rate 1234.5, share 62.75\n"}
        self.whole = self.outcome(self.texts)

    def outcome(self, texts: Texts) -> Values | None:
        try:
            return self.parse(Raw(texts["stdout"], "", 0), None)  # type: ignore[no-any-return, operator]
        except ParserFault:
            raise
        except ParseError:
            return None

    untrue = Case.untrue
    impossible = Case.impossible
    metrics = {metric.name: metric for metric in Sloppy().metrics(None)}  # noqa: RUF012


def test_the_fuzzer_finds_what_a_sloppy_parser_does() -> None:
    target = Planted(Sloppy().parse)
    source = random.Random(1)
    kinds = set()
    for _ in range(2000):
        mutation = mutate(target, source, target)
        if finding(target, mutation):
            kinds.add(mutation.kind)
    assert {"cut", "byte garbled", "number made nonsense", "number negated"} <= kinds <= set(MUTATORS)


def test_no_parser_can_give_what_its_metrics_cannot_be() -> None:
    """Whoever wrote it: the base class sees to it."""
    sloppy = Sloppy()
    assert sloppy.parse(Raw("rate 1, share 50\n", "", 0), None) == {"rate": 1.0, "share": 50.0}
    for text, told in (
        ("rate 1, share 101\n", "share is 101, but it cannot be above 100"),
        (f"rate {'9' * 400}, share 5\n", "rate is inf"),
        (f"rate {'9' * 200}, share 5\n", "within reason"),
    ):
        with pytest.raises(ParseError, match=told):
            sloppy.parse(Raw(text, "", 0), None)
    with pytest.raises(ParserFault, match=r"parser of sloppy failed .*ValueError: could not convert"):
        sloppy.parse(Raw("rate 1.1.1, share 5\n", "", 0), None)


def test_a_subclass_may_use_the_parser_that_it_extends() -> None:
    class More(Sloppy):
        def metrics(self, parameters: object) -> tuple[Metric, ...]:
            return (*super().metrics(parameters), Metric("both", "", "none"))

        def parse(self, raw: Raw, parameters: object) -> dict[str, float]:
            found = super().parse(raw, parameters)
            return found | {"both": found["rate"] + found["share"]}

    assert More().parse(Raw("rate 1, share 50\n", "", 0), None)["both"] == 51

    class Less(Sloppy):
        def metrics(self, parameters: object) -> tuple[Metric, ...]:
            return (*super().metrics(parameters), Metric("both", "", "none"))

        def parse(self, raw: Raw, parameters: object) -> dict[str, float]:
            return super().parse(raw, parameters)

    with pytest.raises(ParseError, match="the output has no both"):
        Less().parse(Raw("rate 1, share 50\n", "", 0), None)


def test_numbers_are_found_whole_or_not_at_all() -> None:
    found = numbers_in({"a": "x5 6174K 61@7.5K -3 1,234.5 12.\n"})
    assert {"6174", "61", "7.5", "-3", "12"} <= found
    assert not {"5", "3", "234.5"} & found
