"""Hostile values for every option and every key of a study, through the real command line: an answer, never a traceback.

A value that is refused ends with status 2 and says what to do; one that is taken comes as far as the guest's root, which
an empty cache and --offline do not have (status 3). Nothing is booted.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from forked import ForkedKduel

from kduel.cli import COMMANDS, MODES, kduel
from kduel.core.errors import InputError
from kduel.core.experiment import Contender, Settle
from kduel.core.plugins import plugins
from kduel.study.file import Blocks, StudyHeader

TESTS = Path(__file__).parents[1]
TEXTS = ["", "x" * 5000, "../x", "a b", "$(reboot)", "é" * 300, "--", "/", "~nobody/x", "~no-such-user/x"]
NEVER: list[object] = ["nul\0", "esc\x1b[2J", -(10**30), 2**64, float("inf"), float("nan")]
"""What no key can mean."""
NUMBERS: list[object] = [-1, 0, 10**15, 1e308, -0.5]
OTHERS: list[object] = [True, [], {}, [[]], {"a": {"b": []}}, ["x" * 5000]]
SIZES = ["9999999G", "9999999999999M", "-1G", "0", "1T", "4G4G"]
HOSTILE: list[object] = [*TEXTS, *NEVER, *NUMBERS, *OTHERS]


def never(value: object) -> bool:
    return any(value is one for one in NEVER)


class Caller:
    """The command line in an empty directory."""

    def __init__(self, program: ForkedKduel, place: Path) -> None:
        self.program, self.place = program, place

    def __call__(self, *argv: object) -> tuple[int, str]:
        done = self.program(argv, cwd=self.place, environment=self.program.environment)
        status, output = done.returncode, done.stdout + done.stderr
        assert "Traceback" not in output, f"{argv!r:.300}\n{output[-3000:]}"
        # 255 stops `git bisect run`, which takes the others for a verdict.
        known = (0, 1, 3, 255) if "bisect" in argv and "--step" in argv else (0, 1, 2, 3)
        assert status in known, (argv, status, output)
        assert status == 0 or output.strip(), "a failure without a word"
        assert "\x1b" not in output.replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
        return status, output

    def study(self, text: str, *argv: object) -> tuple[int, str]:
        path = self.place / "study.toml"
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        return self("run", path, "--offline", "--out", self.place / "run", *argv)


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    place = tmp_path_factory.mktemp("place")
    site = tmp_path_factory.mktemp("site")
    info = site / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kduel.kernels]\noutside = outside:KERNELS\n")
    (site / "outside.py").write_text((TESTS / "support/outside.py").read_text())
    environment = os.environ | {
        "PYTHONPATH": f"{TESTS.parent / 'src'}:{site}",
        "KDUEL_CACHE": str(place / "cache"),
        "NO_COLOR": "1",
        "HOME": str(place),
    }
    with ForkedKduel(environment, forks=False) as program:
        yield Caller(program, place)


def toml(value: object) -> str:
    """A value as TOML has it: JSON, but for numbers that JSON lacks and tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


TABLES: dict[str, Any] = {"study": StudyHeader, "settle": Settle, "blocks": Blocks, "contender": Contender}


