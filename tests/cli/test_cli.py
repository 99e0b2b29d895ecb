"""The command line as a new user meets it: help that teaches, errors that say what to do, exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner

from kduel.cli import COMMANDS, FORMER, MODES, MODULES
from kduel.cli import kduel as group
from kduel.cli.output import emit
from kduel.cli.unknown import ELSEWHERE


@pytest.mark.parametrize("words", ["run a b", "diff a b", "import a --out b", "plan a", "plan --simulate"])
def test_a_smallest_effect_may_have_its_sign(words: str) -> None:
    """`--delta 1%` was no valid float range."""
    name, arguments = (words, []) if words in MODES else (words.split()[0], words.split()[1:])
    chosen = group.get_command(click.Context(group), name)
    assert chosen is not None
    assert chosen.make_context(name, [*arguments, "--delta", "1.5%"]).params["delta"] == 1.5


@pytest.mark.slow
def test_help_names_every_command_and_every_command_has_help(kduel):
    top = kduel("--help")
    assert top.returncode == 0
    for name in COMMANDS:
        assert f"  {name} " in top.stdout
    for name in [*COMMANDS, *MODES]:
        told = kduel(*name.split(), "--help")
        assert told.returncode == 0, told.stderr
        assert told.stdout.startswith(f"Usage: kduel {name} ") and len(told.stdout.splitlines()) > 5
    for mode in MODES:
        command, word = mode.split()
        assert word in kduel(command, "--help").stdout


def test_help_imports_nothing_heavy(environment):
    program = "import sys; from kduel.cli import main\ntry: main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numpy", "scipy", "rich", "jinja2", "vl_convert", "asyncio", "qemu", "msgspec", "importlib.metadata"}
    assert not heavy & set(modules)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*COMMANDS, *MODES.values()])
def test_a_commands_help_imports_nothing_heavy(environment, name: str):
    module = MODULES.get(name, name)
    program = f"import sys, kduel.cli.{module}; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "scipy", "rich", "jinja2", "vl_convert"} & set(modules)


@pytest.mark.slow
def test_a_terminal_that_is_not_utf_8_gets_every_sign_and_every_minus(environment, tmp_path):
    lines = [f"{arm},{n},b,m,µs,lower,{v + n}" for arm, v in (("öld", 100), ("new", 50)) for n in range(12)]
    (tmp_path / "theirs.csv").write_text(
        "\n".join(["contender,trial,benchmark,metric,unit,better,value", *lines, ""]), "utf-8"
    )

    def told(encoding: str, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "kduel", *words],
            env=environment | {"PYTHONIOENCODING": encoding},
            cwd=tmp_path,
            capture_output=True,
        )
        assert b"Traceback" not in done.stderr
        return (done.stdout + done.stderr).decode(encoding)

    utf, latin = (told(encoding, "report", "theirs.csv") for encoding in ("utf-8", "iso-8859-1"))
    assert "▲ faster" in utf and "−" in utf
    assert "^ faster" in latin and "öld" in latin and "±" in latin and "?" not in latin
    assert latin.count("-47.") == utf.count("-47.") + utf.count("−47.")


@pytest.mark.slow
def test_a_name_that_is_not_utf_8_is_told(kduel):
    for words in (("run", "debian:6.1", "/tmp/\udcff.none", "--offline"), ("run", "\udcff.toml")):
        done = kduel(*words)
        assert done.returncode == 2 and "is not UTF-8" in done.stderr, done.stderr
    done = kduel("report", "/tmp/\udcff")
    assert done.returncode == 2 and "there is no /tmp/" in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["fight"], 2, "No such command"),
        (["run"], 2, "Missing argument"),
        (["run", "debian:6.1"], 2, "a comparison needs two"),
        (["run", "a", "b", "--blocks", "3", "--max-blocks", "4"], 2, "exclude each other"),
        (["run", "a", "b", "--suite", "slow"], 2, "there is no suite 'slow'"),
        (["run", "nonsense:1", "nonsense:2"], 2, "'nonsense:1' is not a kernel"),
        (["run", "--aa", "2", "a", "b"], 2, "--aa takes one kernel"),
        (["run", "outside:a", "outside:b", "--machine", "toaster"], 2, "there is no machine 'toaster'"),
        (["run", "outside:a", "outside:b", "--machine", "qemu:colour=red"], 2, "colour"),
        (["run", "none.toml"], 2, "cannot read the study"),
        (["report", "nowhere"], 2, "there is no nowhere"),
        (["resume", "nowhere"], 2, "there is no nowhere"),
        (["plan", "nowhere"], 2, "there is no nowhere"),
        (["run", "t1.toml", "debian:6.1"], 2, "t1.toml is a study file, which names its contenders itself"),
        (["run", "debian:6.1", "t1.toml"], 2, "t1.toml is a study file, which names its contenders itself"),
        (["run", "a", "b", "--suite", "quick", "--layouts", "2"], 2, "--layouts"),
        (["run", "a", "b", "--suite", "quick", "--single"], 2, "--single"),
        (["run", "a", "b", "--machine", "qemu", "--layouts", "2"], 2, "--layouts"),
        (["list", "colours"], 2, "colours"),
        (["diff", ""], 2, "It is empty, as an unset variable is"),
        (["run", "", "b"], 2, "It is empty"),
        (["run", "a", "b", "--suite", ""], 2, "It is empty"),
        (["run", "a", "b", "--machine", ""], 2, "It is empty"),
        (["run", "a", "b", "--fleet", ""], 2, "It is empty"),
        (["run", "a", "b", "--command", "x", "--regex", ""], 2, "It is empty"),
        (["run", "a", "b", "--command", "x", "--unit", ""], 2, "It is empty"),
        (["run", "a", "b", "--notify", ""], 2, "It is empty"),
        (["bundle", "a", "b", "--machine", ""], 2, "It is empty"),
        (["run", "outside:a", "outside:b,sysctl=a.b=1,sysctl=a.b=2"], 2, "sysctl=a.b=2 is no setting"),
        (["run", "a", "b", "--delta", "1,5"], 2, "'1,5' is not a valid number."),
        (["run", "a", "b", "--delta", "0%"], 2, "0.0 is not in the range 0<x<=100"),
        (["plan", "--simulate", "--delta", "-1"], 2, "-1.0 is not in the range 0<x<=100"),
        (["plan", "a", "--delta", "101"], 2, "101.0 is not in the range 0<x<=100"),
        (["diff", "a", "b", "--delta", "nan"], 2, "'nan' is not a finite number"),
        (
            ["run", "outside:a", "outside:b,cmdlin=quiet"],
            2,
            "has no key `cmdlin`\nDid you mean cmdline? Give name=",
        ),
        (["run", "outside:a", "outside:b,cmdline=x,sysctls=a.b=1"], 2, "Did you mean sysctl?"),
    ],
)
def test_wrong_input_ends_with_a_paragraph_and_its_status(kduel, arguments, status, said):
    done = kduel(*arguments)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_run_given_in_place_of_contenders_is_explain_interruption(kduel, tmp_path):
    (tmp_path / "place" / "timed").mkdir()
    (tmp_path / "place" / "timed" / "lock.json").write_text("{}")
    done = kduel("run", "timed")
    assert done.returncode == 2 and "timed is a run" in done.stderr and "`kduel resume timed`" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "debian:6.1", "debian:6.12"], "`kduel run A B` compares two kernels, `kduel diff OLD NEW`"),
        (["show", "run"], "`kduel report RUN` shows a run."),
        (["icount"], "--machine icount"),
        (["bisekt"], "Did you mean `kduel bisect`?"),
        (["debian:6.1", "debian:6.12"], "Did you mean `kduel run debian:6.1 debian:6.12`?"),
        (["study.toml"], "Did you mean `kduel run study.toml`?"),
        (["frobnicate"], "`kduel --help` lists the commands."),
    ],
)
def test_an_unknown_command_is_answered_with_what_to_type(kduel, words, said):
    done = kduel(*words)
    assert done.returncode == 2 and f"No such command '{words[0]}'" in done.stderr
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(("old", "new"), FORMER.items())
def test_a_former_name_still_works_and_says_what_it_is_now(kduel, old, new):
    """Nothing of it stands on standard output, which a script reads."""
    words = {"kernels": ["--help"], "completion": ["bash"]}.get(old, ["no/where"])
    before, now = kduel(old, *words), kduel(*new.split(), *words)
    notice = f"kduel: `{old}` is `kduel {new}` now; the next release knows only that.\n"
    assert before.stderr.removeprefix(notice) == now.stderr and before.stderr.startswith(notice)
    assert (before.stdout, before.returncode) == (now.stdout, now.returncode)
    assert old not in COMMANDS


def test_a_word_makes_another_command_wherever_it_stands_and_no_argument_does(kduel):
    for words in (["--boot", "no/where"], ["no/where", "--boot"]):
        assert "no/where" in kduel("report", *words).stderr
        assert kduel("report", *words, "--format", "json").returncode == 2, "that is an option of reports"
    assert "--boot" in kduel("report", "--", "--boot").stderr
    assert kduel("list", "sources").stdout.startswith("arch  arch:")


def test_what_other_tools_call_a_command_is_no_command_here():
    assert not set(ELSEWHERE) & set(COMMANDS)
    assert {word for text in ELSEWHERE.values() for word in re.findall(r"kduel ([a-z][a-z-]+)", text)} <= {*COMMANDS}


def test_init_writes_a_study_once(kduel, tmp_path):
    assert kduel("init", "mine.toml").returncode == 0
    again = kduel("init", "mine.toml")
    assert again.returncode == 2
    assert "exists already" in again.stderr
    schema = json.loads(kduel("init", "--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_the_shells_own(kduel, shell):
    assert "_KDUEL_COMPLETE" in kduel("--completion", shell).stdout


def test_doctor_tells_and_ends_with_zero_where_nothing_prevents(kduel):
    done = kduel("doctor", "--format", "json")
    findings = json.loads(done.stdout)
    assert done.returncode == (3 if any(f["weight"] == "prevents" for f in findings) else 0)


def test_doctor_ends_with_three_where_qemu_is_missing(kduel, environment):
    environment["PATH"] = "/nowhere"
    done = kduel("doctor")
    # /usr/sbin and /sbin are looked at besides; QEMU lives in neither.
    assert done.returncode == 3
    assert "apt-get install qemu-system-x86" in done.stdout


def test_doctor_ends_with_three_where_the_cache_cannot_be_a_directory(kduel, environment, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        environment["KDUEL_CACHE"] = str(place)
        done = kduel("doctor")
        assert done.returncode == 3
        assert f"the cache ({place}) cannot be written" in " ".join(done.stdout.split())


def test_an_interruption_is_known_though_the_making_of_a_class_hides_it():
    from kduel.cli.interrupt import is_interruption

    class Pressed:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(BaseException) as caught:
        type("Made", (), {"part": Pressed()})
    assert is_interruption(caught.value)
    assert not is_interruption(RuntimeError("broken"))
    try:
        raise RuntimeError("broken") from ValueError("a value")
    except RuntimeError as error:
        assert not is_interruption(error)


def test_what_is_written_to_a_pipe_or_through_a_link_does_not_replace_it(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDWR)
    emit("new", tmp_path / "link")
    emit("new", tmp_path / "pipe")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "old").read_text() == "new"
    assert (tmp_path / "pipe").is_fifo() and os.read(reader, 10) == b"new"
    os.close(reader)


def ended_by(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> tuple[object, str]:
    """Exit status and what was said, of a command that ends with this error."""
    import click

    from kduel import cli

    @click.command()
    def made() -> None:
        raise error

    said: list[str] = []
    monkeypatch.setattr(cli, "kduel", made)
    monkeypatch.setattr(cli, "replace_stdout", lambda: None)
    monkeypatch.setattr("kduel.cli.terminal.say", lambda text, command="": said.append(f"{text} {command}".rstrip()))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main([])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return ended.value.code, "\n".join(said)


def test_a_command_that_is_interrupted_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a run's directory exists, `kduel run` ended with status 130 and not one word."""
    from kduel.cli.interrupt import ReportedInterrupt

    assert ended_by(monkeypatch, KeyboardInterrupt()) == (130, "kduel: interrupted")
    assert ended_by(monkeypatch, ReportedInterrupt()) == (130, "")
    broken = RuntimeError("made by an import")
    broken.__cause__ = KeyboardInterrupt()
    assert ended_by(monkeypatch, broken) == (130, "kduel: interrupted")


