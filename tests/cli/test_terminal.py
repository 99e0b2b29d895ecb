"""The terminal through whole runs: what a person sees, frame by frame, in an emulated terminal (pyte)."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click
import pyte
import pytest
from click.testing import CliRunner
from msgspec import structs
from terminal import HEIGHT, Frame, everything, in_tmux, watch

from kduel.cli import print_error
from kduel.cli.doctor import command as doctor
from kduel.cli.live import HostLoad, LiveRun
from kduel.cli.terminal import Terminal, say, wrap_words
from kduel.core.errors import InputError
from kduel.core.experiment import Contender, Settle
from kduel.core.metric_results import MetricResult
from kduel.machines.host.doctor import Check
from kduel.report.text import standard_output
from kduel.run.watch import TrialDone
from kduel.store.documents import TrialRecord
from kduel.study.file import Blocks, StudyHeader
from kduel.study.load import Study
from kduel.study.plan import PlannedTrial

HEADING = "verdict"
UNDECIDED = "Undecided: this run cannot distinguish outside-new from outside-old."
"""The headline of these runs: their values are fixed by the seed and the texts, and no interval excludes 0."""
GO_ON = ("--futility", "continue")
"""Nobody answers questions."""


def metric(name: str, low: float, high: float) -> MetricResult:
    return MetricResult(
        benchmark="b", metric=name, unit="1/s", better="higher", role="primary", baseline="old", contender="new", n=6,
        baseline_mean=100, baseline_sd=1, mean=100.5, sd=1, effect_pct=0.5, ci_low_pct=low, ci_high_pct=high,
        verdict="undecided", blocks_more=400,
    )  # fmt: skip


def headings(frame: Frame) -> int:
    """How often the table stands in a frame."""
    return sum(HEADING in line and "metric" in line for line in frame)


# Beside other tests a frame may be looked at while it is being drawn.
@pytest.mark.alone
def test_a_whole_run_in_80_columns_and_24_rows(environment, tmp_path: Path, write_study):
    study = write_study(machine="noisy = true\nsleep = 0.25", blocks="max = 7")
    frames, colours, status = watch(["run", str(study), "--out", "run", "--seed", "5", *GO_ON], environment, tmp_path)
    assert status == 0, "\n".join(frames[-1])
    tables = [frame for frame in frames if headings(frame)]
    assert colours == {"default"}, "NO_COLOR is set"
    assert len(tables) > 7, "the table is redrawn after each block"
    assert all(headings(frame) == 1 for frame in tables), "redrawn, not repeated"
    running = [frame for frame in tables if any(line.startswith("now: block") for line in frame)]
    assert running
    for frame in running:
        text = "\n".join(frame)
        assert "left: " in text and "host: load" in text and "letters on process" in text
        assert sum(line.startswith("left: ") for line in frame) == 1
    assert any("├" in line and "●" in line for frame in running for line in frame), "intervals are drawn"
    assert any("┼" in line or "┊" in line for frame in running for line in frame), "with ±delta and zero marked"
    blocks = {line.split(" · ")[0] for frame in running for line in frame if line.startswith("now: ")}
    assert {f"now: block {number}" for number in range(2, 8)} <= blocks
    assert any("may need over 7 blocks" in line for frame in running for line in frame)
    last = frames[-1]
    text = "\n".join(last)
    assert headings(last) == 1 and "now: " not in text
    assert UNDECIDED in last
    assert "→ " in text and "kduel report run" in text and "Report: run/report/index.html" in text
    title = next(number for number, line in enumerate(last) if line.startswith("letters · 7 blocks"))
    assert len([line for line in last[title:] if line]) < HEIGHT, "the result fits the screen"


# Beside other tests the run may end before its terminal has been read.
@pytest.mark.alone
def test_a_window_that_changes_its_size_has_one_table(environment, tmp_path: Path, write_study):
    sizes = {4: (60, 20), 10: (100, 30), 16: (80, 24)}
    settled: list[int] = []
    """Tables in each frame after the last change."""

    def change(frame: Frame) -> tuple[int, int] | None:
        settled.append(headings(frame))
        done = next((int(found[1]) for line in frame if (found := re.search(r"(\d+) of 32 trials", line))), 0)
        due = [count for count in sizes if count <= done]
        if not due:
            return None
        settled.clear()
        return sizes.pop(due[0])

    del environment["NO_COLOR"]
    study = write_study(machine="noisy = true\nsleep = 0.4", blocks="fixed = 16")
    frames, colours, status = watch(["run", str(study), "--out", "run"], environment, tmp_path, change=change)
    assert status == 0
    assert colours > {"default"}
    assert not sizes, "all sizes were tried"
    # Directly after a change frames may be half drawn, or drawn for the old size; none may stay.
    assert max(settled[8:]) == 1
    assert headings(frames[-1]) == 1


BEFORE = [f"printed before {number}" for number in range(1, 31)]
LIVE = ("now: ", "left: ", "host: ", "letters on process")
"""How lines begin that are redrawn in place."""


def now(lines: list[str]) -> list[str]:
    """The lines that say what runs: another one for each frame, or nearly."""
    return [line for line in lines if line.startswith("now: block")]


@pytest.mark.slow
def test_what_was_printed_stays_when_the_terminal_is_resized(environment, tmp_path: Path, write_study, need):
    """tmux wraps lines anew, and moves as many rows out of the screen as are added; so there must be others above."""
    study = write_study(machine="noisy = true\nsleep = 0.5", blocks="fixed = 10")
    texts = ", ".join(f'"text-{"of-many-letters" * (number % 2)}{number}"' for number in range(10))
    study.write_text(study.read_text().replace('"hello", "longer"', texts))
    script = (
        'for line; do echo "$line"; done; '
        f"{shlex.quote(sys.executable)} -m kduel run {shlex.quote(str(study))} --out run; echo status $?; sleep 600"
    )
    with in_tmux(need("tmux"), ["sh", "-c", script, "sh", *BEFORE], environment, tmp_path) as terminal:
        for size in ((80, 50), (40, 50), (110, 50), (60, 40), (80, 24)):
            terminal.until(lambda lines: any("text" in line for line in lines))
            terminal.resize(*size)
            before = now(terminal.lines())
            terminal.until(lambda lines, before=before: len(now(lines)) == 1 and now(lines) != before)
        terminal.until(lambda lines: "status 0" in lines)
        lines = terminal.lines(scrollback=True)
    assert [line for line in lines if line.startswith("printed before")] == BEFORE
    assert not [line for line in lines if line.startswith(LIVE)], "redrawn, and gone at the end"


@pytest.mark.slow
def test_a_terminal_that_wraps_nothing_anew_keeps_what_was_printed(environment, tmp_path: Path, write_study):
    study = write_study(machine="noisy = true\nsleep = 0.4", blocks="fixed = 10")
    sizes = {2: (50, 24), 6: (90, 12), 12: (80, 24)}
    shown: list[list[str]] = []
    first: list[str] = []

    def change(frame: Frame) -> tuple[int, int] | None:
        done = next((int(found[1]) for line in frame if (found := re.search(r"(\d+) of 20 trials", line))), 0)
        due = [count for count in sizes if count <= done]
        return sizes.pop(due[0]) if due else None

    def look(screen: pyte.HistoryScreen) -> None:
        shown.append(everything(screen))

    _, _, status = watch(["run", str(study), "--out", "run"], environment, tmp_path, change=change, look=look)
    assert status == 0 and not sizes
    first = [line for line in shown[0] if line][:1]
    assert first and first[0].startswith("outside-old against outside-new")
    for lines in shown:
        # A narrower terminal has cut the line.
        assert sum(line[:40] == first[0][:40] for line in lines) == 1
    assert not [line for line in shown[-1] if line.startswith(LIVE)]


@pytest.mark.slow
def test_bars_leave_nothing_behind_when_the_terminal_is_resized(environment, tmp_path: Path, need):
    program = (
        "import time; from kduel.cli.terminal import Terminal; print('before\\n' * 8)\n"
        "with Terminal().task('downloading a kernel with a name that is rather long', 100) as task:\n"
        "    for _ in range(30): task.advance(); time.sleep(0.2)\n"
        "print('the end'); time.sleep(600)"
    )
    with in_tmux(need("tmux"), [sys.executable, "-c", program], environment, tmp_path) as terminal:
        for columns in (45, 110):
            terminal.until(lambda lines: any("downloading" in line for line in lines))
            terminal.resize(columns, 24)
        terminal.until(lambda lines: "the end" in lines)
        assert [line for line in terminal.lines(scrollback=True) if line] == ["before"] * 8 + ["the end"]


@pytest.mark.slow
def test_a_note_stands_above_the_table(environment, tmp_path: Path, write_study):
    study = write_study(machine='panics = ["new"]\nsleep = 0.2', blocks="fixed = 2")
    text = study.read_text().replace(
        '[[contender]]\nkernel = "outside:new"',
        '[[contender]]\nkernel = "outside:new"\n[[contender]]\nkernel = "outside:b"',
    )
    study.write_text(text)
    frames, _, _ = watch(["run", str(study), "--out", "run", *GO_ON], environment, tmp_path)
    told = [frame for frame in frames if any("could not be measured" in line for line in frame)]
    assert told and any("void: " in line and "panic" in line for frame in frames for line in frame)


@pytest.mark.alone
def test_a_boot_that_was_put_aside_is_shown_as_running_no_longer(environment, tmp_path: Path, write_study):
    study = write_study(machine="faults = {new = 2}\nsleep = 0.4", blocks="fixed = 3\n[host]\nquiet_seconds = 0")
    frames, _, status = watch(["run", str(study), "--out", "run", *GO_ON], environment, tmp_path)
    assert status == 0 and any("made again at the end of its block" in line for frame in frames for line in frame)
    running = [sum(line.startswith("now: ") for line in frame) for frame in frames]
    assert max(running) == 1


@pytest.mark.slow
def test_without_a_terminal_there_are_plain_lines(kduel, tmp_path: Path, write_study):
    study = write_study(blocks="fixed = 2")
    done = kduel("run", study, "--out", tmp_path / "run")
    assert "\x1b" not in done.stderr + done.stdout
    assert "block 1 " in done.stderr and "now: " not in done.stderr
    assert len(done.stdout.splitlines()) <= HEIGHT
    quiet = kduel("run", study, "--out", tmp_path / "quiet", "--quiet")
    assert "block 1 " not in quiet.stderr and UNDECIDED in quiet.stdout.splitlines()


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_a_terminal_that_cannot_draw_is_told_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], term: str
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    with Terminal().task("making the guest root", total=9):
        assert capsys.readouterr().err == "making the guest root\n"
    with Terminal(quiet=True).task("making the guest root"):
        assert capsys.readouterr().err == ""
    Terminal(quiet=True).info("KVM does not work")
    assert capsys.readouterr().err == "", "with -q there is the result, which says so, too"
    Terminal(quiet=True).warn("one contender is left out")
    assert capsys.readouterr().err == "note: one contender is left out\n"


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_word_has_its_colour_unless_the_user_wants_none(monkeypatch: pytest.MonkeyPatch, no_color: str):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    said: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text, **_: said.append(text))
    finding = Check(weight="disturbs", what="noise")
    monkeypatch.setattr("kduel.machines.host.doctor.examine_host", lambda: [finding])
    print_error(InputError("wrong"))
    Terminal().warn("odd")
    CliRunner().invoke(doctor, [], catch_exceptions=False)
    assert len(said) == 3
    for text, colour in zip(said, (31, 33, 33), strict=True):
        assert (f"\x1b[{colour}m" in text) == (not no_color) and "\x1b[1m" in text


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_a_terminal_that_obeys_no_escapes_gets_none(monkeypatch: pytest.MonkeyPatch, term: str):
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    said: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text, **_: said.append(text))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Terminal().warn("odd")
    print_error(InputError("wrong"))
    assert said == ["note: odd", "kduel: wrong"] and not standard_output()[2]
    monkeypatch.setenv("TERM", "xterm")
    assert standard_output()[2]


def test_a_command_that_is_to_be_pasted_is_not_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    sentence = "kduel: interrupted; 2 complete trials are kept. Go on with:"
    command = "kduel resume 'my runs/of this kernel here'"
    say(sentence, command)
    *before, last = capsys.readouterr().err.splitlines()
    assert last == command and " ".join(before) == sentence and max(map(len, before)) <= 40
    monkeypatch.setenv("COLUMNS", "200")
    say(sentence, command)
    assert capsys.readouterr().err == f"{sentence} {command}\n"


def test_lines_of_a_terminal_break_between_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/path/that/is/longer/than/forty/columns/of/text"
    text = click.style("note:", bold=True) + " KVM does not work on this host, where only root may open it: " + path
    lines = wrap_words(text + "\n   1  block 1    short").split("\n")
    assert [click.unstyle(line) for line in lines] == [
        "note: KVM does not work on this host,", "where only root may open it:", path, "   1  block 1    short"
    ]  # fmt: skip


@pytest.mark.parametrize("size", [(80, 24), (140, 50), (50, 12), (30, 6), (20, 1)])
def test_a_frame_fits_every_terminal(size: tuple[int, int], tmp_path: Path):
    study = Study(
        about=StudyHeader(name="s"), contenders=[Contender(name=name, kernel=name) for name in ("old", "new")],
        steps=[], machine="qemu", machine_settings={}, blocks=Blocks(), settle=Settle(), text="",
    )  # fmt: skip
    live = LiveRun(study, study.machine)
    host = HostLoad(load=9.5, waiting_pct=46.0)
    trial = PlannedTrial(id="1", block=3, position=1, contender="new", boot=1, steps=[0])
    live.start_boot([trial], tmp_path)
    record = TrialRecord(id="0", block=2, position=2, contender="old", status="ok")
    metrics = [metric(f"m{number}", -9, 9) for number in range(60)]
    (tmp_path / "console.log").write_text("     1.000 kduel: step 02-fork\n     2.000 [ 1.0] a line of the kernel\n")

    def lines() -> list[str]:
        return ["".join(piece for piece, _ in line) for line in live.frame(*size, host)]

    before = lines()
    live.end_trial(TrialDone(
        done=3, planned=40, record=None, block_done=True, voids=["panic", "panic"], mean_seconds=30, metrics=[], hopeless=[]
    ))  # fmt: skip
    if size == (80, 24):
        assert "3 of at most 40 trials · void: 2 panic" in lines()[1]
        assert lines()[-1].startswith("left: about 19 min"), "a resumed run counts from what it has"
    live.end_trial(TrialDone(
        done=4, planned=40, record=record, block_done=True, voids=[], mean_seconds=30, metrics=metrics, hopeless=[]
    ))  # fmt: skip
    for frame in (before, lines()):
        assert len(frame) < max(2, size[1])
        assert all(len(line) <= max(40, size[0]) for line in frame)
    if size == (80, 24):
        text = "\n".join(lines())
        assert re.search(r"now: block 3 · new · step 2, fork · \d+ of about 30 s", text)
        assert "left: about 18 min; 60 metrics may need over 20 blocks at this spread" in text
        assert "more: " in text and "load 9.5" in text and "waits for a CPU: tasks 46 % of 10 s" in text
        live.study = structs.replace(study, blocks=Blocks(turns=50))
        assert "of about 60 s" in "\n".join(lines()), "guests in turns last as long as their block"
        live.study = study
        live.start_boot([trial, structs.replace(trial, id="2", contender="old")], tmp_path)
        assert "of about 60 s" in "\n".join(lines()), "and a boot as long as its trials"
