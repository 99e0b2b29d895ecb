"""A mail of the kernel test robot, as it came or quoted, with its figures; or LKP's job.yaml beside it."""

import re
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from kduel.core.errors import InputError
from kduel.core.samples import within_reason
from kduel.store.imported.lkp import MONITORS, better_of
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, read_bounded

MOST_BYTES = 8 << 20
LONGEST = 1000
"""Characters of a line that is read: the robot's have up to 300."""
NOTICED = re.compile(r"noticed an? ([+-]?\d+(?:\.\d+)?)% (regression|improvement) of (\S+) (?:due to commit|on) ?:")
SUBJECT = re.compile(r"\b([0-9a-f]{10,40}): (\S+) ([+-]?\d+(?:\.\d+)?)% (regression|improvement)\b")
COMMIT = re.compile(r'commit: ([0-9a-f]{8,40})\b(?: \("(.*)"\))?')
FACT = re.compile(r"(?:in |on )?(testcase|test machine|config|kconfig|compiler): (\S.*)")
PARAMETER = re.compile(r"([A-Za-z][\w.-]*): (\S.*)")
TREE = re.compile(r"(?:url: )?((?:https?|git)://\S+(?: \S+)?)")
NAMES = re.compile(r"[\w.-]+(?:/[\w.-]+)+:")
COLUMN = re.compile(r"[\w.^~-]{1,60}", re.ASCII)
NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?", re.ASCII)
CHANGE = re.compile(r"[+-]\d{1,30}(?:\.\d{1,20})?%?", re.ASCII)
METRIC = re.compile(r"([\w-]+)\.(\S+)", re.ASCII)
SCALAR = re.compile(r" *(?:- )?([A-Za-z_][\w.-]*): +(?:'([^']*)'|\"([^\"]*)\"|([^'\"\s#&*!|>%@`{\[].*))")
FURTHER = re.compile(r"\| ?(testcase: change|test machine|test parameters|) *\| (.*?) *\|?")
FURTHER_CHANGE = re.compile(r"(\S+): (\S+) ([+-]?\d+(?:\.\d+)?)% (regression|improvement)")
REMEDY = "Give the mail as it came (saved, or its text copied), or the job.yaml that belongs to it."


class Figure(NamedTuple):
    line: int
    name: str
    parent: str
    commit: str


class Table(Struct, kw_only=True):
    """The figures of one test on one machine."""

    columns: list[str] = field(default_factory=list)
    """The commits compared, as the heading has them."""
    facts: dict[str, str] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)


class RobotReport(Struct, kw_only=True):
    """The facts of a mail; those that it does not state are empty."""

    commit: str = ""
    title: str = ""
    tree: str = ""
    """Where the commit is, as the mail says it."""
    metric: str = ""
    change: str = ""
    """In per cent, with the sign where the mail has one, such as -2.9."""
    word: str = ""
    """Regression or improvement."""
    testcase: str = ""
    machine: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    table: Table = field(default_factory=Table)
    others: int = 0
    """Number of tables that are of other tests or machines."""
    further: list["RobotReport"] = field(default_factory=list)
    """The other tests on which the mail says that the commit has an impact."""

    @property
    def headline(self) -> str:
        """The change, in the robot's words."""
        return f"{self.change}% {self.word} of {self.metric}" if self.word else f"{self.testcase} changed"

    @property
    def heading(self) -> str:
        """The change and what it was measured with."""
        facts = [f"{key} {self.parameters[key]}" for key in ("test", "mode", "nr_task") if key in self.parameters]
        return f"{self.headline} ({', '.join(facts)})" if facts else self.headline

    @property
    def parent(self) -> str:
        """The commit before, as far as the mail names it."""
        return self.table.columns[0] if self.table.columns else f"{self.commit}~1"

    @property
    def side(self) -> str:
        """The side on which the metric's value lies with the commit: higher, lower; empty where that is not known."""
        better = better_of(self.metric.partition(".")[2])
        if self.change[:1] in ("-", "+"):
            return "lower" if self.change[0] == "-" else "higher"
        if better == "none" or not self.word:
            return ""
        return "higher" if (better == "higher") == (self.word == "improvement") else "lower"


