"""Cautions and findings, which a reader is to know before believing the verdicts: three at most, and apart from them all others."""

from __future__ import annotations

from kduel.core.results import Results
from kduel.report.content.digest import Digest
from kduel.report.content.notes import Note, key

MOST_FIRST = 3
Remark = str | Note


def remarks(said: Digest, results: Results) -> tuple[list[Remark], list[Remark]]:
    """The first caution, then findings on the run and on metrics that decide by their weight, then further cautions; and the rest."""
    gating = {key(metric) for metric in results.gating}
    weighty = [note for note in said.notes.notes if not note.touches or gating.intersection(note.touches)]
    light = [note for note in said.notes.notes if note not in weighty]
    ordered: list[Remark] = [*said.own_caveats[:1], *weighty, *said.own_caveats[1:], *light]
    return ordered[:MOST_FIRST], ordered[MOST_FIRST:]
