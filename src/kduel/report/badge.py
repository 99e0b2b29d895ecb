"""The outcome as a small SVG picture, for the page of a repository."""

from typing import ClassVar
from xml.sax.saxutils import escape

from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import visible
from kduel.judge.verdict.headline import matters, side
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer

COLOURS = {"worse": "#b3261e", "better": "#12784a", "differs": "#7a3ea8", "same": "#2b6cb0", "undecided": "#6b5d00"}
CHARACTER = 6.6
"""Pixels, on average, of a character at 11 pixels."""


class BadgeFormat(Format):
    """One line: the worst outcome over all gating metrics."""

    name: ClassVar[str] = "badge"
    summary: ClassVar[str] = "the outcome as a small SVG picture"
    suffix: ClassVar[str] = ".svg"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        text, colour = outcome(results.gating)
        if any(metric.claimed and metric.hint for metric in results.gating):
            text, colour = f"hint: {text}", COLOURS["undecided"]
        label = visible(results.study.name or "kduel", 40)
        left, right = (round(CHARACTER * len(words) + 12) for words in (label, text))
        label, text = escape(label, {'"': "&quot;"}), escape(text)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
            f'aria-label="{label}: {text}"><title>{label}: {escape(answer(results).text)}</title>'
            f'<rect width="{left + right}" height="20" rx="3" fill="#444"/>'
            f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="{colour}"/>'
            f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
            f'<text x="{left / 2}" y="14">{label}</text><text x="{left + right / 2}" y="14">{text}</text></g></svg>\n'
        )


PLUGIN = BadgeFormat()


def outcome(metrics: list[MetricResult]) -> tuple[str, str]:
    """Words and colour: worse before better before undecided before no difference."""
    if metrics and all(m.by_harness for m in metrics):
        return "nothing follows", COLOURS["undecided"]
    metrics = [m for m in metrics if not m.by_harness]
    large = [m for m in metrics if matters(m)]
    for kind in ("worse", "better", "neutral"):
        chosen = [m for m in large if side(m) == kind]
        if chosen:
            words = list(dict.fromkeys(m.word for m in chosen))
            word = words[0] if len(words) == 1 else {"neutral": "differs"}.get(kind, kind)
            return f"{word} in {len(chosen)} of {len(metrics)}", COLOURS.get(kind, COLOURS["differs"])
    undecided = sum(not m.claimed for m in metrics)
    if undecided or not metrics:
        return f"undecided in {undecided} of {len(metrics)}", COLOURS["undecided"]
    return "no difference that matters", COLOURS["same"]
