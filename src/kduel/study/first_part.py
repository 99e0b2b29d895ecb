"""The exact part of a run: the same kernels, counted on one CPU before the rest."""

from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.study.contenders import tables_of
from kduel.study.file import parse_study, suite_text
from kduel.study.load import Study, assemble

SUITE = "exact-quick"
"""What it counts, unless the study names another suite."""
EXACT_SEED = 1
"""The seed of the exact part, and the default one of exact machines."""


def first_part(study: Study) -> Study:
    """The study of the exact part. Raises InputError where its machine, an emulator of one CPU, cannot stand for that
    of the study, or the contenders differ in more than kernel and command line."""
    settings = study.machine_settings
    several = study.machine == "icount" and (settings.get("cpus", 1) != 1 or bool(settings.get("topology")))
    if study.machine != "qemu" and not several:
        raise InputError(
            f"an exact part can come before a run on the machine qemu, or icount with several CPUs, not on {study.machine}",
            "Run it by itself: --suite exact.",
        )
    if not only_kernels(study):
        others = [one.name for one in study.contenders if one != only_kernel(one)]
        raise InputError(
            f"{others[0]} sets a scheduler, a policy, sysctls or the machine; the exact part compares kernels and command lines",
            "Leave out --exact-first, or exact_first in the study.",
        )
    suite = study.about.exact_first or SUITE
    text = suite_text(suite) + tables_of(study.contenders)
    part = assemble(parse_study(text, suite), text, suite)
    if part.machine != "icount":
        raise InputError(
            f"exact_first = {suite!r}: that suite measures on the machine {part.machine}",
            "Name exact or exact-quick.",
        )
    return part


def only_kernels(study: Study) -> bool:
    """True if the contenders differ in nothing but kernel and command line."""
    return all(one == only_kernel(one) for one in study.contenders)


def only_kernel(contender: Contender) -> Contender:
    """The contender with nothing but its name, kernel, modules and command line."""
    return Contender(
        name=contender.name, kernel=contender.kernel, modules=contender.modules, cmdline=contender.cmdline
    )