def study(
    table: str = "", key: str = "", value: object = "", *, use: str = "sysbench-cpu", kind: str = "qemu"
) -> str:
    """A study with one value in it."""
    tables: dict[str, dict[str, object]] = {
        "study": {"name": "hostile"},
        "settle": {"mode": "fixed", "seconds": 0},
        "blocks": {"fixed": 1},
        "machine": {"kind": kind},
        "contender": {"kernel": "outside:old", "name": "old"},
        "benchmark": {"use": use},
    }
    if table:
        tables[table][key] = value
        if (table, key) == ("blocks", "max"):
            del tables["blocks"]["fixed"]
    text = ""
    for name, items in tables.items():
        text += f"[[{name}]]\n" if name in ("contender", "benchmark") else f"[{name}]\n"
        text += "".join(f"{item} = {toml(given)}\n" for item, given in items.items())
        if name == "contender":
            text += '[[contender]]\nkernel = "outside:new"\nname = "new"\n'
    return text


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run", "outside:old", "outside:new", "--command", "x\udcff"),
        ("run", "outside:old", "outside:new", "--command", "x", "--regex", "x\udcff(.)"),
        ("run", "outside:old", "outside:new", "--command", "x", "--unit", "\udcff"),
        ("run", "outside:old", "outside:new", "--sweep", "threads=1,\udcff"),
        ("local", "install", "x\udcff"),
    ],
)
def test_bytes_that_are_not_utf_8_are_told(call: Caller, words: tuple[str, ...]) -> None:
    status, said = call(*words)
    assert status == 2 and "not UTF-8" in said, said


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run", "outside:old", "outside:new", "--benchmark", "redis\udcff"),
        ("run", "outside:old", "outside:new", "--benchmark", "redis:test=\udcff"),
        ("run", "outside:old", "outside:\udcff"),
        ("run", "outside:old", "outside:new", "--machine", "qemu\udcff"),
        ("run", "outside:old", "outside:new", "--blocks", "\udcff"),
        ("list", "benchmarks", "redis\udcff"),
        ("report", "run\udcff"),
        ("list", "kernels", "x\udcff"),
        ("k\udcff",),
    ],
)
def test_bytes_that_are_not_utf_8_are_shown_as_bytes(call: Caller, words: tuple[str, ...]) -> None:
    status, said = call(*words)
    assert status == 2 and "\\xff" in said and "udcff" not in said, said


@pytest.mark.slow
def test_the_study_itself_is_a_good_one(call: Caller) -> None:
    status, output = call.study(study())
    assert status == 3 and "not in the cache" in output, output


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_a_study(call: Caller, table: str) -> None:
    for key in TABLES[table].__struct_fields__:
        for value in HOSTILE:
            status, output = call.study(study(table, key, value))
            assert status == 2 or not never(value), (key, value, output)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(plugins("machines")) - {"ssh", "local"}))
def test_every_setting_of_a_machine(call: Caller, kind: str) -> None:
    settings = plugins("machines")[kind].Settings
    for key in ["kind", *settings.__struct_fields__]:
        for value in [*HOSTILE, *(SIZES if key in ("memory", "disk") else [])]:
            status, output = call.study(study("machine", key, value, kind=kind))
            refused = never(value) or value in SIZES or (key == "boot_deadline" and value in (-1, 0, 10**15, 1e308))
            assert status == 2 or not refused, (key, value, output)


@pytest.mark.parametrize("kind", ["ssh", "local"])
def test_every_setting_of_a_real_machine(kind: str) -> None:
    """Read alone: with a good one the next step would be to reach for the machine."""
    chosen = plugins("machines")[kind]
    for key in chosen.Settings.__struct_fields__:
        for value in [*NUMBERS, *OTHERS]:
            with contextlib.suppress(InputError):
                assert key not in ("boot_deadline", "port", "free_mib") or (chosen.read_settings(
                    {"place": "host", key: value} if kind == "ssh" else {key: value}
                ) and value in (0, 10**15) and key != "boot_deadline"), (key, value)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("use", sorted(plugins("benchmarks")))
def test_every_parameter_of_a_benchmark(call: Caller, use: str) -> None:
    for key in plugins("benchmarks")[use].Parameters.__struct_fields__:
        for value in [TEXTS[1], "../x", "a b", *NEVER[:1], *NUMBERS[:3], [], {}, [[]]]:
            status, output = call.study(study("benchmark", key, value, use=use))
            assert status == 2 or not never(value), (key, value, output)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('name = "../../x"', "looks like a path"),
        ('name = "a/../b"', "looks like a path"),
        ('name = " x"', "blanks"),
        ('name = ""', 'name = "" is no name'),
        (r'name = "a\nb"', "cannot be shown"),
        (r'name = "a\u200bb"', "cannot be shown"),
        (r'name = "x"' + "\n" + r'title = "a\nb"', "study.title"),
        (f'name = "{"x" * 201}"', "201 characters"),
        (f'name = "x"\ntitle = "{"x" * 60_000}"', "study.title has 60000 characters"),
        (f'name = "x"\nabout = "{"x" * 60_000}"', "study.about has 60000 characters"),
        (f'name = "x"\ntitle = "{"x" * 900_000}"', "study.title has 900000 characters"),
    ],
)
def test_what_a_study_may_not_be_called(call: Caller, words: str, told: str) -> None:
    status, output = call.study(study().replace('name = "hostile"', words, 1))
    assert status == 2 and "study.toml: study" in output and told in output, output