def read_report(path: Path) -> RobotReport:
    """The mail or the job.yaml. Raises InputError for a file that is neither."""
    lines = body_lines(read_bounded(path, MOST_BYTES))
    report = RobotReport()
    told = " ".join(" ".join(lines).split())
    if found := NOTICED.search(told):
        report.change, report.word, report.metric = found.groups()
    elif found := SUBJECT.search(told):
        report.commit, report.metric, report.change, report.word = found.groups()
    read_facts(lines, report)
    if not report.metric:
        read_job(lines, report)
    tables = list(read_tables(lines))
    if tables:
        report.table = table_of(report, tables) or tables[0]
        report.others = len(tables) - 1
        if report.table.columns[1].startswith(report.commit):
            report.commit = report.table.columns[1]
    report.parameters = report.table.facts | report.parameters
    report.testcase = report.testcase or report.parameters.get("testcase", "") or report.metric.partition(".")[0]
    if not report.commit or not report.testcase:
        what = "commit" if report.testcase else "test"
        raise InputError(f"{path.name} is no mail of the kernel test robot: no {what} is named in it", REMEDY)
    for other in read_further(lines, report):
        other.table = table_of(other, tables) or Table(columns=report.table.columns)
        other.parameters = other.table.facts | other.parameters
        report.further.append(other)
    return report


def table_of(report: RobotReport, tables: list[Table]) -> Table | None:
    """The table that has the metric, with no other parameters than the test's."""
    for table in tables:
        named = any(figure.name == report.metric for figure in table.figures)
        if named and all(table.facts.get(key, value) == value for key, value in report.parameters.items()):
            return table
    return None


def read_further(lines: list[str], report: RobotReport) -> Iterator[RobotReport]:
    """The tests of the box that begins with "testcase: change", each with what it says of machine and parameters."""
    other: RobotReport | None = None
    key = ""
    for line in lines:
        if not (found := FURTHER.fullmatch(line.strip())):
            continue
        key = found[1] or key
        if key == "testcase: change":
            if other:
                yield other
            change = FURTHER_CHANGE.match(found[2])
            other = None
            if change:
                other = RobotReport(commit=report.commit, title=report.title, tree=report.tree)
                other.testcase, other.metric, other.change, other.word = change.groups()
        elif other and key == "test machine":
            other.machine = f"{other.machine} {found[2]}".strip()
        elif other and key == "test parameters" and "=" in found[2]:
            name, _, value = found[2].partition("=")
            other.parameters[name.strip()] = value.strip()
    if other:
        yield other


def body_lines(data: bytes) -> list[str]:
    """The lines of a mail's texts, decoded, without what marks them as quoted. Attached files are left out."""
    if re.match(rb"[A-Za-z-]+:|From ", data) and re.search(rb"(?im)^(subject|message-id):", data[:65536]):
        try:
            message = message_from_bytes(data)
            texts = [f"{message.get('Subject', '')}"]
            for part in message.walk():
                payload = part.get_payload(decode=True) if part.get_content_maintype() == "text" else None
                if isinstance(payload, bytes) and not part.get_filename():
                    texts.append(decode_text(payload))
            text = "\n".join(texts)
        except RecursionError as error:
            raise InputError("the parts of the mail are nested too deeply", REMEDY) from error
    else:
        text = decode_text(data)
    return [re.sub(r"^(?:> ?)+", "", line[:LONGEST]).rstrip() for line in text.splitlines()]


def decode_text(data: bytes) -> str:
    """Text in UTF-8, else in ISO 8859-1, which the robot writes."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_facts(lines: list[str], report: RobotReport) -> None:
    """Fill in the commit, the test, the machine and the parameters of a mail's beginning."""
    listing, listed = False, dict[str, str]()
    for line in (" ".join(line.split()) for line in lines):
        if listing and (found := PARAMETER.fullmatch(line)):
            listed.setdefault(found[1], found[2])
        elif listing and (line or listed):
            listing = False
        elif re.fullmatch(r"(?:with following )?parameters:", line) and not listed:
            listing = True
        elif found := COMMIT.match(line):
            if not report.title and (not report.commit or found[1].startswith(report.commit)):
                report.commit, report.title = found[1], found[2] or ""
        elif report.title and not report.tree and (found := TREE.fullmatch(line)):
            report.tree = found[1]
        elif found := FACT.fullmatch(line):
            if found[1] == "test machine":
                report.machine = report.machine or found[2]
            elif found[1] == "testcase":
                report.testcase = report.testcase or found[2].partition(" ")[0]
            else:
                report.parameters.setdefault(found[1].replace("kconfig", "config"), found[2])
    report.parameters |= listed


