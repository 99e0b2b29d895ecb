"""Instructions to measure again what a run measured: commands for a checkout of KDuel, with the kernels that were measured."""

import json
import shlex
import textwrap
from collections.abc import Callable
from hashlib import sha256

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.results import ContenderResult, Results
from kduel.core.text import printable, visible
from kduel.core.turns import DEFAULT_MS
from kduel.core.version import commit_of
from kduel.report.content.provenance import kernel, table
from kduel.study.contenders import contender_tables, read_contenders
from kduel.study.file import parse_study, suites
from kduel.study.load import Study, assemble, read_machine

OUT = "again"
FILE = "study.toml"
LONGEST_WORD, LONGEST_QUOTED, CUT_WORD = 4000, 500, 40
"""Characters: no line is as long as those that a format cuts, which would open its quotes."""
PINNED = "debian:"
"""Begins the specification of a kernel that everybody can get."""


class Reproduction(Struct, frozen=True, kw_only=True):
    """Commands to paste into a shell, and the study that they need."""

    commands: list[list[str]]
    """The words of each."""
    study: str
    """The text of study.toml; empty where a suite has it."""
    notes: list[str]
    """What the commands cannot bring about."""

    def lines(self, width: int, spell: Callable[[str], str] = str) -> list[str]:
        """The commands in a shell's lines, folded at `width` at words' ends; `spell` changes words before quoting."""
        notes = [spell(visible(one, LONGEST_WORD)) for one in self.notes]
        comments = [
            line
            for one in notes
            for line in textwrap.wrap(one, width, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
        ]
        commands = [[safe_word(word, spell) for word in words] for words in self.commands]
        return [*(line for words in commands for line in fold_command(words, width)), *comments]


def reproduction(results: Results) -> Reproduction | None:
    """Commands that measure again with the same kernels and seed, and report; None for imported and merged runs."""
    study = results.study
    if study.seed is None:
        return None
    suite = suite_words(results)
    text = "" if suite else pinned_study(results)
    try:
        asked = assemble(parse_study(study.text, FILE), study.text, FILE)
        more, notes = options(results, asked)
    except InputError:
        more, notes = [], [f"Options of the command line are not known; {FILE} is as it was given."]
    if len(results.parts) > 1 and (text or any(word.startswith("--machine") for word in more)):
        more.append("--exact-first")
    commit = commit_of(study.kduel)
    if not commit or "." in (study.kduel or "").partition("+")[2]:
        notes.append(f"It was measured by KDuel {visible(study.kduel, 60)}, which no commit holds as it was.")
    notes += [
        f"{visible(one.name, 100)} is {kernel(one)}: bring that kernel."
        for one in results.contenders
        if not str(table(one.facts, "provenance").get("exact")).startswith(PINNED)
    ]
    run = ["./kduel", "run", *(suite or [FILE]), *more, f"--seed={study.seed}", f"--out={OUT}"]
    checkout = [["git", "checkout", commit]] if commit else []
    report = ["./kduel", "report", OUT, "--format=mail"]
    return Reproduction(commands=[*checkout, run, report], study=text, notes=notes)


def command_of_blocks(results: Results, run: str, blocks: int) -> str:
    """The command that measures a run again in so many blocks, `run` as the user types it; empty where no command line says all, as
    of several machines."""
    if any(trial.machine or trial.part for trial in results.trials):
        return ""
    try:
        asked = assemble(parse_study(results.study.text, FILE), results.study.text, FILE)
        words, notes = options(results, asked)
    except InputError:
        return ""
    same = [word for word in words if not word.startswith(("--blocks", "--max-blocks"))]
    again = shlex.join([*same, f"--blocks={blocks}"])
    # Of `.` the name would lie in the run itself.
    out = f"{run}/../{blocks}-blocks" if run.endswith(".") else f"{run}-{blocks}-blocks"
    return "" if notes else f"kduel run {run}/{FILE} {again} --out={out}"


def exact_spec(contender: ContenderResult) -> str:
    exact = table(contender.facts, "provenance").get("exact")
    return visible(exact if isinstance(exact, str) else contender.kernel, 300)


def suite_words(results: Results) -> list[str]:
    """The kernels and the suite, where the study is what these give; else nothing."""
    study, kernels = results.study, [one.kernel for one in results.contenders]
    text = suites().get(study.origin or "")
    if text is None:
        return []
    exact = [exact_spec(one) for one in results.contenders]
    if study.text == text + contender_tables(kernels, numbered=False):
        return [*exact, f"--suite={study.origin}"]
    if study.text == text + contender_tables(kernels, numbered=True):
        return [f"--aa={len(exact)}", exact[0], f"--suite={study.origin}"]
    return []


def pinned_study(results: Results) -> str:
    """The study's text with the kernels that were measured in place of those that were asked for."""
    text = results.study.text
    for one in results.contenders:
        for quote in "\"'":
            text = text.replace(f"{quote}{one.kernel}{quote}", f"{quote}{exact_spec(one)}{quote}")
    try:
        kernels = [one.kernel for one in read_contenders(parse_study(text, FILE).contender, FILE)]
    except InputError:
        kernels = []
    if kernels != [exact_spec(one) for one in results.contenders]:
        text = results.study.text
    return as_toml(text)


def as_toml(text: str) -> str:
    """The text with each character that is not ASCII, or not visible, as TOML escapes it in strings."""
    plain = "".join(
        c if c.isascii() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text
    )
    return printable(plain).rstrip("\n")


def options(results: Results, asked: Study) -> tuple[list[str], list[str]]:
    """Options of the command line by which the run differs from its study, and a note about what no option says."""
    study, kind, settings, facts = (
        results.study, results.machine.kind, results.machine.settings, results.machine.facts,
    )  # fmt: skip
    words, notes = [], []
    if (kind, settings) != (asked.machine, asked.machine_settings):
        known = asked.machine_settings if kind == asked.machine else {}
        pairs = ",".join(
            f"{key}={value if isinstance(value, str) else json.dumps(value, default=str)}"
            for key, value in settings.items()
            if known.get(key) != value
        )
        given = f"{kind}:{pairs}" if pairs else kind
        if read_machine({"kind": asked.machine, **asked.machine_settings}, given) == (kind, settings):
            words.append(f"--machine={given}")
        else:
            notes.append(
                f"The machine was {visible(kind, 60)} with {visible(json.dumps(settings, default=str), 400)}."
            )
    if any(one.parameters.get("conditions") == 0 for one in results.steps) and not any(
        one.parameters.get("conditions") == 0 for one in asked.steps
    ):
        words.append("--single")
    if study.fixed is not None and study.fixed != asked.blocks.fixed:
        words.append(f"--blocks={study.fixed}")
    elif study.fixed is None and (asked.blocks.fixed is not None or study.max != asked.blocks.max):
        words.append(f"--max-blocks={study.max}")
    if study.delta != asked.about.delta:
        words.append(f"--delta={study.delta:g}")
    by_default = (
        DEFAULT_MS if kind == "qemu" and facts.get("accelerator") == "tcg" and study.unit != "load" else "off"
    )
    if study.turns not in (None, by_default if asked.blocks.turns is None else asked.blocks.turns):
        words.append(f"--turns={study.turns}")
    return words, notes


def safe_word(word: str, spell: Callable[[str], str]) -> str:
    """A word to be quoted, which is cut where that would be too long."""
    whole = spell(visible(word, LONGEST_WORD))
    return whole if len(shlex.quote(whole)) <= LONGEST_QUOTED else spell(visible(word, CUT_WORD))


def fold_command(words: list[str], width: int) -> list[str]:
    """A command in lines that a shell reads as one."""
    lines = [shlex.quote(words[0])]
    for word in map(shlex.quote, words[1:]):
        # Room for the backslash.
        if len(lines[-1]) + 1 + len(word) + 2 <= width:
            lines[-1] += f" {word}"
        else:
            lines[-1] += " \\"
            lines.append(f"    {word}")
    return lines


def shell_lines(found: Reproduction, width: int) -> list[str]:
    """All of it in lines that a shell takes as they stand."""
    return [*(here_document(found.study) if found.study else []), *found.lines(width)]


def here_document(text: str) -> list[str]:
    """Lines of a shell that write the text to study.toml. What ends the document is nowhere in it, so that no line does which is
    stripped, or which a program of mail breaks."""
    end = "END" if "END" not in text else f"END_{sha256(text.encode()).hexdigest()[:32]}"
    return [f"cat >{FILE} <<'{end}'", *text.split("\n"), end]
