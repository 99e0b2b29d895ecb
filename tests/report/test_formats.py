"""Every format on every kind of results: whole, honest about what is missing, and safe whatever the strings hold."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import jsonschema
import msgspec
import pytest
from examples import ALL, HOSTILE, ROOT, Results, exact, hostile, published, simulated, three, undecided
from markdown_it import MarkdownIt

from kduel.core.errors import InputError
from kduel.core.plugins import plugins
from kduel.report import ReportOptions, report_format
from kduel.report.content import digest
from kduel.report.json import schema, schema_text
from kduel.report.text import render_text
from kduel.report.versions import parts_of

FORMATS = sorted(plugins("report"))
ALLOWED_TEX = {
    *("resizebox", "ifdim", "width", "linewidth", "else", "fi", "raggedright", "allowbreak", "scriptsize"),
    *("begin", "end", "centering", "small", "caption", "label", "toprule", "midrule", "bottomrule", "endhead"),
    *("multicolumn", "quad", "hspace", "emph", "addlinespace", "textbf", "textsuperscript", "footnotesize"),
    *("textbackslash", "textasciicircum", "textasciitilde", "textless", "textgreater", "textbar", "textquotedbl"),
    *("textquotesingle", "textasciigrave", "textendash", "pm", "cdot", "mu", "approx", "neq", "uparrow", "downarrow"),
}


def test_all_formats_are_found() -> None:
    assert {"text", "json", "csv", "markdown", "html", "latex", "mail", "summary", "kcidb", "matrix", "wide"} <= set(
        FORMATS
    )
    with pytest.raises(InputError, match="no report format 'pdf'"):
        report_format("pdf")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("example", ALL)
def test_nothing_hidden_gets_through(name: str, example: str) -> None:
    results = ALL[example]()
    if name == "versions" and not parts_of(results):
        with pytest.raises(InputError, match="no counts"):
            report_format(name).render(results)
        return
    text = report_format(name).render(results)
    is_page = text.startswith("<!")
    assert text.endswith("\n") or is_page
    body = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL) if is_page else text
    hidden = {c for c in body if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp") and c != "\n"}
    assert not hidden


@pytest.mark.parametrize(
    ("name", "dashes"),
    [("text", 3), ("markdown", 3), ("latex", 4), ("mail", 3), ("html", 3)],
)
def test_a_missing_number_is_a_dash_and_never_zero(name: str, dashes: int) -> None:
    results = simulated(blocks=3, metrics=1)
    metric = results.metrics[0]
    metric.benchmark, metric.metric, metric.unit = "b", "m", "u"
    metric.baseline_mean = metric.baseline_sd = metric.mean = metric.sd = None
    metric.effect_pct = metric.ci_low_pct = metric.ci_high_pct = metric.mde_pct = None
    metric.verdict, metric.n = "undecided", 3
    metric.values = {arm: [None] * 3 for arm in metric.values}
    text = (
        re.sub(r"<[^>]*>", " ", report_format(name).render(results))
        if name == "html"
        else report_format(name).render(results)
    )
    row = text[
        text.rindex("b/ m") if name == "html" else text.index("\nb &" if name == "latex" else "b/m") :
    ].lstrip()
    row = " ".join(row.splitlines()[:10] if name == "html" else row.splitlines()[:2])
    assert len(re.findall(r"–|\\textendash|(?<= )-(?= )", row + " ")) == dashes, row
    assert not re.search(r"\b0(\.0+)?\b", row), row


def test_text_says_what_matters_first() -> None:
    lines = render_text(published(), width=100, colour=False).splitlines()
    assert lines[1].startswith(
        "With linux-6.6.0 against linux-4.19.309, nothing is shown to be faster or slower: of 5 metrics"
    )
    assert (
        "linux-6.6.0 differs from linux-4.19.309 in 1 of 5 metrics (a hint; 2 more set by the benchmark)"
        in lines[2:10]
    )
    row = lines.index(next(line for line in lines if line.startswith("↓ lower")))
    assert "perf-stat/context_switches" in lines[row]
    assert re.search(r"−22\.6 % .* 280 ± 18 +217 ± 20 +10", lines[row + 1])


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("example", sorted(ALL.keys() - {"hostile", "exact"}))
def test_text_keeps_to_the_width(width: int, example: str) -> None:
    text = render_text(ALL[example](), width=width, colour=False)
    assert max(map(len, text.splitlines())) <= width


def test_text_has_colour_only_where_it_may(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kduel.report.text import show

    assert "\x1b[" in render_text(three(), width=100, colour=True)
    assert "\x1b" not in show(three())
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in show(three())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in show(three())


def test_colour_cannot_be_forged() -> None:
    text = render_text(hostile(), width=100, colour=True)
    ours = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in ours
    assert "\\x1b[31mred" in ours.replace("\n", "").replace(" ", "") or "x1b[31mred" in re.sub(r"\s", "", ours)


@pytest.mark.parametrize("example", ALL)
def test_json_comes_back_the_same_and_keeps_its_schema(example: str) -> None:
    results = ALL[example]()
    text = report_format("json").render(results)
    assert msgspec.json.decode(text, type=Results) == results
    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))


def test_json_schema_rejects_what_is_not_results() -> None:
    plain = json.loads(report_format("json").render(published()))
    for spoil in (
        lambda it: it.update(schema=1),
        lambda it: it["metrics"][0].update(verdict="won"),
        lambda it: it["metrics"][0].pop("baseline"),
        lambda it: it["metrics"][0]["values"].update(x=["fast"]),
    ):
        spoilt = json.loads(json.dumps(plain))
        spoil(spoilt)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema()).validate(spoilt)


def test_published_schema_is_the_present_one() -> None:
    assert (ROOT / "docs/results.schema.json").read_text() == schema_text(), "write it anew: scripts/reference"


def test_json_keeps_the_contract() -> None:
    plain = json.loads(report_format("json").render(undecided()))
    assert list(plain)[:6] == ["schema", "judged_by", "study", "machine", "contenders", "trials"]
    assert {"id", "block", "contender", "status"} <= plain["trials"][0].keys()
    wanted = "benchmark metric unit better role baseline contender n baseline_mean baseline_sd mean sd effect_pct"
    assert {*wanted.split(), "ci_low_pct", "ci_high_pct", "verdict", "warnings", "values"} <= plain["metrics"][
        0
    ].keys()
    broken = json.loads(report_format("json").render(ALL["broken"]()))
    assert None in next(iter(broken["metrics"][0]["values"].values()))


@pytest.mark.parametrize("example", ["published", "three", "broken", "hostile"])
def test_csv_has_every_value_and_no_other(example: str) -> None:
    results = ALL[example]()
    rows = list(csv.DictReader(StringIO(report_format("csv").render(results))))
    there = {
        (metric.contender if arm else metric.baseline, metric.benchmark, metric.metric): values
        for metric in results.metrics
        for arm, values in enumerate(metric.values[name] for name in (metric.baseline, metric.contender))
    }
    assert len(rows) == sum(value is not None for values in there.values() for value in values)
    if example == "hostile":
        return
    for row in rows:
        values = there[row["contender"], row["benchmark"], row["metric"]]
        assert float(row["value"]) == values[results.blocks.index(int(row["trial"]))]


def test_csv_keeps_a_measured_zero_and_leaves_out_a_missing_value() -> None:
    results = simulated(blocks=3, metrics=1)
    results.metrics[0].values = {"debian-6.1": [0.0, None, 1.5], "debian-6.12": [2.0, 3.0, None]}
    rows = list(csv.DictReader(StringIO(report_format("csv").render(results))))
    assert [(row["contender"], row["trial"], row["value"]) for row in rows] == [
        ("debian-6.1", "1", "0"),
        ("debian-6.1", "3", "1.5"),
        ("debian-6.12", "1", "2"),
        ("debian-6.12", "2", "3"),
    ]


def test_csv_is_what_import_reads(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from kduel.cli.import_ import command
    from kduel.judge.evaluate import judge_run

    given = three()
    path = tmp_path / "values.csv"
    path.write_text(report_format("csv").render(given))
    CliRunner().invoke(command, [str(path), "--out", str(tmp_path / "run")], catch_exceptions=False)
    back = judge_run(tmp_path / "run")
    values = {(m.benchmark, m.metric, m.contender): m.values[m.contender] for m in given.metrics}
    assert {(m.benchmark, m.metric, m.contender): m.values[m.contender] for m in back.metrics} == values
    assert {m.baseline for m in back.metrics} == {m.baseline for m in given.metrics}


@pytest.mark.parametrize("example", ALL)
def test_mail_is_ascii_in_72_columns(example: str) -> None:
    text = report_format("mail").render(ALL[example]())
    assert text.isascii()
    before, _, after = text.partition("cat >study.toml <<'END'\n")
    # The study's own lines stay as they are.
    assert max(map(len, [*before.splitlines(), *after.partition("\nEND\n")[2].splitlines()])) <= 72


@pytest.mark.parametrize("example", ALL)
def test_markdown_is_nothing_but_our_own(example: str) -> None:
    text = report_format("markdown").render(ALL[example]())
    tokens = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable(["table", "strikethrough"]).parse(text)
    inline = [child for token in tokens for child in token.children or []]
    kinds = {token.type for token in [*tokens, *inline]}
    assert not kinds & {
        "html_block",
        "html_inline",
        "link_open",
        "image",
        "fence",
        "code_block",
        "em_open",
        "s_open",
    }
    codes = [child.content for child in inline if child.type == "code_inline"]
    # What stands between the backquotes of two names is none, and a word of one name shows as that word.
    assert all(re.fullmatch(r"kduel .+|--[a-z-]+ \w+|\S+", code) for code in codes)
    for table in re.findall(r"(?m)(?:^\|.*\n)+", text):
        (columns,) = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        # Without the column of intervals or of n where there is nothing in it.
        assert columns in ((4,) if table.startswith("| rank |") else (7, 8, 9))


def test_markdown_shows_what_it_was_given() -> None:
    text = report_format("markdown").render(hostile())
    shown = "".join(
        child.content
        for token in MarkdownIt().enable("table").parse(text)
        for child in token.children or []
        if child.type in ("text", "text_special")
    )
    assert '<script>alert("x")</script> `tick` | pipe \\input{/etc/passwd} $x$' in shown


@pytest.mark.parametrize("example", ALL)
def test_latex_has_no_command_but_our_own(example: str) -> None:
    text = report_format("latex").render(ALL[example]())
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert set(re.findall(r"\\([A-Za-z]+)", body)) <= ALLOWED_TEX
    bare = re.sub(r"\\[\\A-Za-z{}$&#%_()]+", "", body)
    bare = bare.replace("$n$", "")
    assert not re.search(r"[$#%_^~]", bare)
    plain = re.sub(r"\\[{}]", "", body)
    assert plain.count("{") == plain.count("}")
    columns = {
        len(re.findall(r"(?<!\\)&", line))
        for line in body.splitlines()
        if re.search(r"\\\\\*?$", line) and "multicolumn" not in line and "caption" not in line
    }
    assert columns <= {5}


class Reader(HTMLParser):
    """Notes the elements, and whether they are properly nested."""

    VOID = frozenset({"meta", "link", "br", "input", "wbr", "img", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> in {self.open[-3:]}"

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.text.append(data)


def read_page(results: Results) -> Reader:
    reader = Reader()
    reader.feed(report_format("html").render(results))
    reader.close()
    assert not reader.open
    return reader


@pytest.mark.slow
@pytest.mark.parametrize("example", ALL)
def test_page_has_no_element_but_our_own(example: str) -> None:
    reader = read_page(ALL[example]())
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("script") == 1
    assert tags.count("style") == 1
    assert not set(tags) & {"img", "iframe", "object", "embed", "link", "base", "form"}
    for tag, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")], tag
        address = attributes.get("href")
        assert address is None or address.startswith(("#", "../trials/")), address
        if "role" in attributes and attributes["role"] == "img":
            assert attributes["aria-label"]
        if tag == "th":
            assert attributes.get("scope") in ("row", "col")
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"] for _, a in reader.tags if (a.get("href") or "").startswith("#")} <= {f"#{one}" for one in ids}


def test_page_shows_what_it_was_given() -> None:
    from kduel.core.text import visible

    assert visible(HOSTILE) in "".join(read_page(hostile()).text)


def test_page_is_one_file_of_bearable_size() -> None:
    page = report_format("html").render(simulated(blocks=20))
    assert len(page.encode()) < 300_000
    assert "Content-Security-Policy" in page
    assert not re.search(r'(src|href)="https?:', page)


def test_links_lead_to_the_run_from_wherever_the_page_is() -> None:
    page = report_format("html").render(simulated(blocks=1), ReportOptions(run="../some%20where/run"))
    assert 'href="../some%20where/run/trials/0000-b01-debian-6.1' in page
    here = report_format("html").render(simulated(blocks=1), ReportOptions(run="run"))
    assert 'href="./run/trials/0000-b01-debian-6.1' in here


@pytest.mark.slow
@pytest.mark.parametrize("directory", ["/etc", "../../x", "trials/../../x", "", None])
def test_no_link_leads_out_of_the_run(directory: str | None) -> None:
    results = simulated(blocks=1)
    for trial in results.trials:
        trial.directory = directory
    assert not [a for tag, a in read_page(results).tags if tag == "a" and not (a["href"] or "").startswith("#")]


def test_exact_results_claim_no_statistics() -> None:
    for name in ("text", "mail", "markdown"):
        text = " ".join(report_format(name).render(exact()).split())
        assert "confidence" not in text
        assert "exact" in text
        assert "(+0.581 %)" in text
        assert "caches, stalls" in text


def test_exact_differences_are_told_by_their_size_too() -> None:
    results = exact()
    told = sorted(results.metrics, key=digest.largest_first)
    assert [m.benchmark for m in told] == ["context-switch", "getpid", "boot", "fork"]


def test_a_report_warns_of_its_machine_once() -> None:
    found = simulated(metrics=2)
    page = report_format("html").render(found)
    assert page.count("Read them as a test of the method") == 1