@pytest.mark.parametrize(("old", "new"), [("caf\u00e9", "cafe\u0301"), ("6.12 \u212b", "6.12 A\u030a")])
def test_names_that_look_the_same_are_refused(call: Caller, old: str, new: str) -> None:
    text = study().replace('name = "old"', f'name = "{old}"').replace('name = "new"', f'name = "{new}"')
    status, output = call.study(text)
    assert status == 2 and "two contenders are called" in output, output


def test_an_empty_name_or_label_is_refused(call: Caller) -> None:
    status, output = call.study(study("contender", "name", ""))
    assert status == 2 and 'contender[#1]: name = "" is no name' in output, output
    status, output = call.study(study("benchmark", "label", ""))
    assert status == 2 and 'benchmark[#1]: label = "" is no label' in output, output


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "-1", "0"])
def test_numbers_that_bisect_cannot_mean(call: Caller, value: str) -> None:
    """Before anything is built; `--step nan 5` used to end with 255 after the build."""
    for words in (["--step", value, "5"], ["--step", "5", value], ["--negligible", value], ["--timeout", value]):
        status, output = call("bisect", "v1", "v2", "--measure", "true", *words)
        wrong = 255 if words[0] == "--step" else 2  # 2 is a verdict to `git bisect run`
        assert status == wrong and "Invalid value for" in output and words[0] in output, output
    status, output = call("query", "--history", "x", "--alpha", value)
    assert status == 2 and "--alpha" in output, output


LABELS = ["../x", "a b", "..", "/", "x" * 101, "é", "-x"]


@pytest.mark.parametrize("label", LABELS)
def test_a_label_names_a_directory(call: Caller, label: str) -> None:
    status, output = call.study(study("benchmark", "label", label))
    assert status == 2 and "label" in output and "letters, digits" in output, output


