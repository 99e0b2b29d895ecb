"""The options of each way to search of `kduel bisect`: one that would be ignored is refused."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from kduel.cli.options import options_on_command_line
from kduel.core.errors import InputError

EXACT = "a search by exact counts"
BOOTS = "a search by a timed benchmark"
COMMAND = "a search with --measure"
STEP = "a step of `git bisect run`"

COUNTING = "icount"
TIMED = (BOOTS, COMMAND)
KERNELS = (EXACT, BOOTS, STEP)
SEARCHES = (EXACT, BOOTS, COMMAND)
BELONGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "machine": KERNELS,
        "measure": (COMMAND,),
        "metric": KERNELS,
        "timeout": (COMMAND,),
        "first_parent": SEARCHES,
        "config": KERNELS,
        "build_command": KERNELS,
        "image": KERNELS,
        "jobs": KERNELS,
        "probability": TIMED,
        "measurements": TIMED,
        "confirm": TIMED,
        "negligible": TIMED,
        "seed": TIMED,
        "restart": TIMED,
        "form": SEARCHES,
        "sharing": (EXACT, STEP),
        "limit": (EXACT,),
        "plot": SEARCHES,
    }
)
"""The parameters that do not belong to every way, with those to which they do."""
SPELLED = MappingProxyType({"form": "format"})
EXACT_NEEDS_NONE = (
    "Exact counts are the same in each repetition: there is no error to control, and nothing to measure again."
)

NOT_AGAIN = (
    "A commit is built again when its source, the configuration, the build command or a file that the command names has "
    "changed; to build all again, remove {kernels}."
)


class BisectOptions(Struct, frozen=True, kw_only=True):
    tree: Path
    benchmark: str
    machine: str
    metric: str
    measure: str
    timeout: float
    sharing: bool
    first_parent: bool
    config: str
    build_dir: Path | None
    build_command: str
    image: str
    jobs: int
    probability: float
    measurements: int
    confirm: int
    negligible: float
    seed: int
    restart: bool
    form: str
    limit: int
    plot: Path | None
    quiet: bool


def choose_method(*, measure: str, machine: str, step: bool) -> str:
    """The way in which commits are searched. Raises InputError for a step that is not counted."""
    counting = machine.partition(":")[0] == COUNTING
    if step:
        if not counting:
            raise InputError(
                f"--step counts instructions, and the machine {machine} does not", "Leave out --machine."
            )
        return STEP
    if measure:
        return COMMAND
    return EXACT if counting else BOOTS


def check_options(way: str) -> None:
    """Raises InputError for the first option on the command line that has no meaning for this way to search."""
    for parameter in options_on_command_line():
        ways = BELONGS.get(parameter, (way,))
        if way not in ways:
            option = f"--{SPELLED.get(parameter, parameter).replace('_', '-')}"
            why = f"{EXACT_NEEDS_NONE} " if way == EXACT and ways == TIMED else ""
            if way == EXACT and parameter == "restart":
                from kduel.core.cache import cache_root
                from kduel.run.bisect.kernels import KIND

                why += f"{NOT_AGAIN.format(kernels=cache_root() / KIND)} "
            raise InputError(
                f"{option} has no meaning for {way}", f"{why}Leave it out; it belongs to {' and '.join(ways)}."
            )
