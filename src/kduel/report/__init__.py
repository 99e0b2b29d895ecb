"""Report formats, one module each, here or behind the entry point `kduel.report`; `PLUGIN` is a `Format`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, field

from kduel.core.errors import InputError
from kduel.core.plugins import named_plugin, plugins
from kduel.core.results import Results


class ReportOptions(Struct, frozen=True, kw_only=True):
    """Wishes for a report; a format passes over those that mean nothing to it."""

    all_findings: bool = False
    """True for every finding instead of the most important ones; of formats that make a choice."""
    run: str = ".."
    """The relative URL from the report's place to the run's directory, for links to raw files."""
    directory: Path | None = None
    """The run's directory, for pictures of its raw files; None where there is none."""
    origin: str = "kduel"
    """The name under which KCIDB knows who submits: its tests' and builds' identifiers begin with it."""

    figures: Mapping[str, str] = field(default_factory=dict)
    """Captions of figures by file, relative to the report, for formats that include them."""


DEFAULTS = ReportOptions()


class Format(ABC):
    """A way to write results down. `suffix` is the file's ending."""

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]

    @abstractmethod
    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        """The whole report. Nothing in `results` is to be trusted: escape it for the format."""


def report_format(name: str) -> Format:
    """The format of that name. Raises InputError that lists what there is, or names those whose files end so."""
    found = plugins("report")
    ending = [one for one in found if found[one].suffix == f".{name}"]
    if ending and name not in found:
        raise InputError(
            f"there is no report format {name!r}",
            f"Did you mean {' or '.join(ending)}? There are: {', '.join(found)}.",
        )
    chosen: Format = named_plugin("report", "report format", name)
    return chosen
