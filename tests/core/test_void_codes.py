"""The list of void codes is whole: each code that the source gives a trial is in it, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import kduel
from kduel.core.experiment import Void
from kduel.core.void_codes import VOID_CODES, find_unmeasurable
from kduel.guest.diagnosis import HOST_ENDED
from kduel.guest.signs import LOCKUPS, OOPS, OURS

SOURCE = Path(kduel.__file__).parent
GIVEN = (
    r"""(?:void=|Void\(|Diagnosis\(|not_built\(|Refused\(|void, message = |broken = )\s*"([a-z]+(?:-[a-z]+)*)\"""",
    r"""return "([a-z]+(?:-[a-z]+)+)", """,
    r"""return f?"([a-z]+(?:-[a-z]+)+): """,
    r"""(?:sched_fail|echo) "(?:failed )?([a-z]+-[a-z-]+) """,
    r"""^    \("([a-z]+(?:-[a-z]+)*)", r"\S""",
    r""", "([a-z]+(?:-[a-z]+)+)", "(?:it|its|ssh) """,
)
"""How the source writes one down."""


def codes_in_the_source() -> set[str]:
    """Of the folders that boot, check and run."""
    files = [path for room in ("guest", "machines", "run", "schedulers") for path in (SOURCE / room).rglob("*")]
    texts = [path.read_text("utf-8") for path in files if path.suffix in (".py", ".sh")]
    found = {code for text in texts for pattern in GIVEN for code in re.findall(pattern, text, re.MULTILINE)}
    return found | {sign.name for sign in (OOPS, *LOCKUPS, *OURS)} | {code for code, _ in HOST_ENDED.values()}


def test_every_code_of_the_source_is_listed() -> None:
    listed = [void.code for void in VOID_CODES]
    assert len(set(listed)) == len(listed)
    assert codes_in_the_source() - {*listed} == set()


def test_no_listed_code_is_gone_from_the_source() -> None:
    everything = "".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py") if path.name != "void_codes.py")
    everything += "".join(
        path.read_text("utf-8") for ending in ("sh", "toml") for path in SOURCE.rglob(f"*.{ending}")
    )
    assert [void.code for void in VOID_CODES if void.code not in everything] == []


@pytest.mark.parametrize(
    ("codes", "planned", "out"),
    [
        (["panic"], 1, True),
        (["panic"], 2, False),
        (["panic", "hang"], 20, True),
        (["panic", "hang", ""], 20, False),
        (["panic", "host-disturbed"], 20, False),
        (["panic", "unreachable", "hang"], 20, True),
    ],
)
def test_a_contender_is_out_by_its_own_void_trials_alone(codes: list[str], planned: int, out: bool) -> None:
    trials = [SimpleNamespace(contender="a", void=Void(code, "so") if code else None) for code in codes]
    assert find_unmeasurable(trials, planned) == ({"a"} if out else set())
