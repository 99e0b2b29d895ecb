"""What a terminal would obey never reaches it as it came: from a guest's files, or from a study."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kduel.cli import kduel as program
from kduel.cli import print_error
from kduel.cli.output import emit_json
from kduel.cli.terminal import Terminal
from kduel.core.errors import InputError
from kduel.core.text import printable, visible
from kduel.study.contenders import read_contenders

ATTACKS = {
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J\x1b[H",
    "link": "\x1b]8;;http://example.org\x1b\\click\x1b]8;;\x1b\\",
    "8-bit": "\x9b2J\x9d0;owned\x9c",
    "overwrite": "slower\rfaster",
    "erase": "slower\b\b\b\b\b\b",
    "backwards": "\u202eslower\u202c",
    "hidden": "fas\u200bter",
    "bell": "\x07",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_that_is_shown_holds_a_sequence_that_a_terminal_obeys(attack, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    terminal = Terminal()
    terminal.info(f"status 1: {attack}")
    terminal.warn(attack)
    with terminal.task(attack, total=3):
        pass
    print_error(InputError(attack, attack))
    shown = capsys.readouterr().err
    assert shown.replace("\n", "").isprintable()
    assert len(shown.splitlines()) == 5


NAMES = {name: text for name, text in ATTACKS.items() if name != "hidden"} | {"lines": "two\nlines"}
"""A sign of no width hides nothing but itself, and some languages' words have such."""


@pytest.mark.parametrize("attack", NAMES.values(), ids=NAMES)
def test_a_path_that_cannot_be_shown_is_refused_by_every_command(attack: str, tmp_path: Path):
    (run := tmp_path / attack.replace("/", "")).mkdir()
    for words in (["report", run], ["status", run], ["init", f"{run}/study.toml"], ["site", tmp_path, "-o", run]):
        done = CliRunner().invoke(program, [str(word) for word in words])
        assert done.exit_code == 2 and "control characters in its name. Rename it." in " ".join(done.output.split())
        assert done.output.replace("\n", "").isprintable()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_json_holds_what_a_terminal_obeys(attack: str, capsys: pytest.CaptureFixture[str]):
    emit_json({attack: attack})
    shown = capsys.readouterr().out
    assert shown.replace("\n", "").isprintable() and json.loads(shown) == {attack: attack}


@given(st.text())
def test_several_lines_stay_several_and_show_all_else(text):
    shown = printable(text)
    assert all(line.replace("\t", "").isprintable() for line in shown.split("\n"))
    assert shown.count("\n") == text.count("\n")
    assert visible(text, 10**6) == visible(shown, 10**6) or "\n" in text or "\t" in text


@pytest.mark.parametrize(
    "name",
    [
        "a\0b",
        "\x1b[2Jclear",
        "two\nlines",
        "\u202eback",
        "../../x",
        "..",
        ".",
        "/etc/passwd",
        "a//b",
        "a\\..\\b",
        " x",
        "x" * 201,
    ],
)
def test_a_name_that_is_no_plain_name_is_refused_with_its_place(name):
    with pytest.raises(InputError, match=r"study\.toml: contender\[#1\]: name") as caught:
        read_contenders([{"kernel": "debian:6.1", "name": name}, {"kernel": "debian:6.12"}], "study.toml")
    assert printable(str(caught.value)) == str(caught.value) and caught.value.remedy


@pytest.mark.parametrize("key", ["kernel", "cmdline", "scheduler", "modules"])
def test_no_text_of_a_contender_holds_what_cannot_be_shown(key):
    with pytest.raises(InputError, match=f"{key} is"):
        read_contenders([{"kernel": "debian:6.1", key: "a\x1b[2Jb"}], "study.toml")


def test_ordinary_names_are_taken_as_they_are():
    names = ["6.12 with my patch", "old/bzImage", "größer", "a.b", "x..y", "6.1 → 6.12"]
    found = read_contenders([{"kernel": f"debian:6.{n}", "name": name} for n, name in enumerate(names)], "s")
    assert [contender.name for contender in found] == names


def test_a_steps_stderr_reaches_neither_the_terminal_nor_the_log_as_it_came(kduel, write_study, tmp_path: Path):
    study = write_study(blocks="fixed = 1")
    study.write_text(
        study.read_text()
        + r"""
[[benchmark]]
use = "command"
command = '''printf '\033]0;owned\007\033[2Jgone \033]8;;http://example.org\033\\click' >&2; exit 3'''
metrics = [{ name = "x", unit = "1", better = "none", regex = "x=(.+)" }]
"""
    )
    done = kduel("run", study, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "\\x1b]0;owned\\x07" in said
    assert "\x1b" not in said and "\x07" not in said
