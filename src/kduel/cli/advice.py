"""Advice in the form in which the user writes: what a study file has as TOML, in the words of a command line."""

import functools
import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from kduel.cli.named_study import is_study_file
from kduel.core.errors import InputError
from kduel.core.plugins import plugins
from kduel.study.contenders import SETTINGS
from kduel.study.file import BenchmarkTable

F = TypeVar("F", bound=Callable[..., None])
IN_FILES = re.compile(r"\[(study|settle|blocks|host|design|bound)\]|\[\[(contender|factor)\]\]|\bname = ")
"""What only a study file can say."""
OR_OPTION = re.compile(r"Write [^.;]* in \[[^.;]*, or give (?=--)|(?<=\d), or \w+ = \w+ in \[blocks\]")
"""What a study file would say in place of an option that is named beside it."""
SETTING = re.compile(
    r"(?:\[machine\] )?\b(?P<key>[a-z_]+) = (?P<value>\"[^\"]*\"|\[\"[^\]]*\]|\w[\w.]*)(?: in \[machine\]| in (?:the|a) study)?"
)


class AdvisedError(InputError):
    """An error whose remedy is in the words of a command line already."""


def advise_in_words(command: F) -> F:
    """Decorator of a command whose `contenders` are words, or one study file: its errors advise in the same form."""

    @functools.wraps(command)
    def advising(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except InputError as error:
            if not isinstance(error, AdvisedError) and not is_study_file(options["contenders"]):
                error.remedy = as_words(error.remedy)
            raise

    return advising  # type: ignore[return-value]


def as_words(remedy: str, of_benchmark: Collection[str] = ()) -> str:
    """A remedy with `--benchmark NAME:label=LABEL` in place of `label = "..."`; or how to get a study file. `of_benchmark`
    are a benchmark's parameters, some of which are called like settings of machines."""
    remedy = OR_OPTION.sub(lambda found: "Give " if found[0].startswith("Write") else "", remedy)
    if IN_FILES.search(remedy):
        return f"{remedy} That takes a study file: `kduel init` writes one."
    return (
        SETTING.sub(lambda found: setting_in_words(found, of_benchmark), remedy)
        .replace("[[benchmark]]", "the benchmark")
        .replace("[machine]", "--machine")
    )


def setting_in_words(found: re.Match[str], of_benchmark: Collection[str]) -> str:
    key, value = found["key"], found["value"].strip('["').split('"')[0].rstrip("]")
    value = key.upper() if value == "..." else value
    if key == "kernel":
        return value
    if key == "kind":
        return f"--machine {value}"
    if key == "use":
        return f"--benchmark {value}"
    if key in SETTINGS:
        return f"KERNEL,{key}={value}"
    of_machines = {name for kind in plugins("machines").values() for name in kind.Settings.__struct_fields__}
    of_machine = key in of_machines and key not in (*BenchmarkTable.__struct_fields__, *of_benchmark)
    return f"{'--machine KIND' if of_machine else '--benchmark NAME'}:{key}={value}"
