"""What `kduel run` refuses before it fetches or boots anything, its --dry-run refuses in the same words."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from kduel.cli.run import command
from kduel.core.errors import KduelError

RUNNING = os.uname().release
DEBIAN = '[[contender]]\nkernel = "debian:6.1"\n[[contender]]\nkernel = "debian:6.12"\n'
LOADS = f'[[contender]]\nkernel = "installed:{RUNNING}"\npolicy = ["other", "batch"]\n[blocks]\nunit = "load"\n'
KLOAD = '[[benchmark]]\nuse = "kload"\n'
BANDS = '[machine.conditions]\nset = ["governor"]\n'
FEATURES = '[machine.features]\nother = "x"\n'
LOCAL = pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")

CASES = [
    # Turns that a machine never takes.
    pytest.param("debian:6.1 debian:6.12", "--machine icount --suite exact-quick --turns 50", "", "icount cannot take turns: its counts do not depend", id="turns-icount"),
    pytest.param("debian:6.1 debian:6.12", "--machine ssh:place=a --benchmark kload --turns 50", "", "ssh cannot take turns: it carries out one boot after the other", id="turns-ssh"),
    pytest.param("debian:6.1-arm64 debian:6.12-arm64", "--machine board:own.toml --benchmark boot-timeline --turns 50", "", "board cannot take turns: it carries out one boot after", id="turns-board"),
    pytest.param("debian:6.1 debian:6.12", "--benchmark iperf3:path=link --machine qemu:cpus=1 --turns 50", "", "qemu cannot take turns: its guests have peers", id="turns-peer"),
    pytest.param("debian:6.1 debian:6.12", "--benchmark kload --turns 50 --fleet local:workers=1", "", "a fleet takes no turns", id="turns-fleet"),
    pytest.param("study.toml", "--machine local --turns 50", LOADS + KLOAD, "take whole slices in turn", marks=LOCAL, id="turns-load"),
    pytest.param("study.toml", "--machine local --turns 0", LOADS + '[[benchmark]]\nuse = "redis"\n', "has a server, which would work in the others' turns", marks=LOCAL, id="turns-server"),
    # What a kind of machine does not record, or set.
    pytest.param("study.toml", "--machine local", LOADS + KLOAD + "[host]\nmax_wait = 5\n", "local does not record the load of its host", marks=LOCAL, id="host-local"),
    pytest.param("study.toml", "--machine ssh:place=a", DEBIAN + KLOAD + "[host]\ncovariate = true\n", "ssh does not record the load of its host", id="host-ssh"),
    pytest.param("study.toml", "", DEBIAN + KLOAD + f'[machine]\nkind = "ssh"\nplace = "a"\n{BANDS}', "governor is to be set, and no value is given", id="bands-ssh"),
    pytest.param("study.toml", "", LOADS + KLOAD + f'[machine]\nkind = "local"\n{BANDS}', "governor is to be set, and no value is given", marks=LOCAL, id="bands-local"),
    # What no kernel, and no benchmark, can have.
    pytest.param("debian:6.1 debian:6.12,cmdline=preempt=some", "--benchmark kload", "", "preempt=some is no preemption mode", id="preempt"),
    pytest.param("debian:6.1 debian:6.12,policy=ext", "--benchmark kload", "", "the policy ext needs a scheduler", id="ext"),
    pytest.param("study.toml", "", DEBIAN + 'policy = "deadline:1ms,10ms,10ms"\n[[benchmark]]\nuse = "hackbench"\n', "hackbench cannot run under a deadline policy", id="deadline-fork"),
    pytest.param("study.toml", "", DEBIAN + 'policy = "deadline:1ms,100ms,100ms"\n' + KLOAD + "processes = 1000\n", "reserve 10 CPUs", id="deadline-admission"),
    # Contenders that a kind of machine cannot be.
    pytest.param("debian:6.1 debian:6.12", "--machine ssh:place=a,boot=bootctl --benchmark kload", "", "with bootctl kernels must be installed there", id="bootctl"),
    pytest.param("debian:6.1 debian:6.12", "--machine slurm-node:node=a --benchmark kload", "", "Slurm boots kernels that are installed on its nodes", id="slurm-kernel"),
    pytest.param("installed:6.1 installed:6.2,cmdline=quiet", "--machine slurm-node:node=a --benchmark kload", "", "KDuel writes no boot entry on a node of Slurm", id="slurm-cmdline"),
    pytest.param("study.toml", "", DEBIAN.replace("debian", "installed") + KLOAD + f'[machine]\nkind = "slurm-node"\nnode = "a"\n{FEATURES}', "names 'other', and there is no such contender", id="slurm-features"),
    pytest.param("debian-source:6.1 debian-source:6.12,cmdline=quiet", "--benchmark kernel-size", "", "the machine build boots nothing", id="build-cmdline"),
    pytest.param("debian-source:6.1 debian-source:6.12", "--machine build:directory=/nope --benchmark kernel-size", "", "there is no directory /nope", id="build-directory"),
    pytest.param("debian-source:6.1 debian-source:6.12", "--machine build --benchmark kload", "", "some need a running kernel", id="build-running"),
    pytest.param("debian:6.1-arm64 debian:6.12-arm64", "--machine board:own.toml --benchmark redis", "", "a board has nothing of a distribution", id="board-packages"),
]  # fmt: skip


@pytest.mark.parametrize(("kernels", "words", "study", "said"), CASES)
def test_a_refusal_is_the_same_in_a_dry_run_and_comes_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernels: str, words: str, study: str, said: str
) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    described = (files("kduel.machines.boards") / "arm64-virt.toml").read_text("utf-8")
    (tmp_path / "own.toml").write_text(described.replace("qemu-system-aarch64", "true"))
    if study:
        (tmp_path / "study.toml").write_text('[study]\nname = "alike"\n' + study)
    refused_alike(tmp_path, [*kernels.split(), *words.split()], said)


@pytest.mark.parametrize(
    ("lost", "kernels", "said"),
    [
        ("qemu-system-x86_64", "debian:6.1 debian:6.12", "qemu-system-x86_64 cannot be run"),
        ("gcc", "debian-source:6.1 debian-source:6.12", "gcc is not installed, which building a kernel"),
        ("make", "debian-source:6.1 debian-source:6.12", "make is not installed, which building a kernel"),
    ],
)
def test_a_program_that_this_host_lacks_is_told_alike(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lost: str, kernels: str, said: str
) -> None:
    (tmp_path / "bin").mkdir()
    for name in {"sh", "make", "gcc", "qemu-system-x86_64"} - {lost}:
        if found := shutil.which(name):
            (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    refused_alike(tmp_path, [*kernels.split(), "--benchmark", "kload", "--offline"], said)


def refused_alike(place: Path, given: list[str], said: str) -> None:
    """A dry run refuses in words that contain `said`, and the run in the same ones, before anything is in the cache."""
    dry = CliRunner().invoke(command, [*given, "--dry-run"]).exception
    assert isinstance(dry, KduelError) and said in dry.message, dry
    real = CliRunner().invoke(command, given).exception
    assert isinstance(real, KduelError) and (real.message, real.remedy) == (dry.message, dry.remedy)
    kept = place / "cache"
    assert not [path.name for path in kept.glob("*") if path.name != "locks"] and not (place / "kduel-runs").exists()
