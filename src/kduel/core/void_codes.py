"""Every code of KDuel that a void trial can have, with what to do, as in docs/findings.md; plug-ins may add some."""

from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from kduel.core.experiment import Void


class VoidCode(Struct, frozen=True, array_like=True):
    """Properties common to all trials that are void by one code."""

    code: str
    meaning: str
    remedy: str
    whose: Literal["contender", "host", "machine"] = "contender"
    """Whose fault it may be at worst. host: the kernel ran, and what disturbed it is known to come from outside.
    machine: it never ran, as the machine, or what manages it, was not there."""


VOID_CODES = tuple(
    msgspec.convert(line.split(" | "), VoidCode)
    for line in files("kduel.core").joinpath("void_codes.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
)
"""In the order of the documentation."""
WHOSE = {one.code: one.whose for one in VOID_CODES}
HOPELESS = 2
"""So many void trials at the start of a contender, and none that is good: it cannot be measured."""


class EndedTrial(Protocol):
    @property
    def contender(self) -> str: ...
    @property
    def void(self) -> Void | None: ...


def find_unmeasurable(trials: Iterable[EndedTrial], planned: int) -> set[str]:
    """The contenders whose trials are all void by what may be their own fault, and enough of them, in a run of so many blocks."""
    own = [trial for trial in trials if trial.void is None or may_be_contenders(trial.void)]
    good = {trial.contender for trial in own if trial.void is None}
    return {
        name
        for name, count in Counter(trial.contender for trial in own).items()
        if name not in good and count >= min(HOPELESS, planned)
    }


def may_be_contenders(void: Void | None) -> bool:
    """True if a trial is void by what may be its contender's own fault, as may an unknown code."""
    return void is not None and WHOSE.get(void.code, "contender") == "contender"


def never_began(void: Void | None) -> bool:
    """True if a trial is void because its machine was not there: nothing of it depends on its contender."""
    return void is not None and WHOSE.get(void.code) == "machine"