WHOLE = {
    "nested lists": "a = " + "[" * 20_000 + "]" * 20_000,
    "nested tables": "a = " + "{a = " * 20_000 + "1" + "}" * 20_000,
    "a dotted key": "a." * 20_000 + "a = 1",
    "a dotted table": "[" + "a." * 20_000 + "a]",
    "many digits": "a = " + "9" * 5000,
    "no such day": "a = 2026-02-31",
    "half a table": "[study",
    "not UTF-8": "name = '\udcff'",
    "large": "#" * (2 << 20),
    "empty": "",
    "a key with escapes": '"\\u001b[2J" = 1',
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_study_that_is_none(call: Caller, name: str) -> None:
    status, output = call.study(WHOLE[name])
    assert status == 2 and "study.toml" in output, output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "{place}/fifo.toml"], "no regular file"),
        (["run", "{place}"], "needs two"),
        (["run", "{place}/loop.toml"], "loop.toml"),
        (["run", "tree:{place}/loop", "outside:new"], "loop"),
        (["run", "{place}/loop", "outside:new"], "loop"),
        (["run", "x" * 5000, "outside:new"], "too long"),
        (["run", "y/" + "x" * 5000, "outside:new"], "too long"),
        (["run", "x" * 5000 + ".toml"], "too long"),
        (["run", "outside:old", "outside:new", "--out", "x" * 5000], "too long"),
        (["run", "outside:old", "outside:new", "--out", "{place}/loop/run"], "loop"),
        (["run", "outside:old", "outside:new", "--machine", "qemu:disk=9999999G"], "disk"),
        (["run", "outside:old", "outside:new", "--machine", "qemu:boot_deadline=nan"], "boot_deadline"),
        (["run", "outside:old", "outside:new", "--machine", "qemu:boot_deadline=-1"], "boot_deadline"),
        (["run", "outside:old", "outside:new", "--machine", "qemu:cpus=" + "[" * 20_000], "cpus"),
        (["run", "outside:old", "outside:new", "--machine", "board:{place}/fifo.toml"], "no regular file"),
        (["resume", "x" * 5000], "too long"),
        (["report", "x" * 5000], "too long"),
        (["report", "{place}/loop"], "loop"),
        (["diff", "{place}/loop", "{place}/loop"], "loop"),
        (["sizes", "tree:{place}/loop", "outside:new"], "loop"),
    ],
)
def test_what_cannot_be_a_path_or_a_number(call: Caller, words: list[str], told: str) -> None:
    if not (call.place / "loop").is_symlink():
        os.mkfifo(call.place / "fifo.toml")
        for name in ("loop", "loop.toml"):
            (call.place / name).symlink_to(name)
    offline = ["--offline"] if words[0] == "run" else []
    status, output = call(*[word.format(place=call.place) if "{place}" in word else word for word in words], *offline)
    assert status == 2, output
    assert told in output.lower() and len(output.strip().splitlines()) >= 2, output
    assert len(output) < 2000, "a message that nobody reads"


@pytest.mark.parametrize("memory", ["2048", '"2048"', '"2048M"', '"2G"'])
def test_memory_in_plain_mebibytes(call: Caller, memory: str) -> None:
    status, output = call.study(study().replace('kind = "qemu"', f'kind = "qemu"\nmemory = {memory}'))
    assert status == 3 and "not in the cache" in output, output
    status, output = call("run", "outside:old", "outside:new", "--offline", "--machine", "qemu:memory=2048")
    assert status == 3 and "not in the cache" in output, output


NEEDED: dict[str, list[object]] = {
    "run": ["outside:old", "outside:new", "--offline"],
    "list kernels": ["--offline"],
    "init": ["{place}/made.toml"],
    "list": ["suites"],
    "plan --simulate": ["--runs", 1],
    "explain": ["outside:old", "outside:new", "--benchmark", "pipe", "--offline"],
    "sizes --smallest-ram": ["outside:old", "--offline"],
    "sizes": ["outside:old", "outside:new", "--offline"],
    "diff": ["{run}", "{run}"],
    "import": ["{place}/values.csv", "--out", "{place}/imported"],
}
"""By command: what makes a call that comes as far as its options' values; for others the directory of a run."""
NOT_CALLED = {"bisect", "schedulers", "local", "doctor"}
"""They work on a git tree, build for minutes, or change this host."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*COMMANDS, *MODES} - NOT_CALLED))
def test_every_option_of_a_command(call: Caller, name: str) -> None:
    run = call.place / "a-run"
    if not run.exists():
        values = call.place / "values.csv"
        rows = [f"{arm},{trial},b,m,s,lower,{1 + trial / 10}" for arm in ("x", "y") for trial in range(4)]
        values.write_text("\n".join(["contender,trial,benchmark,metric,unit,better,value", *rows]) + "\n")
        status, output = call("import", values, "--out", run)
        assert status == 0, output
    chosen = kduel.get_command(click.Context(kduel), name)
    assert chosen is not None
    needed = [str(word).format(place=call.place, run=run) for word in NEEDED.get(name, ["{run}"])]
    for option in chosen.params:
        if isinstance(option, click.Option) and not option.is_flag and not option.count:
            for value in [
                "",
                "-1",
                "nan",
                "inf",
                "9" * 400,
                "x" * 5000,
                "../x y",
                "\x1b[2J",
                "[[",
                f"{call.place}/no/where",
            ]:
                call(*name.split(), *needed, option.opts[0], value)
