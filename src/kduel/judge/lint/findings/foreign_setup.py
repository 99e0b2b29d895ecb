"""Imported results whose program itself says that it measured under a condition that distorts times."""

from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.core.text import visible
from kduel.judge.lint.finding import Finding

DISTORTS = (
    ("library_build_type", "debug", "its library was built for debugging, which slows what it measures"),
    ("cpu_scaling_enabled", True, "the CPU changed its frequency with the load, so that times vary with it"),
)
"""What Google Benchmark writes into its context, and warns of on the terminal."""


def foreign_setup(results: Results, _samples: list[Samples]) -> Iterator[str]:
    for key, value, why in DISTORTS:
        found = []
        for name, facts in results.environment.items():
            context = facts.get("google-benchmark")
            if isinstance(context, dict) and context.get(key) == value:
                found.append(visible(name, 200))
        if found:
            yield f"Google Benchmark measured {', '.join(found)} under a condition that distorts times: {why} ({key})."


PLUGIN = Finding(
    name="foreign-setup", cause="The program that measured warns of its own setup", weight=60,
    meaning="Google Benchmark's file says that its library was built for debugging, or that the CPU scaled its frequency.",
    remedy="Build the library for release, set the governor `performance`, and measure again.",
    check_run=foreign_setup,
)  # fmt: skip
