"""The guest script is run here as it runs in a guest: by a POSIX shell, on this very Linux."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.benchmarks import Service, benchmark
from kduel.benchmarks.support.service import server
from kduel.core.experiment import Settle
from kduel.guest.environment import read_environment
from kduel.guest.script import ScriptStep, compose, directory_of

NOW = Settle(mode="fixed", seconds=0)


@pytest.fixture
def run(tmp_path):
    def run(*parts: ScriptStep, setup: str = "", settle: Settle = NOW, shell: str = "sh", fakes: str = "") -> Path:
        script = tmp_path / "guest.sh"
        script.write_text(compose(parts, settle=settle, setup=setup))
        (tmp_path / "scratch/lost+found").mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "KDUEL_SCRATCH": str(tmp_path / "scratch")}
        if fakes:
            environment["PATH"] = f"{fakes}:{environment['PATH']}"
        run.done = subprocess.run(
            [*shell.split(), script, tmp_path / "out"], env=environment, capture_output=True, text=True, timeout=600
        )
        return tmp_path / "out"

    return run


def test_a_step_leaves_its_output_its_files_and_how_it_ended(run):
    out = run(
        ScriptStep(label="hello", script="echo out; echo err >&2; echo more >$KDUEL_STEP/histogram", timeout=300),
        ScriptStep(label="bad", script="echo before\nfalse\necho after", timeout=300),
    )
    step = out / "01-hello"
    assert {p.name: p.read_text() for p in step.iterdir() if p.name != "exit.json"} == {
        "stdout": "out\n",
        "stderr": "err\n",
        "histogram": "more\n",
    }
    ended = json.loads((step / "exit.json").read_text())
    assert ended["status"] == 0 and 0 <= ended["seconds"] < 300 and ended["started"] > 0
    assert (out / "02-bad/stdout").read_text() == "before\n"
    assert json.loads((out / "02-bad/exit.json").read_text())["status"] == 1
    assert run.done.returncode == 0


@pytest.mark.slow
def test_a_step_that_takes_too_long_is_ended_with_all_its_children(run, tmp_path):
    out = run(ScriptStep(label="slow", script=f"(sleep 3000; touch {tmp_path}/survived) & sleep 3000", timeout=1))
    ended = json.loads((out / "01-slow/exit.json").read_text())
    assert ended["status"] == 124
    assert 1 <= ended["seconds"] < 600
    assert not subprocess.run(["pgrep", "-f", f"{tmp_path}/survived"], capture_output=True).stdout


def test_a_step_can_read_no_input_and_not_the_script(run):
    rest = "# a comment that makes this more than a shell reads at once\n" * 500
    out = run(
        ScriptStep(label="cat", script=f"cat\n{rest}echo done", timeout=300),
        ScriptStep(label="next", script="echo x", timeout=300),
    )
    assert (out / "01-cat/stdout").read_text() == "done\n"
    assert (out / "02-next/stdout").read_text() == "x\n"


def test_each_step_begins_in_an_empty_directory_with_a_clean_scratch_disk(run):
    messy = (
        "touch here .hidden; mkdir $KDUEL_SCRATCH/d; touch $KDUEL_SCRATCH/d/x $KDUEL_SCRATCH/.h '$KDUEL_SCRATCH/a b'"
    )
    clean = "ls -A; echo; ls -A $KDUEL_SCRATCH"
    out = run(
        ScriptStep(label="messy", script=messy.replace("'", '"'), timeout=300),
        ScriptStep(label="clean", script=clean, timeout=300),
    )
    assert json.loads((out / "01-messy/exit.json").read_text())["status"] == 0
    assert (out / "02-clean/stdout").read_text() == "\nlost+found\n"


@pytest.mark.slow
@given(text=st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=25, deadline=None)
def test_a_script_reaches_its_step_untouched(text, tmp_path_factory):
    directory = tmp_path_factory.mktemp("script")
    quoted = "'" + text.replace("'", "'\\''") + "'"
    part = ScriptStep(label="echo", script=f"printf '%s' {quoted}", timeout=300)
    (directory / "guest.sh").write_text(compose([part], settle=NOW), "utf-8")
    subprocess.run(["sh", directory / "guest.sh", directory / "out"], check=True, timeout=600)
    assert (directory / "out/01-echo/stdout").read_bytes() == text.encode()


def test_a_step_that_draws_has_the_seed_of_its_block_and_no_other_has_it():
    chosen = benchmark("wakeup")
    for conditions, drawn in ((3, True), (0, False)):
        script = chosen.script(chosen.read_parameters({"conditions": conditions}))
        text = compose([ScriptStep(label="a", script=script, timeout=1)], settle=NOW, seed=7)
        assert ("export KDUEL_SEED=7\n" in text) == ('--seed "${KDUEL_SEED:-1}"' in script) == drawn


def test_a_script_may_hold_the_mark_that_ends_it():
    script = "echo one"
    first = compose([ScriptStep(label="a", script=script, timeout=1)], settle=NOW)
    mark = next(line.split("'")[1] for line in first.splitlines() if line.startswith("step 01-a"))
    tricky = f"echo {mark}\n{mark}"
    text = compose([ScriptStep(label="a", script=tricky, timeout=1)], settle=NOW)
    line = next(line for line in text.splitlines() if line.startswith("step 01-a"))
    assert line.split("'")[1] not in tricky


def test_a_gate_that_fails_keeps_its_step_from_running_and_no_other(run):
    out = run(
        ScriptStep(
            label="refused", script="echo ran", timeout=300, before="echo closed; exit 7", after="echo looked"
        ),
        ScriptStep(label="next", script="echo ran", timeout=300),
    )
    assert (out / "01-refused/stdout").read_text() == ""
    assert "ended with 7" in (out / "01-refused/stderr").read_text()
    assert json.loads((out / "01-refused/exit.json").read_text()) == {
        "status": 125,
        "seconds": None,
        "started": None,
    }
    assert (out / "gates/01-refused.before").read_text() == "closed\n"
    assert (out / "gates/01-refused.before.status").read_text() == "7\n"
    assert (out / "gates/01-refused.after").read_text() == "looked\n"
    assert (out / "02-next/stdout").read_text() == "ran\n"


def test_a_gate_after_a_step_is_kept_and_stops_nothing(run):
    out = run(
        ScriptStep(label="a", script="echo a", timeout=300, after="echo changed >&2; false"),
        ScriptStep(label="b", script="echo b", timeout=300, before="true"),
    )
    assert (out / "gates/01-a.after").read_text() == "changed\n"
    assert (out / "gates/01-a.after.status").read_text() == "1\n"
    assert (out / "02-b/stdout").read_text() == "b\n"


def test_setup_that_fails_ends_the_script_and_says_why(run):
    out = run(ScriptStep(label="a", script="echo a", timeout=300), setup="echo no such knob >&2\nexit 4\n")
    assert run.done.returncode == 3
    assert "no such knob" in run.done.stderr
    assert (out / "setup/stderr").read_text() == "no such knob\n"
    assert not (out / "01-a").exists()


@pytest.mark.slow
def test_settling_takes_the_time_that_was_asked(run):
    out = run(settle=Settle(mode="fixed", seconds=1.5))
    told = json.loads((out / "settle.json").read_text())
    assert told["mode"] == "fixed" and told["idle"] is None and 1.5 <= told["seconds"] < 100


@pytest.mark.slow
def test_settling_until_idle_is_bounded_and_says_whether_it_was(run):
    out = run(settle=Settle(mode="idle", seconds=3))
    told = json.loads((out / "settle.json").read_text())
    assert told["mode"] == "idle" and isinstance(told["idle"], bool) and told["seconds"] < 300


def test_a_machine_with_services_is_looked_at_for_longer():
    looks = [compose((), settle=Settle(mode="idle", seconds=3), recorded=recorded) for recorded in (False, True)]
    assert [text.count("settle idle 300 0.5\n") for text in looks] == [1, 0]
    assert [text.count("settle idle 300 1\n") for text in looks] == [0, 1]


def test_the_environment_is_that_of_this_machine(run):
    out = run(ScriptStep(label="a", script="true", timeout=300))
    found = read_environment(out / "environment")
    assert found["release"] == os.uname().release
    assert found["architecture"] == os.uname().machine
    assert found["cmdline"] == Path("/proc/cmdline").read_text().strip()
    assert found["cpus"] == os.cpu_count()
    assert found["clocksource"] == found["clocksource_end"]
    assert found["clocksource"] in found["clocksources"]
    assert found["sysctl"]["vm.swappiness"] == Path("/proc/sys/vm/swappiness").read_text().strip()
    assert found["sysctl"]["kernel.printk"] == " ".join(Path("/proc/sys/kernel/printk").read_text().split())
    assert not any(key.startswith("kernel.random.") for key in found["sysctl"])
    if shutil.which("dpkg-query"):
        assert "libc6" in found["packages"]


def test_nothing_of_the_script_is_left_behind(run, tmp_path):
    run(ScriptStep(label="a", script="touch x", timeout=300))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["guest.sh", "out", "scratch"]


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
def test_any_posix_shell_runs_it(run, shell, need):
    need(shell.split()[0])
    out = run(ScriptStep(label="a", script="echo $((1 + 1))", timeout=300, before="true"), setup="true", shell=shell)
    assert run.done.stderr == ""
    assert (out / "01-a/stdout").read_text() == "2\n"
    assert json.loads((out / "01-a/exit.json").read_text())["status"] == 0


@pytest.fixture
def fake(tmp_path_factory):
    """Puts a program of that name before all others, and gives the directory that it is in."""
    place = tmp_path_factory.mktemp("fakes")

    def fake(name: str, script: str) -> str:
        (place / name).write_text(f"#!/bin/sh\n{script}\n")
        (place / name).chmod(0o755)
        return str(place)

    return fake


@pytest.mark.skipif(Path("/bin/sh").resolve().name == "busybox", reason="this system has no other shell")
def test_steps_setup_and_gates_get_the_systems_own_shell_and_programs_whatever_runs_the_script(run, need):
    need("busybox")
    ask = "readlink /proc/$$/exe; command -v mkdir"
    out = run(ScriptStep(label="a", script=ask, timeout=300, before=ask), setup=ask, shell="busybox sh")
    expected = f"{Path('/bin/sh').resolve()}\n{shutil.which('mkdir')}\n"
    assert (out / "01-a/stdout").read_text() == expected
    assert (out / "gates/01-a.before").read_text() == expected
    assert (out / "setup/stdout").read_text() == expected
    timeout = "tr '\\0' ' ' </proc/$PPID/cmdline; readlink /proc/$PPID/exe"
    out = run(ScriptStep(label="b", script=timeout, timeout=300), shell="busybox sh")
    assert (out / "01-b/stdout").read_text().split()[-1].endswith("/timeout")


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        ("[    0.000000] Linux version 9.9", True),
        ("[    0.000000] Booting Linux on physical CPU 0x0", True),
        ("[   12.345678] in the middle of a log that was cut", False),
        ("Linux version 9.9, without times", False),
    ],
)
def test_a_kernel_log_that_is_cut_or_has_no_times_is_taken_again_by_the_systems_own_dmesg(run, fake, log, kept):
    fakes = fake("dmesg", f"echo '{log}'")
    out = run(ScriptStep(label="a", script="true", timeout=300), fakes=fakes)
    assert (log in (out / "environment/dmesg").read_text()) == kept


def test_directories_are_made_before_settling_and_none_later(run, fake, tmp_path):
    calls = tmp_path / "calls"
    fakes = fake(
        "mkdir", f'[ ! -e "{tmp_path}/out/settle.json" ] || echo "$@" >>{calls}\nexec {shutil.which("mkdir")} "$@"'
    )
    parts = [ScriptStep(label=name, script="pwd", timeout=300) for name in ("a", "b")]
    out = run(*parts, fakes=fakes)
    assert not calls.exists(), calls.read_text()
    assert (out / "01-a/stdout").read_text() != (out / "02-b/stdout").read_text()


def test_a_step_that_removes_what_the_others_need_spoils_itself_only(run):
    wipe = 'cd /; rm -rf "${KDUEL_STEP%/*}"/02-b "$OLDPWD/../02-b"'
    out = run(ScriptStep(label="a", script=wipe, timeout=300), ScriptStep(label="b", script="pwd", timeout=300))
    assert json.loads((out / "02-b/exit.json").read_text())["status"] == 0


@pytest.mark.slow
def test_shellcheck_finds_nothing(tmp_path, need):
    shellcheck = need("shellcheck")
    guest = Path(__file__).parents[2] / "src/kduel/guest"
    service = Service(name="store", start="true", stop="true")
    part = ScriptStep(label="a", script="true", timeout=1, before="true", after="true", service=service)
    for recorded, undo in ((False, None), (True, None), (False, "true")):
        text = compose([part], settle=NOW, setup="true", undo=undo, modules=("zram",), recorded=recorded)
        (tmp_path / "guest.sh").write_text(text)
        # What records replaces `tell`, whose first lines are then called by nobody.
        known = ["--exclude=SC2317"] if recorded else []
        subprocess.run([shellcheck, "-s", "sh", *known, tmp_path / "guest.sh"], check=True)
    subprocess.run([shellcheck, "-s", "dash", guest / "init.sh", guest / "run.sh"], check=True)


def test_a_label_that_is_no_name_is_a_mistake():
    with pytest.raises(ValueError, match="a b"):
        compose([ScriptStep(label="a b", script="true", timeout=1)], settle=NOW)


def test_directories_count_from_one():
    assert directory_of(0, ScriptStep(label="x", script="", timeout=1)) == "01-x"


def served(run, start: str, *steps: str, stop: str = "", scratch: bool = False) -> Path:
    service = Service(name="store", start=start, stop=stop, scratch=scratch)
    return run(
        *(
            ScriptStep(label=f"s{number}", script=script, timeout=300, service=service)
            for number, script in enumerate(steps, 1)
        )
    )


def status_of(out: Path, step: str) -> int:
    return json.loads((out / step / "exit.json").read_text())["status"]


SLEEPER = "sleep 300 & echo $! >server.pid; echo data >data"


@pytest.mark.parametrize("scratch", [False, True])
def test_steps_share_a_service_and_its_data_which_end_with_the_last_of_them(run, tmp_path, scratch):
    out = served(
        run,
        SLEEPER,
        "cat $KDUEL_SERVICE/server.pid; echo more >>$KDUEL_SERVICE/data; touch $KDUEL_SCRATCH/x",
        "cat $KDUEL_SERVICE/server.pid $KDUEL_SERVICE/data; ls $KDUEL_SCRATCH",
        stop=f"touch {tmp_path}/stopped",
        scratch=scratch,
    )
    pid = (out / "01-s1/stdout").read_text()
    left = "lost+found\n" + "services\n" * scratch
    assert (out / "02-s2/stdout").read_text() == f"{pid}data\nmore\n{left}"
    state = Path(f"/proc/{pid.strip()}/stat")
    assert not state.exists() or ") Z " in state.read_text()
    assert (tmp_path / "stopped").exists() and status_of(out, "services/store") == 0
    assert not list((tmp_path / "scratch").glob("services/*"))


def test_a_step_whose_service_does_not_start_is_not_run_and_says_why(run, tmp_path):
    out = served(run, f"{SLEEPER}\necho no port >&2; exit 3", f"touch {tmp_path}/ran")
    assert status_of(out, "services/store") == 3 and status_of(out, "01-s1") == 125
    assert "no port" in (out / "01-s1/stderr").read_text()
    assert not (tmp_path / "ran").exists()


def test_a_step_in_which_its_server_ends_does_not_count(run):
    out = served(run, SLEEPER, "kill $(cat $KDUEL_SERVICE/server.pid)\nsleep 0.2", "echo ran")
    assert [status_of(out, step) for step in ("01-s1", "02-s2")] == [125, 125]
    assert "ran" not in (out / "02-s2/stdout").read_text()


def test_a_step_between_those_of_a_service_has_none(run):
    service = Service(name="store", start=SLEEPER)
    out = run(
        ScriptStep(label="a", script="echo $KDUEL_SERVICE", timeout=300, service=service),
        ScriptStep(label="b", script="echo ${KDUEL_SERVICE-none}", timeout=20),
        ScriptStep(label="c", script="cat $KDUEL_SERVICE/data", timeout=300, service=service),
    )
    assert (out / "02-b/stdout").read_text() == "none\n"
    assert (out / "03-c/stdout").read_text() == "data\n"


def test_server_waits_until_it_is_ready_and_fails_with_its_last_words(run):
    slow = server("store", "sh -c 'sleep 0.3; touch ready; exec sleep 300'", ready="test -e ready", after="echo up\n")
    dead = server("dead", "sh -c 'echo bad option; exit 1'", ready="false")
    out = run(
        ScriptStep(label="a", script="true", timeout=300, service=slow),
        ScriptStep(label="b", script="true", timeout=300, service=dead),
    )
    assert status_of(out, "01-a") == 0 and (out / "services/store/stdout").read_text() == "up\n"
    assert status_of(out, "02-b") == 125 and "bad option" in (out / "02-b/stderr").read_text()
