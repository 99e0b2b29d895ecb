"""Plain text for a mailing list: ASCII, 72 columns, no attachments, nothing that a quoting reader breaks."""

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from kduel.core.results import Results
from kduel.core.text import ascii_only, visible
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer
from kduel.report.content.digest import SIGNS, digest
from kduel.report.content.reproduce import here_document, reproduction
from kduel.report.content.textgrid import verdict_lines

WIDTH = 72


class MailFormat(Format):
    name: ClassVar[str] = "mail"
    summary: ClassVar[str] = "72 columns of ASCII for a mailing list"
    suffix: ClassVar[str] = ".txt"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        said, found = digest(results), answer(results)
        out = [
            *wrap_ascii(", ".join([said.title, *said.facts])),
            "",
            *wrap_ascii(found.text),
            *wrap_ascii(found.step),
            # A command is not folded: it shall be pasted.
            *([f"  {ascii_only(visible(found.command))}"] if found.command else []),
        ]
        for comparison in said.comparisons:
            out += ["", *wrap_ascii(comparison.headline), ""]
            if comparison.gating:
                for line in verdict_lines(comparison, said.notes, WIDTH, spell):
                    text = "".join(piece for piece, _ in line)
                    fits = len(text.rstrip()) <= WIDTH
                    below = " " * 16  # its name
                    folded = textwrap.wrap(text, WIDTH, break_on_hyphens=False, subsequent_indent=below)
                    out += [text] if fits else folded
            for heading, _, sentences in comparison.conclusion_lists:
                out += ["", f"{heading}:", *wrap_items(sentences)]
        if said.notes.notes:
            out += ["", "Findings:"]
            for number, sentence in said.notes.chosen(options.all_findings):
                out += wrap_ascii(sentence, f"[{number}] " if number else "    ")
            if not options.all_findings and said.notes.hidden_sentence:
                out += wrap_ascii(said.notes.hidden_sentence)
        out += ["", "Measured:", *wrap_items(said.measured)]
        out += ["", "How sure:", *wrap_items([said.sure, *said.caveats])]
        out = [line.rstrip() for line in out]
        if again := reproduction(results):
            out += ["", "To reproduce, in a checkout of KDuel:"]
            # A shell takes this as it stands, so nothing is folded, indented or stripped.
            out += ["", *here_document(again.study), ""] if again.study else []
            out += [f"  {line}" for line in again.lines(WIDTH - 2, ascii_only)]
        if results.study.checksum:
            out += [
                "",
                "Checksum of the run (SHA-256 of trials/*/manifest.sha256):",
                f"  {visible(results.study.checksum)}",
            ]
        return "\n".join(out) + "\n"


PLUGIN = MailFormat()
SIGNED = tuple(f"{sign} " for sign in SIGNS.values())


def spell(text: str) -> str:
    """In ASCII; verdicts without their signs, whatever the word is (`faster`, or `fewer` for a count)."""
    word = next((text.removeprefix(sign) for sign in SIGNED if text.startswith(sign)), text)
    return ascii_only(word.replace("─", "-"))


def wrap_items(sentences: Sequence[str]) -> list[str]:
    return [line for sentence in sentences if sentence for line in wrap_ascii(sentence, "- ")]


def wrap_ascii(text: str, mark: str = "") -> list[str]:
    """Text in lines, the further ones below the first one's text."""
    return textwrap.wrap(
        ascii_only(text), WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False
    )