def read_job(lines: list[str], report: RobotReport) -> None:
    """Fill in what LKP's job.yaml says: keys with a plain value, at whatever depth; the first of a name counts."""
    found: dict[str, str] = {}
    for line in lines:
        if match := SCALAR.fullmatch(line):
            found.setdefault(match[1], (match[2] or match[3] or match[4] or "").strip())
    if "testcase" in found or "suite" in found:
        report.testcase = found.get("testcase") or found["suite"]
        report.commit = report.commit or found.get("commit", "")
        if report.commit and not re.fullmatch(r"[0-9a-f]{8,40}", report.commit):
            report.commit = ""
        if {"nr_cpu", "nr_node"} & found.keys():
            report.machine = f"{found.get('nr_cpu', '?')} threads {found.get('nr_node', '?')} nodes"
        report.parameters = found


def read_tables(lines: list[str]) -> Iterator[Table]:
    """All tables that have figures, in the order of the mail."""
    table, facts, inside = Table(), dict[str, str](), False
    for number, line in enumerate(lines, 1):
        if NAMES.fullmatch(line.strip()):
            names, values = line.strip(" :\t").split("/"), [*lines, ""][number].strip().split("/")
            facts = dict(zip(names, values, strict=False)) if len(names) == len(values) else {}
        elif "%stddev" in line and "%change" in line:
            heading = next(
                (one.split() for one in reversed(lines[max(0, number - 4) : number - 1]) if "--" not in one), []
            )
            usable = len(heading) > 1 and all(map(COLUMN.fullmatch, heading)) and heading[0] != heading[1]
            if table.figures:
                yield table
            table, facts, inside = Table(columns=heading if usable else [], facts=facts), {}, usable
        elif re.match(r"[*=]{10}", line.strip()):
            inside = False
        elif inside and (figure := read_figure(number, line)):
            table.figures.append(figure)
    if table.figures:
        yield table


def read_figure(number: int, line: str) -> Figure | None:
    """A table's line: value, change, value and a name, perhaps further commits and a spread. None for other lines."""
    words, spread = list[str](), False
    for word in line.split():
        if spread or not word[0].isascii():
            # "+- 3%", whose sign is one character or, read in another character set, another one or two.
            if word[-1] != "%" and (spread or word[-1].isascii()):
                return None
            spread = word[-1] != "%"
        else:
            words.append(word)
    values, changes = words[:-1:2], words[1:-1:2]
    complete = len(words) >= 4 and len(words) % 2 == 0 and METRIC.fullmatch(words[-1])
    if not complete or not all(map(NUMBER.fullmatch, values)) or not all(map(CHANGE.fullmatch, changes)):
        return None
    return Figure(number, words[-1], values[0], values[1])


class RobotMail(ForeignFormat):
    """The first commit of a table is its parent. Each figure is the mean of several runs, whose number the mail does not say."""

    name = "robot-mail"
    summary = "a mail of the kernel test robot (LKP): the figures of its table, each a mean"
    names_contenders = True
    holds = ("%stddev", "%change")

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        report = read_report(path)
        columns, seen, monitors = report.table.columns, set[str](), 0
        for figure in report.table.figures:
            benchmark, _, metric = figure.name.partition(".")
            if MONITORS.fullmatch(benchmark) or metric.startswith("time."):
                monitors += 1
                continue
            place = f"line {figure.line} of the text"
            if figure.name in seen:
                raise InputError(f"{location_text(path, place)}: {figure.name[:80]} is there twice", REMEDY)
            seen.add(figure.name)
            for column, text in zip(columns[:2], (figure.parent, figure.commit), strict=True):
                value = float(text)
                if not within_reason(value):
                    raise InputError(f"{location_text(path, place)}: {text[:40]} is too large or too small", REMEDY)
                yield ForeignRow(column[:16], 1, benchmark, metric, "", better_of(metric), value, place, "mean")
        if not seen:
            raise InputError(
                f"{path.name} has no figure of a benchmark",
                "Give the mail with its table of figures; kduel init --from-report takes one without.",
            )
        if monitors:
            skipped.append(f"{path.name}: {monitors} figures of monitors, which have no better side.")
        if len(columns) > 2:
            skipped.append(f"{path.name}: the columns of {', '.join(columns[2:])[:200]}.")
        if report.others:
            skipped.append(f"{path.name}: {report.others} more tables, of other tests or machines.")


PLUGIN = RobotMail()
