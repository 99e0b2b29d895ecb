"""`kduel plan --simulate` and `kduel plan` as a person calls them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from verdict_tables import PUBLISHED

from kduel.cli import kduel
from kduel.cli.plan import allocation_lines
from kduel.core.slices import Components
from kduel.core.text import fold
from kduel.judge.verdict.allocation import Allocations, MetricParts
from kduel.judge.verdict.rule import Rule

PILOT = "contender,trial,benchmark,metric,unit,better,value\n"


def call(*words: object) -> Result:
    return CliRunner().invoke(kduel, [str(word) for word in words])


def output(*words: object) -> str:
    result = call(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def refused(*words: object) -> str:
    from kduel.core.errors import HostError, InputError

    result = call(*words)
    assert isinstance(result.exception, (InputError, HostError)), result.output
    return str(result.exception)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "generations"
    output("import", PUBLISHED, "--out", run)
    return run


def test_calibrate_tells_false_alarms_power_and_blocks() -> None:
    text = output("plan", "--simulate", "--noise", "normal", "--effects", "0,2", "--runs", 500)
    assert "call a difference where there is none" in text
    assert "a look at 4, 5, 6, 7, 8, 9, 10, 11, ... blocks" in text
    assert "+2 %" in text and "none" in text


def test_calibrate_json_and_seed() -> None:
    words = ("plan", "--simulate", "--effects", "0,1", "--runs", 300, "--format", "json", "--seed", 5, "--metrics", 3)
    found = json.loads(output(*words))
    assert found["schema"] == 1 and found["rule"]["max_blocks"] == 20
    assert set(found["noises"]) == {"normal", "floor", "bimodal", "heavy", "drift"}
    assert len(found["outcomes"]) == 10
    for outcome in found["outcomes"]:
        parts = (outcome[name] for name in ("higher", "lower", "equivalent", "undecided"))
        assert sum(parts) == pytest.approx(1)
        assert outcome["metrics"] == 3 and 6 <= outcome["blocks_mean"] <= 20
    assert output(*words) == output(*words)


def test_calibrate_a_single_look() -> None:
    found = json.loads(
        output("plan", "--simulate", "--noise", "normal", "--blocks", 12, "--effects", "0", "--runs", 4000, "--format", "json",
               "--spread", 9)
    )  # fmt: skip
    assert found["outcomes"][0]["any_difference"] == pytest.approx(0.05, abs=0.012)
    assert found["outcomes"][0]["ended_at"] == {"12": 1.0}


@pytest.mark.slow
def test_calibrate_draws(tmp_path: Path) -> None:
    svg, png = tmp_path / "rule.svg", tmp_path / "rule.png"
    output("plan", "--simulate", "--noise", "bimodal", "--runs", 200, "--plot", svg)
    drawn = svg.read_text("utf-8")
    assert drawn.startswith("<svg") and "true effect" in drawn and "false alarms where nothing differs" in drawn
    output("plan", "--simulate", "--noise", "bimodal", "--noise", "heavy", "--runs", 200, "--plot", png)
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) > (400, 200)


def test_calibrate_of_an_import_is_about_a_run_to_come(imported: Path) -> None:
    """Edition 1, by which imports are recorded, has looks at 6, 8, ...: no import and no new run is judged so."""
    from kduel.cli.calibrate import read_rule

    assert read_rule(imported) == Rule(delta_pct=read_rule(imported).delta_pct)
    assert read_rule(imported).looks()[:2] == (4, 5)


def test_calibrate_on_a_run(imported: Path) -> None:
    key = "perf-stat/context_switches"
    found = json.loads(
        output("plan", "--simulate", imported, "--metric", key, "--effects", "0", "--runs", 2000, "--format", "json")
    )
    (outcome,) = found["outcomes"]
    assert outcome["noise"].startswith(key) and outcome["any_difference"] <= 0.06
    every = json.loads(output("plan", "--simulate", imported, "--effects", "0", "--runs", 200, "--format", "json"))
    assert len(every["outcomes"]) == 7
    assert {outcome["metrics"] for outcome in every["outcomes"]} == {7}, "alpha is split as it was in the run"
    alone = output(
        "plan", "--simulate", imported, "--effects", "0", "--runs", 200, "--metrics", 1, "--format", "json"
    )
    assert {outcome["metrics"] for outcome in json.loads(alone)["outcomes"]} == {1}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--effects", "0,a"), "no list of per cents"),
        (("--effects", ""), "no list of per cents"),
        (("--effects", "nan"), "no list of per cents"),
        (("--effects", "-100"), "no list of per cents"),
        (("--alpha", "nan"), "alpha is nan"),
        (("--spread", "0"), "the spread is 0"),
        (("--blocks", "8", "--max-blocks", "9"), "both given"),
        (("--metric", "cpu/rate"), "there is no RUN"),
        (("--plot", "rule.pdf"), "not the name of a picture"),
    ],
)
def test_calibrate_refuses(words: tuple[str, ...], why: str) -> None:
    assert why in refused("plan", "--simulate", *words)


@pytest.mark.parametrize("option", ["--blocks", "--max-blocks"])
@pytest.mark.parametrize("count", ["0", "-1", "100001", "2.5"])
def test_calibrate_refuses_a_number_of_blocks(option: str, count: str) -> None:
    result = call("plan", "--simulate", option, count)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': " in result.output and count in result.output


def test_calibrate_refuses_what_is_no_run(tmp_path: Path, imported: Path) -> None:
    refused("plan", "--simulate", tmp_path)
    assert "no metric 'cpu/rate'" in refused("plan", "--simulate", imported, "--metric", "cpu/rate")
    assert "both given" in refused("plan", "--simulate", imported, "--noise", "normal")
    missing = tmp_path / "there" / "rule.svg"
    assert "cannot be written: there is no" in refused(
        "plan", "--simulate", "--runs", 100, "--noise", "normal", "--plot", missing
    )


def test_plan_from_a_csv() -> None:
    found = json.loads(output("plan", PUBLISHED, "--format", "json", "--block-seconds", 300))
    costs = {cost["metric"]: cost for cost in found["costs"]}
    assert costs["events_per_second"]["no_difference"] == Rule().equivalent_from
    assert costs["events_per_second"]["seconds"] == 300 * Rule().equivalent_from
    assert costs["max_latency"]["no_difference"] > 10_000
    text = output("plan", PUBLISHED)
    # Nothing tells here what varies. Of a run in slices the advice is that of its table.
    assert (
        "varies too much for 1 %: measure in slices, to tell moments from boots; or accept a delta of "
        in " ".join(text.split())
    )
    wide = json.loads(output("plan", PUBLISHED, "--delta", 10, "--format", "json"))
    assert {c["metric"]: c for c in wide["costs"]}["context_switches"]["no_difference"] < 40


def test_plan_from_a_run(imported: Path) -> None:
    text = output("plan", imported, "--metric", "perf-stat/context_switches", "--delta", 10)
    assert "over 1 comparison(s)" in text and "context_switches" in text and "sysbench" not in text


def test_plan_shares_alpha_among_the_metrics() -> None:
    def blocks(*words: str) -> int:
        found = json.loads(output("plan", PUBLISHED, "--delta", 10, "--format", "json", *words))
        return next(cost["no_difference"] for cost in found["costs"] if cost["metric"] == "context_switches")

    assert blocks() > blocks("--metric", "perf-stat/context_switches")


def test_the_smallest_effect_is_the_one_that_the_import_was_given(tmp_path: Path) -> None:
    run = tmp_path / "run"
    output("import", PUBLISHED, "--out", run, "--delta", 7)
    assert "delta 7 %" in output("plan", run)
    assert "delta 7 %" in output(
        "plan", "--simulate", run, "--metric", "perf-stat/context_switches", "--effects", 0, "--runs", 100
    )


def test_a_pilot_from_a_spreadsheet_is_read(tmp_path: Path) -> None:
    pilot = tmp_path / "pilot.csv"
    pilot.write_bytes(b"\xef\xbb\xbf" + PUBLISHED.read_bytes())
    assert output("plan", pilot) == output("plan", PUBLISHED)


def test_plan_keeps_the_rows_of_its_sources_whole() -> None:
    own = {"contender": "debian:6.12-cloud", "components": Components(blocks_pct=1, boots_pct=2, slices_pct=3)}
    parts = MetricParts(benchmark="sysbench-cpu-2t", metric="events-per-second", advice="longer-slices", **own)
    parts.best_slices = 4
    lines = allocation_lines(Allocations(metrics=[parts]), Rule())
    for line in lines[-4:]:
        assert fold(line) == [line]
    (why,) = (line for line in lines if line.startswith("Where"))
    assert why.endswith("over a trial's):"), "a sentence is folded whole"


def test_plan_recommends_the_blocks_that_are_safe(tmp_path: Path) -> None:
    pilot = tmp_path / "pilot.csv"
    values = [f"{arm},{boot},cpu,rate,ops/s,higher,{100 + boot * boot % 7 * (1.6 + (arm == 'B') * 0.6)}" for arm in "AB" for boot in range(6)]  # fmt: skip
    pilot.write_text("contender,trial,benchmark,metric,unit,better,value\n" + "\n".join(values) + "\n")
    (cost,) = json.loads(output("plan", pilot, "--delta", 0.5, "--format", "json"))["costs"]
    seen, safe = cost["no_difference"], cost["no_difference_safe"]
    # More than an edition requires of `equivalent` at least.
    assert 20 < seen < safe
    said = f"--max-blocks {safe} would suffice, {seen} if the spread is as in the pilot"
    assert said in output("plan", pilot, "--delta", 0.5)


def test_plan_says_what_it_takes_instead_of_a_study(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('# One, two, three: a study.\n[study]\nname = "x"\n')
    said = refused("plan", study)
    assert "study.toml is neither a run nor a CSV" in said and "line 1" not in said


def test_plan_divides_boots_and_iterations(tmp_path: Path) -> None:
    lines = [
        f"{arm},{boot},cpu,rate,ops/s,higher,{100 + boot % 3 * 0.5 + (arm == 'B') * 0.2 + step % 2 * 3}"
        for arm in "AB"
        for boot in range(1, 9)
        for step in range(4)
    ]
    path = tmp_path / "pilot.csv"
    path.write_text(PILOT + "\n".join(lines))
    words = ("plan", path, "--boot-seconds", 60, "--iteration-seconds", 2)
    found = json.loads(output(*words, "--format", "json"))
    (division,) = found["iterations"]
    assert division["within_boots_pct"] == pytest.approx(1.7, abs=0.1) and division["boots"] == 16
    assert division["best_iterations"] == 100, "boots hardly differ beyond what iterations explain"
    assert "from iteration to iteration" in output(*words)
    assert "--boot-seconds and --iteration-seconds" in output("plan", path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("contender,trial,value\n", "the header lacks 'benchmark', 'metric', 'unit', 'better'"),
        (PILOT, "holds no values"),
        (PILOT + "A,1,cpu,rate,s,lower,1\n", "only one contender"),
        (PILOT + "A,1,cpu,rate,s,lower,fast\n", "line 2: the value is 'fast'"),
        (PILOT + "A,1,cpu,rate,s,lower,nan\n", "line 2: the value is 'nan'"),
        (PILOT + "A,one,cpu,rate,s,lower,1\n", "line 2: the trial is 'one'"),
        (PILOT + "A,1,cpu,rate,s,lower,99,53\n", "line 2 has 8 fields"),
        (PILOT + 'A,1,cpu,rate,s,lower,"99,53"\n', "line 2: the value is '99,53'"),
        (PILOT + "A\x1b[31m,1,cpu,rate,s,lower,1\n", "control characters"),
        (PILOT + "A,1,cpu,rate,s,less,1\n", "better is 'less'"),
        (PILOT + "A,1,cpu,rate,s,lower,1\nB,1,cpu,rate,ms,lower,1\n", "line 3: cpu/rate has the unit 'ms'"),
        (PILOT + "A,1,cpu\n", "line 2"),
        (PILOT + "A,1,cpu,rate,s,lower,1\nB,1,cpu,rate,s,lower,1\n", "no metric of the pilot has an estimate"),
    ],
)
def test_plan_refuses_bad_pilots(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "pilot.csv"
    path.write_text(text)
    assert why in refused("plan", path)


def test_plan_refuses_other_nonsense(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    refused("plan", tmp_path / "binary.csv")
    refused("plan", tmp_path / "nothing.csv")
    refused("plan", tmp_path)
    assert "--block-seconds is -1" in refused("plan", PUBLISHED, "--block-seconds", "-1")
    assert "no metric 'cpu'" in refused("plan", PUBLISHED, "--metric", "cpu")
