"""The exact part of a run: the same kernels with eight operations, counted before anything is timed."""

from __future__ import annotations

from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.study.contenders import tables_of
from kduel.study.load import Study, assemble, parse_study, suite_text

SUITE = "exact-quick"


def first_part(study: Study) -> Study:
    """The study of the exact part. Raises InputError where its machine, an emulator of one CPU, cannot stand for that
    of the study, or the contenders differ in more than kernel and command line."""
    if study.machine != "qemu":
        raise InputError(
            f"an exact part can come before a run on the machine qemu, not on {study.machine}",
            "Run it by itself: --suite exact.",
        )
    others = [one.name for one in study.contenders if one != only_kernel(one)]
    if others:
        raise InputError(
            f"{others[0]} sets a scheduler, a policy or sysctls; the exact part compares kernels and command lines",
            "Leave out --exact-first.",
        )
    text = suite_text(SUITE) + tables_of(study.contenders)
    return assemble(parse_study(text, SUITE), text, SUITE)


def only_kernel(contender: Contender) -> Contender:
    """The contender with nothing but its name, kernel, modules and command line."""
    return Contender(
        name=contender.name, kernel=contender.kernel, modules=contender.modules, cmdline=contender.cmdline
    )
