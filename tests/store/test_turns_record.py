"""The record of turns in a trial's directory, and the study's key."""

import msgspec
import pytest

from kduel.core.errors import InputError
from kduel.core.turns import TURNS_FILE
from kduel.guest.envelope import is_own_file
from kduel.judge.evaluate import study_result
from kduel.store.documents import document_bytes, read_turns
from kduel.store.identity import as_begun, study_numbers
from kduel.store.rundir import RunDir
from kduel.study.file import Blocks, parse_study
from kduel.study.load import Study, assemble

RECORD = {
    "schema": 1,
    "turns_ms": 50,
    "partners": [2],
    "place": 1,
    "steps": {
        "01-cpu.s1": {
            "turns": 20,
            "running_seconds": 1.01,
            "held_seconds": 1.02,
            "longest_stop_seconds": 0.002,
            "alone_seconds": 0.01,
            "overlap_seconds": 0.0,
            "guest_seconds": 1.0,
            "windows": [[12.5, 0.05], [12.6, 0.05]],
        }
    },
}
STUDY = """
[study]
name = "x"
[[contender]]
kernel = "debian:6.1"
[[contender]]
kernel = "debian:6.12"
[blocks]
turns = {turns}
[[benchmark]]
use = "sysbench-cpu"
"""


def study(turns: str) -> Study:
    text = STUDY.format(turns=turns)
    return assemble(parse_study(text, "x.toml"), text, "x.toml")


def test_a_record_is_read_as_it_was_written(tmp_path):
    """A trial without one was booted alone."""
    assert read_turns(tmp_path) is None
    (tmp_path / TURNS_FILE).write_bytes(msgspec.json.encode(RECORD))
    found = read_turns(tmp_path)
    assert found and found.steps["01-cpu.s1"].windows == [(12.5, 0.05), (12.6, 0.05)]
    assert msgspec.json.decode(document_bytes(found)) == RECORD


def test_another_schema_names_the_file(tmp_path):
    (tmp_path / TURNS_FILE).write_bytes(msgspec.json.encode(RECORD | {"schema": 7}))
    with pytest.raises(InputError, match=TURNS_FILE):
        read_turns(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("turns", "0"),
        ("turns", "-1"),
        ("running_seconds", "-0.5"),
        ("running_seconds", "1e400"),
        ("held_seconds", "NaN"),
        ("overlap_seconds", "null"),
        ("alone_seconds", '"1"'),
        ("guest_seconds", "1" + "0" * 400),
        ("windows", "[[12.5, -0.05]]"),
        ("windows", "[[12.5]]"),
    ],
)
def test_figures_that_no_record_has_name_the_file(tmp_path, key, value):
    """A damaged record is told, and none of its figures reaches a finding."""
    damaged = msgspec.json.encode(RECORD).decode()
    step = RECORD["steps"]["01-cpu.s1"]
    damaged = damaged.replace(f'"{key}":{msgspec.json.encode(step[key]).decode()}', f'"{key}":{value}')
    assert msgspec.json.encode(RECORD).decode() != damaged
    (tmp_path / TURNS_FILE).write_text(damaged)
    with pytest.raises(InputError, match=TURNS_FILE):
        read_turns(tmp_path)
    (tmp_path / TURNS_FILE).write_text(damaged.replace(f'"{key}":{value},', "", 1))
    if key not in ("guest_seconds", "windows"):
        with pytest.raises(InputError, match=f"missing required field `{key}`"):
            read_turns(tmp_path)


def test_no_guest_writes_it():
    """What a guest sends cannot pass for KDuel's record."""
    assert is_own_file((TURNS_FILE,))


@pytest.mark.parametrize(("written", "found"), [("50", 50), ("0", 0), ('"off"', "off")])
def test_the_key_is_read(written, found):
    assert study(written).blocks.turns == found


@pytest.mark.parametrize("written", ["-1", "1", "9", "10001", "1000000000", '"on"', '"50"', "true", "2.5"])
def test_a_wrong_value_names_the_key_and_what_it_may_be(written):
    with pytest.raises(InputError, match=r"blocks\.turns") as refused:
        study(written)
    assert any(word in str(refused.value) for word in ("Give milliseconds from 10 to 10000", "a whole number"))


def test_only_numbers_are_turns():
    assert [Blocks(turns=turns).in_turns for turns in (50, 0, "off", None)] == [True, True, False, False]


def test_slices_that_met_the_same_spells_are_averaged():
    """The better half would drop the slower moments of each contender apart."""
    assert [Blocks(turns=turns).reducer for turns in (50, 0, "off", None)] == [
        "mean",
        "mean",
        "better-half",
        "better-half",
    ]
    assert Blocks(turns=50, reduce="median").reducer == "median"


def test_a_step_within_which_contenders_change_over_is_cut_less():
    """Whole slices in turn are the turns themselves, and contenders of one boot take no others."""
    both = [Blocks(slices=4, slices_in_turns=2, turns=turns) for turns in (50, 0, "off", None)]
    assert [blocks.follow_turns().slices for blocks in both] == [2, 4, 4, 4]
    assert [blocks.follow_turns().follow_turns() for blocks in both] == [blocks.follow_turns() for blocks in both]
    assert Blocks(slices=4, slices_in_turns=2, turns=50, unit="load").follow_turns().slices == 4
    assert Blocks(slices=4, turns=50).follow_turns().slices == 4


def test_a_run_in_turns_goes_on_by_the_study_that_it_was_begun_by(unpack):
    """Its record has the number of slices that the turns made."""
    old = RunDir.open(unpack("qemu")).lock()
    by_study = Blocks(slices=4, slices_in_turns=2, turns=50)
    begun = by_study.follow_turns()
    new, kept = (msgspec.structs.replace(old, blocks=blocks) for blocks in (by_study, begun))
    assert study_numbers(new) == study_numbers(kept)
    assert study_result(new).slices == study_result(kept).slices == 2


def test_a_run_goes_on_with_its_turns_and_its_reducer(unpack):
    old = RunDir.open(unpack("qemu")).lock()
    begun = msgspec.structs.replace(old, blocks=msgspec.structs.replace(old.blocks, turns=50, reduce="better-half"))
    for own, goes_on in (
        (Blocks(), Blocks(turns=50, reduce="better-half")),
        (Blocks(turns="off", reduce="mean"), Blocks(turns="off", reduce="mean")),
    ):
        assert as_begun(msgspec.structs.replace(study("50"), blocks=own), begun) == goes_on


def test_a_run_from_before_turns_is_one_without(unpack):
    """It goes on by `turns = "off"`, and by nothing else."""
    old = RunDir.open(unpack("qemu")).lock()
    assert old.blocks.turns is None

    def numbers(turns):
        return study_numbers(msgspec.structs.replace(old, blocks=msgspec.structs.replace(old.blocks, turns=turns)))

    assert numbers("off") == study_numbers(old), "and its reducer is that of the better half"
    assert numbers(50) != study_numbers(old) != numbers(0)
    assert numbers(50) != numbers(0)
