"""How many blocks a machine carries out on which a repetition gives the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kduel.study.file import parse_study
from kduel.study.load import assemble

EXACT = "exact = true"


def count(run: Path) -> int:
    return len(list((run / "trials").iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize("primary", ['primary = ["letters"]', ""])
@pytest.mark.parametrize("machine", [EXACT, EXACT + '\nshorter = ["new"]'])
def test_what_one_block_decides_is_not_repeated(kduel, write_study, tmp_path: Path, primary: str, machine: str):
    """Its second block had no step left, and ended in a traceback."""
    study, run = write_study(machine=machine, blocks="max = 4"), tmp_path / "run"
    study.write_text(study.read_text().replace('primary = ["letters"]', primary))
    done = kduel("run", study, "--out", run)
    assert done.returncode == 0, done.stderr
    assert count(run) == 2
    verdicts = {one["verdict"] for one in json.loads((run / "results.json").read_bytes())["metrics"]}
    assert verdicts == ({"slower"} if "shorter" in machine else {"equal"})
    again = kduel("resume", run)
    assert again.returncode == 0 and count(run) == 2, again.stderr


@pytest.mark.slow
def test_a_fixed_number_of_blocks_is_carried_out(kduel, write_study, tmp_path: Path):
    done = kduel("run", write_study(machine=EXACT, blocks="fixed = 3"), "--out", tmp_path / "run")
    assert done.returncode == 0 and count(tmp_path / "run") == 6, done.stderr


def test_a_block_in_which_nothing_was_measured_is_repeated_whole(kduel, write_study, tmp_path: Path):
    """No metric is open where no trial gave a value."""
    study = write_study(machine=EXACT + "\naway = { old = 1, new = 1 }", blocks="max = 3")
    done = kduel("run", study, "--out", tmp_path / "run")
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert count(tmp_path / "run") >= 2


OWN = """[study]
name = "own"
[[contender]]
kernel = ["debian:6.1", "debian:6.12"]
[[benchmark]]
use = "wakeup"
"""


@pytest.mark.parametrize(("words", "most"), [({}, 1), ({"max_blocks": 3}, 3), ({"fixed_blocks": 2}, 2)])
def test_exact_cpus_have_one_block_unless_more_are_asked_for(words: dict[str, Any], most: int) -> None:
    """No further one decides what depends on conditions."""
    study = assemble(parse_study(OWN, "own"), OWN, "own", machine="icount:cpus=4,scheduling=true", **words)
    assert study.blocks.count == most


@pytest.mark.parametrize(
    ("words", "kept"),
    [("max = 20", (20, None)), ("fixed = 2", (20, 2)), ("max = 1", (1, None)), ("slices = 1", (1, None))],
)
@pytest.mark.parametrize("machine", ["icount:cpus=4,scheduling=true", "icount"])
def test_exact_cpus_keep_a_number_that_the_file_states(
    words: str, kept: tuple[int, int | None], machine: str
) -> None:
    text = f"{OWN}[blocks]\n{words}\n".replace('use = "wakeup"', 'use = "kbench"\noperation = "pipe"\nmode = "exact"')
    text = (
        text
        if machine == "icount"
        else text.replace('use = "kbench"\noperation = "pipe"\nmode = "exact"', 'use = "wakeup"')
    )
    blocks = assemble(parse_study(text, "own"), text, "own", machine=machine).blocks
    assert (blocks.max, blocks.fixed) == kept


@pytest.mark.parametrize(
    ("words", "most"), [("online='both',scheduling=true,cpus=4", 20), ("layouts=3", 20), ("", 1)]
)
def test_blocks_that_differ_are_repeated(words: str, most: int) -> None:
    text = (
        OWN.replace('use = "wakeup"', 'use = "kbench"\noperation = "pipe"\nmode = "exact"')
        if "online" not in words
        else OWN
    )
    assert assemble(parse_study(text, "own"), text, "own", machine=f"icount:{words}").blocks.max == most
