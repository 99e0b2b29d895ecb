"""Workers on other machines, with a stand-in for ssh: each machine has a home directory, and a cable that can be cut."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from test_fleet_runs import is_whole, records
from waiting import wait_for

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.fleets import fleet_kind
from kduel.fleets.workers.process import LOG, last_words
from kduel.fleets.workers.ssh import TRIAL
from kduel.run.fleet.session import read_fleet


@pytest.fixture
def hosts(tmp_path: Path, environment: dict[str, str]) -> Path:
    """A fleet's file of three machines; beside it `ssh` and what it knows of them."""
    program = tmp_path / "ssh"
    shutil.copyfile(Path(__file__).parent / "cut_ssh.py", program)
    program.chmod(0o755)
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    path = tmp_path / "hosts.toml"
    tables = [f'[[host]]\nname = "h{number}"\nkduel = "{sys.executable} -P -m kduel"\n' for number in (1, 2, 3)]
    path.write_text("poll = 0.1\n" + "".join(tables))
    return path


@pytest.mark.slow
def test_a_run_on_hosts_of_which_one_is_cut_off_for_a_while(kduel, start, write_study, hosts: Path, tmp_path: Path):
    run, cable = tmp_path / "run", tmp_path / "h2.cut"
    words = ("run", write_study("sleep = 0.3", "fixed = 9"), "--fleet", hosts, "--out", run, "--seed", 7)
    with start(*words) as controller:
        wait_for(lambda: any(one["member"] == "h2" for one in records(run)) or controller.poll() is not None, "trial")
        cable.touch()
        wait_for(lambda: len(records(run)) >= 6 or controller.poll() is not None, "trials of the others")
        cable.unlink()
        _, said = controller.communicate(timeout=600)
    assert controller.returncode == 0, said
    assert "h2: " in said and "It is tried again" in said and "is lost" not in said
    is_whole(run, 9)
    assert "nothing changed afterwards" in kduel("verify", run).stdout
    assert not list((tmp_path / "home").glob("h?/.cache/kduel/fleet/*/*")), (
        "the hosts keep nothing of a run that ended"
    )


@pytest.mark.slow
def test_a_host_that_cannot_be_reached_is_named_before_the_first_trial(
    kduel, write_study, hosts: Path, tmp_path: Path
):
    (tmp_path / "h3.cut").touch()
    done = kduel("run", write_study(), "--fleet", hosts, "--out", tmp_path / "run")
    assert done.returncode == 3 and not (tmp_path / "run").exists()
    assert "1 of 3 machine(s) cannot be used" in done.stderr and "h3 cannot be reached" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[host]]\nname = "a/b"\n', "'a/b' cannot be the name of a machine"),
        ('[[host]]\nname = "a"\n[[host]]\nname = "a"\n', "names a twice"),
        (
            '[[host]]\nnome = "a"\n',
            r"bad.toml: fleet hosts: host\[#1\]: .*`nome`. Did you mean name\?\nThe keys of host: name, place",
        ),
        ('patience = "long"\n[[host]]\nname = "a"\n', r"bad.toml: fleet hosts: patience: .*\nIts settings: ahead"),
        ('[[host]]\nname = "a"\nplace = "u@R"\n[[host]]\nname = "b"\nplace = "r"\n', "a and b are the same machine"),
        ("host = []\n", "names no machine"),
        ("[[host]\n", "is not TOML"),
        ('kind = "nosuch"\n', "there is no fleet 'nosuch'"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        kind, table = read_fleet(str(path))
        chosen = fleet_kind(kind)
        chosen.open(chosen.read_settings(table), machine="qemu", run="run", known=(), progress=Progress())


@pytest.mark.slow
def test_a_host_whose_disk_is_full_is_lost_and_the_others_go_on(kduel, write_study, hosts: Path, tmp_path: Path):
    full = tmp_path / "full"
    # Its files cannot grow: to a program that is as when the disk is full.
    full.write_text(
        f'#!/bin/sh\ncase "$*" in *--describe*) ;; *) ulimit -f 0 ;; esac\nexec {sys.executable} -P -m kduel "$@"\n'
    )
    full.chmod(0o755)
    hosts.write_text(hosts.read_text().rpartition("kduel =")[0] + f'kduel = "{full}"\n')
    run = tmp_path / "run"
    done = kduel("run", write_study(blocks="fixed = 9"), "--fleet", hosts, "--out", run, "--seed", 7)
    assert done.returncode == 0, done.stderr
    assert "h3 is lost: 3 failures in a row" in done.stderr and "File too large" in done.stderr
    assert {one["member"] for one in records(run)} == {"h1", "h2"} and len(records(run)) == 12
    assert "h3 is lost" in kduel("report", run, "--format", "json").stdout
    assert "File too large" in kduel("status", run).stdout


def test_only_names_of_trials_are_fetched():
    assert TRIAL.fullmatch("0007-b04-debian-6.12")
    assert not any(TRIAL.fullmatch(name) for name in ("../x", "0007-b04-a/b", "0007-b04-$(x)", "-b04", ""))


def test_hosts_at_different_ports_are_different_machines():
    ports = [{"name": name, "place": "root@lab", "port": port} for name, port in (("a", 2201), ("b", 2202))]
    chosen = fleet_kind("hosts")
    opened = chosen.open(
        chosen.read_settings({"host": ports}), machine="qemu", run="run", known=(), progress=Progress()
    )
    assert [member.name for member in opened.members] == ["a", "b"]


def test_the_last_words_of_a_shell_that_finds_no_kduel_are_told_whole(tmp_path: Path):
    (tmp_path / LOG).write_text("kduel: earlier\n\nbash: line 1: /opt/kduel: No such file or directory\n")
    assert "/opt/kduel: No such file" in last_words(tmp_path)
    (tmp_path / LOG).write_text("something\nkduel: no QEMU\nInstall it.\n")
    assert last_words(tmp_path) == "no QEMU\nInstall it."