def test_an_interruption_amid_the_making_of_a_class_ends_with_the_status_of_one(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Python ended by SIGINT at its exit where KeyboardInterrupt had left code given to `exec` as text."""
    (tmp_path / "interrupted.py").write_text(
        "import os, signal, sys\n"
        "from kduel.cli.interrupt import Interrupt\n"
        "signal.signal(signal.SIGTERM, Interrupt())\n"
        "try:\n"
        "    exec('os.kill(os.getpid(), signal.SIGTERM); [None for _ in range(1000)]')\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    ended = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, env=environment, check=False)
    assert ended.returncode == 130


def test_an_interruption_that_falls_into_a_finalizer_is_not_lost(tmp_path: Path, environment: dict[str, str]) -> None:
    """Python prints "Exception ignored in" and goes on: a SIGTERM in 600 had no effect."""
    (tmp_path / "finalizer.py").write_text(
        "import os, signal, time\n"
        "from kduel import cli\n"
        "class Ending:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        [None for _ in range(1000)]\n"
        "cli.kduel.main = lambda *_, **__: (Ending() and None, time.sleep(20))\n"
        "cli.main([])\n"
    )
    words = [sys.executable, "-m", "finalizer"]
    ended = subprocess.run(words, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "kduel: interrupted\n")


def test_signals_are_one_interruption_until_a_second_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from kduel.cli import interrupt

    seconds = 100.0
    monkeypatch.setattr(interrupt.time, "monotonic", lambda: seconds)
    handle, raised = interrupt.Interrupt(), []
    for seconds in (100.0, 100.9, 101.8, 102.7, 103.8):
        try:
            handle()
        except KeyboardInterrupt:
            raised.append(seconds)
    assert raised == [100.0, 103.8]


def test_what_was_said_of_an_interruption_is_not_said_again(
    tmp_path: Path, unpack: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from kduel.cli.execute import explain_interruption
    from kduel.cli.interrupt import ReportedInterrupt

    with pytest.raises(ReportedInterrupt), explain_interruption(tmp_path):
        raise KeyboardInterrupt
    assert "nothing is measured yet" in capsys.readouterr().err
    with pytest.raises(ReportedInterrupt), explain_interruption(unpack("interrupted")):
        raise KeyboardInterrupt
    assert "kduel resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "outside:old", "outside:new", "--out", ""),
        ("import", "a.csv", "--out", ""),
        ("merge", "a", "b", "--out", ""),
        ("report", ""),
    ],
    ids=lambda words: words[0],
)
def test_an_empty_path_is_not_the_current_directory(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(group, words)
    assert done.exit_code == 2 and "The path is empty" in done.stderr
