"""Rows of published changes: what a count makes of each, and whether the data can be counted at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec import structs

from kduel.benchmarks.support.operations import OPERATIONS
from kduel.explain.compare import Explanation, Row
from kduel.explain.profile import OPERATION
from kduel.explain.renamed import MovedCall
from kduel.explain.sharing.compare import Row as SharedRow
from kduel.explain.sharing.compare import SharedBy, SharedLine, SharingExplanation, TouchedLine
from kduel.kernels.compile.recipe import read_recipe
from kduel.run.exact.sharing import sharing_study

sys.path.insert(0, str(Path(__file__).parents[3] / "perf"))

import known_changes as known

CHANGE = known.Change(
    commit="0123456789ab",
    title="x: do less",
    release="6.6",
    published="-5 %",
    source="commit",
    bracket=("6.1", "6.12"),
    operation="dup",
    sign="fewer",
    place=["-find_slowly"],
)


def row(function: str, baseline: int, contender: int, was: str = "") -> Row:
    return Row(context=OPERATION, function=function, baseline=baseline, contender=contender, was=was)


def counted(
    change: known.Change, rows: list[Row], after: float, moved: list[MovedCall] | None = None
) -> known.Counted:
    found = Explanation(benchmark="dup", baseline="a", contender="b", operations=10, rows=rows, moved=moved or [])
    return known.counted_operation(change, found, {"plain": 500.0, "1": 510.0}, {"plain": after, "1": after + 10})


def test_the_data_can_be_counted() -> None:
    changes = known.read_changes()
    assert len(changes) >= 40
    heads = [(change.head, change.patches is None) for change in changes]
    assert len(set(heads)) == len(heads), "two rows are told apart by their titles"
    for change in changes:
        assert len(change.commit) == 12 and int(change.commit, 16), change.title
        assert {place[0] for place in change.place} <= set("+->"), change.title
        if change.patches:
            assert change.way == "build" and change.operation in OPERATIONS and change.sign, change.title
            assert all(change.config in kernel for kernel in change.kernels)
            without, with_it = (read_recipe(kernel)[1].patch for kernel in change.kernels)
            assert without != with_it, f"{change.title}: both sides are the same"
            continue
        assert not change.config, f"{change.title}: Debian's kernels have a configuration"
        if change.way in ("time", "build", "operation"):
            assert not change.control and change.bracket == ("", "")
            continue
        older, newer = ([int(part) for part in series.split(".")] for series in change.bracket)
        assert older < newer, change.title
        assert change.sign or not change.control, f"{change.title}: a control has a sign that must not show"
        assert change.sign or change.place, f"{change.title}: nothing in it could be found"
        if change.way == "shared":
            sharing_study(list(change.kernels), change.operation)
        else:
            assert change.operation in OPERATIONS


def test_every_patch_has_a_row() -> None:
    used = {name for change in known.read_changes() for name in change.patches or ()}
    assert used - {""} == {path.name for path in known.PATCHES.iterdir()}


def test_each_difference_of_a_single_commit_counts() -> None:
    change = structs.replace(CHANGE, patches=("", "x.patch"))

    def word(*after: float, control: bool = False) -> str:
        row = structs.replace(change, control=control)
        return known.word_of_built(
            row, "same", {"": 338_025, "stack": 9}, dict(zip(("", "stack"), after, strict=True))
        )

    assert word(338_024, 9) == "fewer"
    assert word(338_025, 10) == "more"
    assert word(338_025, 9) == word(338_024, 10) == word(338_024, 9, control=True) == "same"


@pytest.mark.parametrize(
    ("rows", "after", "result"),
    [
        ([row("find_slowly", 1000, 0)], 400, known.FOUND),
        ([row("find_slowly.isra.0", 1000, 900)], 400, known.FOUND),
        # The name is the baseline's where the contender calls it by another one.
        ([row("find", 1000, 900, was="find_slowly")], 400, known.FOUND),
        ([row("find_slowly", 900, 1000)], 400, known.DIRECTION),
        ([row("other", 1000, 0)], 400, known.DIRECTION),
        ([row("find_slowly", 1000, 0)], 600, known.PLACE),
        ([row("other", 1000, 0)], 600, known.UNSEEN),
        ([row("find_slowly", 1000, 1000)], 500, known.UNSEEN),
    ],
)  # fmt: skip
def test_a_row_is_found_by_sign_and_place(rows: list[Row], after: float, result: str) -> None:
    assert known.result_of(CHANGE, counted(CHANGE, rows, after)) == result


def test_all_places_have_to_be_as_published() -> None:
    change = structs.replace(CHANGE, place=["-find_slowly", "+find_fast"])
    half = counted(change, [row("find_slowly", 1000, 0)], 400)
    whole = counted(change, [row("find_slowly", 1000, 0), row("find_fast", 0, 100)], 400)
    assert (known.result_of(change, half), known.result_of(change, whole)) == (known.DIRECTION, known.FOUND)


def test_a_call_from_elsewhere_is_a_place() -> None:
    change = structs.replace(CHANGE, place=[">put"])
    moved = MovedCall(function="put", baseline_from="work", contender_from="close", baseline=5, contender=5)
    assert known.result_of(change, counted(change, [], 400, [moved])) == known.FOUND
    assert known.result_of(change, counted(change, [], 400)) == known.DIRECTION


def test_without_a_published_sign_the_place_decides() -> None:
    change = structs.replace(CHANGE, sign="")
    assert known.result_of(change, counted(change, [row("find_slowly", 10, 0)], 600)) == known.UNSAID
    assert known.result_of(change, counted(change, [], 400)) == known.UNSEEN


@pytest.mark.parametrize(("after", "result"), [(400, known.LOUD), (500, known.SILENT), (600, known.SILENT)])
def test_a_control_is_silent_unless_the_published_sign_shows(after: float, result: str) -> None:
    change = structs.replace(CHANGE, control=True, place=[])
    assert known.result_of(change, counted(change, [], after)) == result


def test_other_differences_of_the_bracket_are_told() -> None:
    rows = [row("find_slowly", 1000, 0), row("elsewhere", 0, 800), row("hardly", 0, 1)]
    assert counted(CHANGE, rows, 480).rest == "`elsewhere` +80, mean −20"


def test_shared_lines_are_found_by_a_part_of_their_name() -> None:
    def shared(times: float) -> SharedLine:
        return SharedLine(name="mm_struct.mmap_lock.count", times=times, false=0, meetings=[])

    def by(lines: float) -> SharedBy:
        return SharedBy(contender="a", release="", median=lines, mean=lines, lines=[], accesses=4, locked=lines)

    change = structs.replace(CHANGE, way="shared", place=["-mmap_lock"])
    gone = SharedRow(name="mm_struct.mmap_lock.count", change="gone", lines=[shared(2), None])
    found = SharingExplanation(benchmark="x", kernels=[by(3), by(1)], rows=[gone])
    counted = known.counted_lines(change, found)
    assert known.result_of(change, counted) == known.FOUND
    assert counted.figures == "3 > 1 lines (mean 3.00 > 1.00), accesses 4 > 4, locked 3 > 1"
    found.rows[0].change = "kept"
    assert known.result_of(change, known.counted_lines(change, found)) == known.DIRECTION


@pytest.mark.parametrize(("after", "result"), [(6, known.FOUND), (9, known.UNSEEN), (12, known.UNSEEN)])
def test_touched_lines_are_found_by_their_object(after: float, result: str) -> None:
    def by(lines: float) -> SharedBy:
        touched = [TouchedLine("tcp_sock", ["rto"], lines), TouchedLine("sk_buff", ["len"], 2)]
        return SharedBy(contender="a", release="", median=0, mean=0, lines=[], accesses=0, locked=0, touched=touched)

    change = structs.replace(CHANGE, way="touched", place=["-tcp_sock"])
    found = known.touched_lines(change, SharingExplanation(benchmark="x", kernels=[by(9), by(after)], rows=[]))
    assert known.result_of(change, found) == result
    assert found.figures == f"11.0 > {after + 2:.1f} lines touched" and found.rest == "`sk_buff` 2 > 2"


def test_the_document_has_the_rows_of_the_data() -> None:
    brackets, built = known.DOCUMENT.read_text("utf-8").split("<!-- table known-changes-built -->")
    built, left = built.split("<!-- end of known-changes-built -->")
    for change in known.read_changes():
        assert f"| {change.commit} {change.title} |" in (built if change.patches else brackets + left), (
            f"perf/known_changes.py --write: {change.title} is missing"
        )


@pytest.mark.parametrize(("together", "right"), [(True, True), (False, False)])
def test_fields_that_a_change_puts_together_are_in_fewer_lines(together: bool, right: bool) -> None:
    def by(*lines: list[str]) -> SharedBy:
        touched = [TouchedLine("tcp_sock", fields, 2) for fields in lines]
        return SharedBy(contender="a", release="", median=0, mean=0, lines=[], accesses=0, locked=0, touched=touched)

    apart = by(["rto", "rcv_nxt"], ["rx_opt.tstamp"], ["snd_nxt"])
    other = by(["rto"], ["rx_opt.tstamp", "rcv_nxt"]) if together else by(["rto"], ["rcv_nxt"], ["rx_opt.tstamp"])
    change = structs.replace(CHANGE, way="touched", place=["-tcp_sock"], groups={"read": "rcv_nxt rx_opt"})
    found = known.touched_lines(change, SharingExplanation(benchmark="x", kernels=[apart, other], rows=[]))
    assert found.places[f"fields of `read` 4 > {2 if together else 4}"] is right


@pytest.mark.parametrize("built", [False, True])
def test_rows_that_are_not_counted_anew_stay_in_the_document(built: bool, tmp_path: Path) -> None:
    """A row is counted again by itself (--only), and the others' kernels are not built for it."""
    changes = [change for change in known.read_changes() if (change.patches is not None) == built]
    kept = known.document_rows("known-changes-built" if built else "known-changes")
    copy = tmp_path / known.DOCUMENT.name
    copy.write_bytes(known.DOCUMENT.read_bytes())
    for name, lines in known.tables(changes, {}, kept).items():
        known.write(name, lines, copy)
    assert copy.read_text("utf-8") == known.DOCUMENT.read_text("utf-8")
    one = next(change for change in changes if change.head in kept)
    counted = known.Counted(figures="7 > 8", word="more", places={}, rest="")
    anew = known.tables(changes, {one.head: counted}, kept)["known-changes-built" if built else "known-changes"]
    assert [line for line in anew if "7 > 8, more" in line] == [f"| {' | '.join(known.row_of(one, counted))} |"]
    assert len(anew) == len(known.tables(changes, {}, kept)["known-changes-built" if built else "known-changes"])


def test_a_row_that_nobody_counted_says_what_is_expected() -> None:
    change = structs.replace(CHANGE, patches=("", "x.patch"), place=["-find_slowly", "+find"])
    row = known.expected_row(change)
    assert row[2:6] == ("fewer: -5 % (commit)", "dup", "not counted yet", "`-find_slowly`, `+find` expected")
    table = known.built_table([row])
    assert len(row) == len(known.row_of(change, known.Counted(figures="", word="", places={})))
    assert table[-1] == "In all 1 rows of 1 changes."
