"""Study 003 written up by `kduel diff`: confounds first, n = 1 told, each claim with what its own data support."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kduel.analysis.campaigns.claims import Claim, JudgedClaim, agrees, judge_claims, read_claims
from kduel.analysis.campaigns.columns import Column, columns
from kduel.analysis.campaigns.compare import Campaigns, compare
from kduel.cli.diff import command
from kduel.core.errors import InputError
from kduel.report.campaigns import wording
from kduel.store.imported import Source, bring_in

PUBLISHED = Path(__file__).parents[3] / "studies" / "published"
STOCK, CUSTOM, DOCKED, CLEANED = "dec26-zen", "dec26-zen-x1c", "dec29-zen-x1c", "dec31-zen-x1c"
BPFLAND, LAVD = "jan03-cachyos-bpfland", "jan03-cachyos-lavd-gaming"


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("desktop") / "desktop"
    bring_in([Source(PUBLISHED / "desktop.csv")], out, conditions=PUBLISHED / "desktop.toml")
    return out


@pytest.fixture(scope="module")
def found(desktop: Path) -> list[Column]:
    return columns([str(desktop)])


@pytest.fixture(scope="module")
def everything(found: list[Column]) -> Campaigns:
    return compare(found, which="all")


def test_what_changed_between_the_campaigns(everything: Campaigns) -> None:
    things = {(pair.before, pair.after): pair.attribution for pair in everything.between}
    assert things[DOCKED, CLEANED].things == [
        "hardware.connected", "packages.acpid", "packages.cpupower", "packages.laptop-mode-tools", "packages.orphans",
        "packages.tlp",
    ]  # fmt: skip
    assert things[CLEANED, BPFLAND].things == ["kernel", "scheduler", "conditions.cooldown", "packages.cachyos"]
    assert things[STOCK, DOCKED].things == ["kernel", "scheduler", "hardware.connected"]
    # The scheduler of the custom kernel on 26 December is not stated, so the kernel is not known to be alone.
    assert (things[STOCK, CUSTOM].things, things[STOCK, CUSTOM].unknown) == (["kernel"], ["scheduler"])
    attributable = {pair: found.cause for pair, found in things.items() if found.cause}
    assert attributable == {(BPFLAND, LAVD): "scheduler"}


def test_nothing_is_decided_from_one_measurement(everything: Campaigns) -> None:
    changes = [change for pair in everything.between for change in pair.changes]
    assert {change.verdict for change in changes} == {"undecided"}
    assert all(change.ci_low_pct is None for change in changes)
    assert all("single-trial" in {w.code for w in change.warnings} for change in changes if change.n)


def test_metrics_bear_their_own_reliability(everything: Campaigns) -> None:
    told = {row.key: row.reliability for row in everything.rows}
    assert told["context-switch/time"].startswith("unreliable: repeats ranged from 8.9 to 27.7")
    assert told["context-switch/time"].endswith("4 of 5 columns lie inside that range")
    assert {text for key, text in told.items() if key != "context-switch/time"} == {
        "not known: n = 1 in every column"
    }
    # A line for each remark, and none on the spread, which stands beside each mean.
    (results,) = [section for section in wording.page_of(everything).sections if section.heading == "Results"]
    once = ", ".join(key for key in told if key != "context-switch/time")
    assert results.bullets == [
        f"{once}: not known: n = 1 in every column.",
        f"context-switch/time: {told['context-switch/time']}.",
    ]
    vary = [
        msgspec.structs.replace(row, reliability=f"repeats vary by {n} % (SD)")
        for n, row in enumerate(everything.rows)
    ]
    vary[0].reliability += "; n = 1 in 2"
    assert wording.reliability_lines(vary) == [f"{vary[0].key}: n = 1 in 2."]


def test_every_claim_has_what_its_data_support(found: list[Column]) -> None:
    claims = read_claims(PUBLISHED / "desktop-claims.toml")
    judged = judge_claims(claims, found)
    assert len(judged) == len(claims) == 39
    # Every printed figure recomputes; no claim is supported by one measurement; three are contradicted.
    assert all("The figure recomputes" in one.reasons[0] for one in judged if one.claim.printed)
    assert {one.claim.metric for one in judged if one.standing == "contradicted"} == {
        "context-switch/time",
        "sysbench-cpu-20t/events_per_second",
    }
    assert sum(one.standing == "contradicted" for one in judged) == 3
    assert not [one for one in judged if one.standing == "supported"]
    reasons = {one.claim.says: " ".join(one.reasons) for one in judged}
    dock = reasons["With dock: -21% due to USB overhead"]
    assert "n = 1" in dock and "cannot be decided: 3 things differ (kernel, scheduler, hardware.connected)" in dock
    assert "page cache" in reasons["Better I/O (+195% file read throughput)"]
    assert "8.9 to 27.7" in reasons["Context Switch: -12% better (22.6ms vs 25.6ms)"]
    best = reasons["Best context switching: 22.6 ms (-28% vs stock)"]
    assert f"{DOCKED} has 16.3" in best and f"{LAVD} has 19.2" in best
    schedulers = reasons["scx_lavd gaming mode showed 80x higher max latency spikes (466ms vs 5.8ms)"]
    assert "cannot be decided" not in schedulers and "maximum" in schedulers


@cache
def judge_study(name: str) -> dict[str, JudgedClaim]:
    """The claims about a study by their words; its import takes seconds."""
    known = PUBLISHED / f"{name}.toml"
    claims = read_claims(PUBLISHED / f"{name}-claims.toml")
    with TemporaryDirectory() as place:
        run = Path(place) / name
        bring_in([Source(PUBLISHED / f"{name}.csv")], run, conditions=known if known.exists() else None)
        judged = judge_claims(claims, columns([str(run)]))
    assert [one.claim for one in judged] == claims
    return {one.claim.says: one for one in judged}


def standings(judged: dict[str, JudgedClaim], *parts: str) -> list[str]:
    """The standings of the claims whose words have one of the parts."""
    return [one.standing for says, one in judged.items() if any(part in says for part in parts)]


def test_the_claims_about_two_generations() -> None:
    judged = judge_study("generations")
    assert standings(judged, "raw CPU throughput") == ["supported"] * 2
    assert standings(judged, "22.5%") == ["supported"]
    assert (
        standings(judged, "strongly suggests", "indistinguishable", "task clock durations") == ["not supported"] * 3
    )
    determinism = judged["the increased variance indicates reduced worst-case determinism on Linux 6.6"]
    assert determinism.standing == "not supported" and "p = 0.29" in determinism.reasons[0]
    io = judged["Sequential file I/O performance was statistically indistinguishable"]
    assert any("measures the harness" in reason for reason in io.reasons)
    assert sum(one.standing == "not testable" for one in judged.values()) == 13
    assert standings(judged, "several high-latency outliers", "50,000 iterations") == ["contradicted"] * 2


def test_the_claims_about_footprint() -> None:
    judged = judge_study("footprint")
    supported = [says for says, one in judged.items() if one.standing == "supported"]
    assert len(supported) == 4 and all("ompressed" in says for says in supported), "all else was measured once"
    image = "the 2.6 compressed kernel image is 30...40% bigger"
    assert standings(judged, image) == ["contradicted"] * 2
    assert "+26.5 %, not 30 to 40 %" in judged[f"{image} (Sandpoint)"].reasons[0]
    assert standings(judged, "55% slower", "RPC over UDP") == ["not testable"] * 2
    assert sum("recomputes" in " ".join(one.reasons) for one in judged.values()) >= 18


def test_the_claims_about_policies() -> None:
    judged = judge_study("policies")
    assert standings(judged, "about 40% quicker than RR") == ["contradicted"] * 3
    faltered = standings(judged, "CFS faltered")
    assert faltered == ["not supported", "contradicted", "contradicted"], "the abstract says the reverse of the table"
    side = judged[
        "CFS outperforms both RR and FIFO schedulers in I/O bound processes and mixed processes (large, io: FIFO)"
    ]
    assert side.standing == "supported", "its size is not shown, its direction is"
    assert standings(judged, "about 25% quicker than RR (large)") == ["supported"]
    assert standings(judged, "massive amounts") == ["supported"]
    assert all(one.reasons for one in judged.values()), "each standing has its reason"
    assert standings(judged, "The majority") == ["supported"] * 3
    assert standings(judged, "equally well") == ["not supported"] * 6
    assert standings(judged, "exponentially") == ["not testable"]


STUDIES = ["generations", "footprint", "policies", "desktop", "desktop-smt", "desktop-power"]


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("page", ["studies/published/README.md", "docs/studies/README.md"])
def test_the_pages_count_the_standings(name: str, page: str) -> None:
    found = [one.standing for one in judge_study(name).values()]
    counts = [len(found), *map(found.count, ("supported", "not supported", "contradicted", "not testable"))]
    assert f"| {name} | {' | '.join(map(str, counts))} |" in (PUBLISHED.parents[1] / page).read_text("utf-8")


STEADY = (13.703, 13.711, 13.708, 13.697, 13.701, 13.713, 13.691, 13.706, 13.702, 13.696)
ALIKE = (13.702, 13.709, 13.712, 13.693, 13.704, 13.707, 13.695, 13.699, 13.714, 13.698)
LARGER = (16.101, 16.093, 16.121, 16.113, 16.087, 16.104, 16.096, 16.109, 16.117, 16.091)
WILD = (12.1, 15.2, 11.7, 14.6, 13.3, 10.9, 15.9, 12.6, 14.1, 11.2)


@pytest.mark.parametrize(
    ("old", "new", "claim", "standing"),
    [
        ((10, 11, 10, 11), (10, 11, 10, 11), {"same": True}, "not supported"),
        (STEADY, ALIKE, {"same": True}, "supported"),
        (STEADY, LARGER, {"same": True}, "contradicted"),
        (STEADY, LARGER, {"side": "higher"}, "supported"),
        (STEADY, LARGER, {"side": "lower"}, "contradicted"),
        (STEADY, ALIKE, {"side": "lower"}, "contradicted"),
        (STEADY, ALIKE, {"side": "higher"}, "contradicted"),
        (WILD, STEADY, {"side": "higher"}, "not supported"),
        (WILD, STEADY, {"side": "lower"}, "not supported"),
        (STEADY, LARGER, {"printed": "15..20"}, "supported"),
        (STEADY, LARGER, {"printed": "19..25"}, "contradicted"),
        (STEADY, WILD, {"spread": "higher"}, "supported"),
        (STEADY, WILD, {"spread": "lower"}, "contradicted"),
        (WILD, STEADY, {"spread": "lower"}, "supported"),
        ((10, 11), (10, 15), {"spread": "higher"}, "not supported"),
        ((10, 11, 10, 17), (10, 11, 9, 18), {"spread": "higher"}, "not supported"),
        ((1,), (1,), {"untestable": "Nothing was measured.", "metric": ""}, "not testable"),
        ((1,), (1,), {"refuted": "Its table has one such value.", "metric": ""}, "contradicted"),
    ],
)
def test_each_kind_of_claim(
    old: tuple[float, ...], new: tuple[float, ...], claim: dict[str, Any], standing: str, tmp_path: Path
) -> None:
    values = {"old": old, "new": new}
    lines = [f"{name},{n},b,m,s,lower,{v}\n" for name, own in values.items() for n, v in enumerate(own, 1)]
    (tmp_path / "a.csv").write_text("contender,trial,benchmark,metric,unit,better,value\n" + "".join(lines))
    bring_in([Source(tmp_path / "a.csv")], tmp_path / "run")
    given = {"says": "x", "metric": "b/m", "before": "old", "after": "new"} | claim
    (judged,) = judge_claims([Claim(**given)], columns([str(tmp_path / "run")]))
    assert (judged.standing, bool(judged.reasons)) == (standing, True), judged


@pytest.mark.parametrize(
    ("unit", "better", "old", "new", "claim", "standing"),
    [
        ("B", "lower", (909_254,), (1_150_438,), {"printed": "27"}, "supported"),
        ("B", "lower", (909_254,), (1_150_438,), {"same": True}, "contradicted"),
        ("B", "lower", (909_254,), (909_254,), {"same": True}, "supported"),
        ("count", "none", STEADY, LARGER, {"same": True}, "contradicted"),
        ("s", "lower", STEADY, tuple(1.004 * one for one in ALIKE), {"same": True}, "supported"),
        ("s", "lower", WILD, tuple(reversed(WILD)), {"same": True}, "not supported"),
    ],
)
def test_a_claim_by_the_kind_of_its_values(
    unit: str,
    better: str,
    old: tuple[float, ...],
    new: tuple[float, ...],
    claim: dict[str, Any],
    standing: str,
    tmp_path: Path,
) -> None:
    """A size needs no repetition; what has no better side can differ, too; what is too small to matter counts as the same."""
    rows = [
        f"{name},{n},b,m,{unit},{better},{v},{'size' if unit == 'B' else ''}\n"
        for name, own in (("old", old), ("new", new))
        for n, v in enumerate(own, 1)
    ]
    (tmp_path / "a.csv").write_text("contender,trial,benchmark,metric,unit,better,value,kind\n" + "".join(rows))
    bring_in([Source(tmp_path / "a.csv")], tmp_path / "run")
    given = {"says": "x", "metric": "b/m", "before": "old", "after": "new"} | claim
    (judged,) = judge_claims([Claim(**given)], columns([str(tmp_path / "run")]))
    assert judged.standing == standing, judged
    assert judged.reasons and not any("n = 1" in one for one in judged.reasons)


def test_a_metric_that_exceeds_another(tmp_path: Path) -> None:
    rows = {"low": (1, 2, 3), "middle": (3, 4, 5), "high": (6, 7, 8)}
    lines = [
        f"{c},{n},b,{m},s,lower,{v}\n" for c in ("a", "z") for m, own in rows.items() for n, v in enumerate(own, 1)
    ]
    (tmp_path / "a.csv").write_text("contender,trial,benchmark,metric,unit,better,value\n" + "".join(lines))
    bring_in([Source(tmp_path / "a.csv")], tmp_path / "run")
    pairs = [("high", "low"), ("middle", "low"), ("low", "high")]
    claims = [Claim(says="x", metric=f"b/{one}", exceeds=f"b/{other}", after="a") for one, other in pairs]
    judged = judge_claims(claims, columns([str(tmp_path / "run")]))
    assert [one.standing for one in judged] == ["supported", "not supported", "contradicted"]


def test_a_wrongly_printed_figure_is_contradicted(found: list[Column]) -> None:
    claim = Claim(says="x", metric="sysbench-cpu-20t/events_per_second", before=STOCK, after=DOCKED, printed="-20")
    (judged,) = judge_claims([claim], found)
    assert judged.standing == "contradicted" and "not -20 %" in judged.reasons[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"before": "nobody"}, "'nobody'"),
        ({"metric": "none/such"}, "'none/such'"),
        ({"printed": "much"}, "'much'"),
        ({"best": LAVD, "metric": "system/modules"}, "no better side"),
    ],
)
def test_a_claim_about_nothing_is_refused(found: list[Column], change: dict[str, str], names: str) -> None:
    good = {"says": "x", "metric": "sysbench-cpu-20t/events_per_second", "before": STOCK, "after": DOCKED}
    with pytest.raises(InputError, match=names):
        judge_claims([Claim(**(good | change))], found)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_confounds_stand_before_any_result(desktop: Path, form: str) -> None:
    arguments = [str(desktop), "-f", form, "--full", "--claims", str(PUBLISHED / "desktop-claims.toml")]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    places = [done.output.index(text) for text in ("What differs between the columns", "Results", "Claims, and what")]
    assert places == sorted(places)
    assert done.output.index("acpid") < done.output.index("40,109")
    assert "n = 1" in done.output


def test_plain_text_fits_its_width(desktop: Path) -> None:
    done = CliRunner().invoke(command, [str(desktop)], catch_exceptions=False)
    assert max(map(len, done.output.splitlines())) <= 118


def test_json_has_null_for_what_is_missing(desktop: Path) -> None:
    done = CliRunner().invoke(command, [str(desktop), "-f", "json"], catch_exceptions=False)
    document = json.loads(done.output)["campaigns"]
    latency = next(row for row in document["rows"] if row["key"] == "latency/max_latency")
    assert latency["cells"][:4] == [None] * 4 and latency["cells"][4] == {"n": 1, "mean": 5.8, "sd": None}


def test_the_claims_are_in_the_words_of_the_study_and_name_its_columns() -> None:
    claims = tomllib.loads((PUBLISHED / "desktop-claims.toml").read_text())["claim"]
    known = {STOCK, CUSTOM, DOCKED, CLEANED, BPFLAND, LAVD}
    assert {claim[key] for claim in claims for key in ("before", "after", "best") if key in claim} <= known


@pytest.mark.parametrize(
    "printed", ["nan", "-inf..inf", "1e999", "0..1e9999", "1..2..3", "..", "1_0", "３", "9" * 5000]
)
def test_a_printed_change_that_is_no_number_supports_no_claim(printed: str) -> None:
    with pytest.raises(InputError, match="printed change is") as caught:
        agrees(1.0, printed)
    assert len(caught.value.message) < 200


def test_a_printed_change_is_checked_to_its_digits() -> None:
    assert agrees(1.44, "1.4") and not agrees(1.46, "1.4") and agrees(1.46, "+1")
    assert agrees(-12.6, "-20..-12") and not agrees(-11.4, "-20..-12")
