"""Kernels built from source whose functions begin anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from kduel.core.results import ContenderResult, Results
from kduel.core.samples import Samples
from kduel.core.text import visible
from kduel.judge.lint.finding import Finding

OPTION = "DEBUG_FORCE_FUNCTION_ALIGN_64B"


def alignment(results: Results, _samples: list[Samples]) -> Iterator[str]:
    """The kernels built from source, two or more of them, that were timed without aligned functions."""
    built = [one for one in results.contenders if recipe(one)]
    kernels = {one.sha256 for one in built}
    if not results.machine.evidence.varies or results.machine.kind == "build" or len(kernels) < 2:
        return
    loose = [visible(one.name, 60) for one in built if not is_aligned(one, results)]
    if loose:
        yield (
            f"{' and '.join(loose)} {'is' if len(loose) == 1 else 'are'} built from source without functions aligned to 64 bytes: "
            "a change of one function moves others within their cache lines, and times can differ by that alone."
        )


def recipe(contender: ContenderResult) -> str:
    """The recipe of a kernel that was built for the run; empty for any other."""
    source = contender.facts.get("provenance")
    return str(source.get("recipe") or "") if isinstance(source, dict) else ""


def is_aligned(contender: ContenderResult, results: Results) -> bool:
    """True if functions are aligned, by the configuration that ran where it is known, else by the recipe."""
    config = results.environment.get(contender.name, {}).get("config")
    if isinstance(config, dict) and config:
        # gcc aligns no function that it optimises for size.
        return config.get(OPTION) == "y" and config.get("CC_OPTIMIZE_FOR_SIZE") != "y"
    return f"{OPTION}=y" in recipe(contender)


PLUGIN = Finding(
    name="alignment", cause="Times may differ by the place of functions alone", weight=30,
    meaning="Two or more kernels were built from source for the run, and not all with functions aligned to 64 bytes. A change "
    "of one function then moves others within their cache lines, which can make them slower or faster. Counts do not "
    "notice it.",
    remedy="Add +EXPERT=y+DEBUG_FORCE_FUNCTION_ALIGN_64B=y to config=; with tinyconfig also +CC_OPTIMIZE_FOR_PERFORMANCE=y, "
    "since gcc aligns no function that it optimises for size.",
    check_run=alignment,
)  # fmt: skip
