"""Report formats, one module each: `Results` in, text out.

A module here, or one behind an entry point of the group `kduel.report`, offers `PLUGIN`, a `Format`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from kduel.core.plugins import named_plugin
from kduel.core.results import Results


class Format(ABC):
    """A way to write results down. `suffix` is the file's ending."""

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]
    all_findings: bool = False
    """Whether the report shows every finding instead of the most important ones; of formats that make a choice."""

    @abstractmethod
    def render(self, results: Results) -> str:
        """The whole report. Nothing in `results` is to be trusted: escape it for the format."""

    def render_for(self, results: Results, run: str) -> str:
        """As `render`, for a report from where the relative URL `run` leads to the run's directory.

        A format that links raw files overrides it.
        """
        return self.render(results)


def report_format(name: str) -> Format:
    """The format of that name. Raises InputError that lists what there is."""
    chosen: Format = named_plugin("report", "report format", name)
    return chosen
