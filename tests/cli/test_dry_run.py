"""`kduel run --dry-run`: nothing is fetched, booted or written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from made_kernels import bzimage

from kduel.cli.run import command
from kduel.core.errors import HostError, InputError, KduelError
from kduel.schedulers.build import key_of
from kduel.schedulers.catalogue import KNOWN

STUDY = """[study]
name = "short"
[settle]
mode = "fixed"
seconds = 3
[blocks]
fixed = 7
[[contender]]
kernel = "debian:6.1"
[[contender]]
kernel = "debian:6.12"
[[benchmark]]
use = "sysbench-cpu"
time = 5
primary = ["events-per-second"]
"""


def test_a_dry_run_tells_trials_and_time_and_begins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "study.toml").write_text(STUDY)
    done = CliRunner().invoke(command, ["study.toml", "--dry-run"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "debian-6.12: debian:6.12" in done.output and "events-per-second" in done.output
    # 5 s of sysbench and 3 of settling, in 2 trials a block.
    assert "7 blocks: at most 14 trials, each 8.0 s or longer; all together 112 s or longer." in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_a_dry_run_refuses_what_a_run_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace("time = 5", "tme = 5"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["study.toml", "--dry-run"])
    assert done.exit_code != 0 and "tme" in str(done.exception)


def plan(monkeypatch: pytest.MonkeyPatch, place: Path, *words: str, kernels: str = "debian:6.1 debian:6.12") -> str:
    """What a dry run tells, or why it refuses."""
    monkeypatch.chdir(place)
    done = CliRunner().invoke(command, [*kernels.split(), "--dry-run", *words])
    return f"{done.output}{done.exception or ''}{getattr(done.exception, 'remedy', '')}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nginx:requests=5", "requests: this must be a whole number >= 100"),
        ("fio:size=99G", "has disk = '8G' in all"),
    ],
)
def test_what_cannot_give_a_value_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, said: str
) -> None:
    assert said in plan(monkeypatch, tmp_path, "--benchmark", words)


def test_of_exact_cpus_it_says_what_their_seconds_take(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It said "67 s or longer" of a run that took eleven minutes."""
    told = r"all together (\d+) s or longer by the guests' clock, which take some (\d+) min here: each boot is made twice\."
    found = re.search(told, plan(monkeypatch, tmp_path, "--suite", "exact-scheduling"))
    assert found and int(found[1]) > 10 and int(found[2]) == round(int(found[1]) / 6)
    assert "guests' clock" not in plan(monkeypatch, tmp_path, "--suite", "exact-quick")


def test_contenders_of_one_kernel_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = plan(monkeypatch, tmp_path, "--sweep", "policy=other,rr:50", "-b", "kload", kernels="debian:6.12")
    assert ": debian:6.12, rr:50\n" in said and ": debian:6.12, other\n" in said


def test_a_place_where_no_run_can_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(InputError, match="is no directory"):
        CliRunner().invoke(command, ["a:1", "a:2", "--dry-run", "--out", str(place)], catch_exceptions=False)


def test_the_machines_settings_are_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "is not a size" in plan(monkeypatch, tmp_path, "--machine", "qemu:memory=lots")
    assert "Give 1024G at most" in plan(monkeypatch, tmp_path, "--machine", "qemu:disk=1025G")
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    for size in ("40000G", f"{there + 1}M"):
        told = plan(monkeypatch, tmp_path, "--machine", f"qemu:memory={size}")
        assert (
            f"memory = '{size}' is more than this host has, {there} MiB" in told
            and "--machine qemu:memory=4G" in told
        )
    assert "Nothing was fetched" in plan(monkeypatch, tmp_path, "--machine", f"qemu:memory={there}M")
    assert "and this host has" in plan(
        monkeypatch, tmp_path, "--benchmark", "iperf3:path=link", "--machine", "qemu:cpus=200"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--benchmark", "redis", "--blocks", "1"], "1 block is too few for a statistical verdict: with 1 primary comparison it takes 4"),
        (["--benchmark", "redis", "--blocks", "3"], "3 blocks are too few"),
        (["--benchmark", "redis", "--blocks", "4"], ""),
        (["--benchmark", "redis:primary=*", "--blocks", "4"], "with 3 primary comparisons it takes 5 complete"),
        # Effects decide, not pairs of cells: kernels, clients, their interaction, and the effect at both numbers of clients.
        (["--benchmark", "redis", "--blocks", "4", "--sweep", "clients=1,2"], "with 5 primary comparisons it takes 5 complete"),
        (["--benchmark", "pipe:mode=exact", "--blocks", "2"], ""),
    ],
)  # fmt: skip
def test_too_few_blocks_for_any_verdict_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], said: str
) -> None:
    told = plan(monkeypatch, tmp_path, *words)
    assert "Nothing was fetched or booted" in told
    assert said in told if said else "too few" not in told


def test_each_contenders_memory_and_the_priority_are_held_against_the_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    words = ["debian:6.12-cloud", "--sweep", "machine.memory=512M,900G", "--benchmark", "kload"]
    for more in (["--dry-run"], []):
        refused = CliRunner().invoke(command, [*words, *more]).exception
        assert isinstance(refused, InputError) and "'900G' is more than this host has" in str(refused)
    monkeypatch.setenv("KDUEL_PRIORITY", "low")
    words = ["debian:6.12-cloud", "debian:6.1-cloud", "--benchmark", "kload"]
    for machine in ("qemu", "icount:cpus=2,scheduling=true"):
        for more in (["--dry-run"], []):
            refused = CliRunner().invoke(command, [*words, "--machine", machine, *more]).exception
            assert isinstance(refused, InputError) and "KDUEL_PRIORITY is 'low'" in str(refused)


@pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")
@pytest.mark.parametrize(
    ("policies", "processes", "told"), [("other,fifo:50", 1000, True), ("other,fifo:50", 10, False), ("other,batch", 1000, False)]
)  # fmt: skip
def test_many_tasks_of_a_realtime_policy_on_this_machine_are_announced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policies: str, processes: int, told: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [f"installed:{os.uname().release}", "--sweep", f"policy={policies}", "--machine", "local"]
    done = CliRunner().invoke(command, [*words, "--benchmark", f"kload:processes={processes}", "--dry-run"])
    said = " ".join(done.output.split())
    assert "Nothing was fetched or booted" in said
    assert (f"up to {processes:,} tasks at once under a real-time policy (kload-" in said) == told
    assert ("the machine local may answer nobody" in said) == told


def test_what_counts_is_planned_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A count is decided after one block, or depends on conditions for ever: more blocks are for who asks for them."""
    words = ("--machine", "icount", "--benchmark", "pipe:mode=exact")
    assert "1 block: at most 2 trials" in plan(monkeypatch, tmp_path, *words)
    assert "1 block: at most 2 trials" in plan(monkeypatch, tmp_path, "--machine", "icount", "--suite", "quick")
    more = "1 block of everything, and up to 2 more of what it leaves undecided: at most 6 trials"
    assert more in plan(monkeypatch, tmp_path, *words, "--max-blocks", "3")


def test_a_fleet_is_read_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = plan(monkeypatch, tmp_path, "--machine", "icount", "--fleet", "local")
    assert "of a trial on the machine icount of the fleet local;" in told
    assert "or longer, divided among its machines." in told
    assert "no fleet 'nosuch'" in plan(monkeypatch, tmp_path, "--fleet", "nosuch")


@pytest.mark.parametrize(
    ("machine", "fleet", "said"),
    [
        # The machine's place is that of each host.
        ("ssh", '[[host]]\nname = "a"\n[[host]]\nname = "b"', "on the machine ssh of the fleet hosts;"),
        ("ssh", '[[host]]\nname = "a"\nmachine = {boot = "lilo"}', "fleet.toml: a: machine ssh: boot"),
        ("qemu", '[[host]]\nname = "a"\n[[host]]\nname = "a"', "names a twice"),
        ("qemu", '[[host]]\nname = "a"\nmachine = {memory = "lots"}', "is not a size"),
        ("qemu", 'kind = "local"', "2 workers on one host disturb one another"),
        ("ssh:place=a", 'kind = "slurm"', "slurm does not drive the machine ssh"),
        ("qemu", 'kind = "labgrid"', "labgrid drives boards"),
    ],
)
def test_the_members_of_a_fleet_are_checked_as_a_run_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str, fleet: str, said: str
) -> None:
    (tmp_path / "fleet.toml").write_text(fleet)
    assert said in plan(monkeypatch, tmp_path, "--machine", machine, "--fleet", "fleet.toml")


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("debian:6.12,nope=1", "names no version of Debian's kernel"),
        ("nosuch:6", "is not a kernel that KDuel knows how to get"),
        ("debian-source:6.1,foo=3", "knows no foo="),
        ("fedora:forty", "names no kernel of Fedora"),
        ("/nonexistent/vmlinuz", "there is no file /nonexistent/vmlinuz"),
        ("./text", "text"),
        ("tree:nope", "there is no directory"),
        ("tree:.", "is no kernel tree"),
        ("nope.deb", "there is no file nope.deb"),
        ("nope.rpm", "there is no file nope.rpm"),
        ("git:nope#v6", "there is no directory nope"),
        ("git:.#v6", "has no commit 'v6'"),
        ("source:nope.tar.xz", "there is no file nope.tar.xz"),
        ("source:.", "is a directory, not a source archive"),
        ("source:text", "text does not unpack: tar: This does not look like a tar archive"),
        ("text.deb", "text.deb is not a complete Debian package: it does not begin as one"),
        ("text.rpm", "text.rpm is not a complete RPM package: it does not begin as one"),
        ("git:repository", "no source tree of the Linux kernel"),
        ("installed:", "'installed:' names no release"),
        ("installed:6.1", "the machine qemu has no kernels of its own"),
    ],
)
def test_a_dry_run_refuses_a_kernel_that_no_source_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    for name in ("text", "text.deb", "text.rpm"):
        (tmp_path / name).write_text("no kernel")
    if kernel == "git:repository":
        repository(tmp_path / "repository", "Makefile")
    for words in (["--dry-run"], []):
        done = CliRunner().invoke(command, ["debian:6.1", kernel, *words])
        assert isinstance(done.exception, InputError) and said in str(done.exception)


def repository(place: Path, *files: str) -> Path:
    """A git repository whose only commit holds these files, each with the version of a kernel."""
    for name in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n")
    own = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "kernel"]):
        subprocess.run([*own, *words], check=True)
    return place


@pytest.mark.parametrize(
    ("files", "below"),
    [
        (["Makefile", "Kconfig"], ""),
        (["linux/Makefile", "linux/Kconfig", ".hidden"], ""),
        (["a/Makefile", "a/Kconfig", "b/c"], "a"),
    ],
)
def test_commits_with_a_kernels_tree_are_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: list[str], below: str
) -> None:
    place = repository(tmp_path / "repository", *files)
    subprocess.run(["git", "clone", "-q", "--bare", place, tmp_path / "bare"], check=True)
    for kernel in (f"git:repository/{below}", *([] if below else ["git:bare"])):
        assert "Nothing was fetched or booted" in plan(monkeypatch, tmp_path, kernel, kernels="debian:6.1")


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ("./image ./other", "modules=/nope holds no modules: there is no such directory"),
        ("debian:6.1 debian:6.12", "debian:6.1 brings its own modules"),
    ],
)
def test_modules_that_cannot_be_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernels: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    for name in ("image", "other"):
        (tmp_path / name).write_bytes(bzimage("6.1.0"))
    for words in (["--dry-run"], []):
        given = [*kernels.split(), "--sweep", "modules=/nope,/nope2", "--benchmark", "redis", *words]
        refused = CliRunner().invoke(command, given).exception
        assert isinstance(refused, InputError) and said in str(refused)


@pytest.mark.parametrize("out", ["full", "file", "file/x", "link", "link/x", "o" * 300])
def test_a_place_that_a_run_refuses_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, out: str) -> None:
    (tmp_path / "full").mkdir()
    for name in ("file", "full/file"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("nowhere")
    assert "Nothing was fetched" not in plan(monkeypatch, tmp_path, "--out", out)


@pytest.fixture
def finished(kduel: Callable[..., Any], write_study: Callable[..., Path], tmp_path: Path) -> tuple[Path, Path]:
    """A study, and its finished run."""
    study, run = write_study(), tmp_path / "finished"
    assert kduel("run", study, "--out", run, "--seed", 4).returncode == 0
    return study, run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "is complete, so nothing is left"),
        (["--seed", "5"], "planned with --seed 4"),
        (["--blocks", "7"], "another"),
        (["--fleet", "local"], "holds a run on one machine"),
    ],
)
def test_a_run_that_is_there_is_compared(
    kduel: Callable[..., Any], finished: tuple[Path, Path], words: list[str], said: str
) -> None:
    study, run = finished
    before = sorted(path.name for path in run.iterdir())
    done = kduel("run", study, "--out", run, "--dry-run", *words)
    assert said in done.stdout + done.stderr
    assert sorted(path.name for path in run.iterdir()) == before


@pytest.mark.slow
def test_how_far_a_run_is_is_told(kduel: Callable[..., Any], finished: tuple[Path, Path], tmp_path: Path) -> None:
    study, run = finished
    (run / "results.json").unlink()
    words = ["run", study, "--out", run, "--dry-run"]
    assert "6 complete trials are kept" in kduel(*words).stdout
    # As git copies a run of which nothing is measured.
    shutil.rmtree(run / "trials")
    assert "no trial is complete yet" in kduel(*words).stdout
    assert kduel(*words[:-1]).returncode == 0
    assert "is complete, so nothing is left" in kduel(*words).stdout


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["trials", "plan.jsonl"])
def test_a_damaged_run_is_refused_as_by_the_run(
    kduel: Callable[..., Any], finished: tuple[Path, Path], lost: str
) -> None:
    study, run = finished
    if lost == "trials":
        shutil.rmtree(run / "trials")
    else:
        with (run / "plan.jsonl").open("a") as plan_file:
            plan_file.write("{}\n")
    before = sorted(path.name for path in run.iterdir())
    words = ["run", study, "--out", run]
    dry, real = kduel(*words, "--dry-run"), kduel(*words)
    assert dry.returncode == real.returncode == 2
    assert dry.stderr == real.stderr and lost in dry.stderr
    assert sorted(path.name for path in run.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ([], True),
        (["--exact-first"], True),
        (["--no-exact-first"], False),
        (["--machine", "qemu"], False),
        (["--benchmark", "redis"], False),
        (["--command", "true"], False),
        (["--fleet", "local", "--machine", "qemu"], False),
    ],
)
def test_what_is_counted_first_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], there: bool
) -> None:
    assert ("8 steps of the suite exact-quick" in plan(monkeypatch, tmp_path, *words)) is there
    about = next(option.help for option in command.params if option.name == "exact_first")  # type: ignore[attr-defined]
    assert there or words[0].startswith("--no") or words[0] in about, "the help says so"


def test_a_machine_that_builds_takes_no_built_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["--benchmark", "kernel-size", "--blocks", "1"]
    assert "the machine build builds kernels" in plan(monkeypatch, tmp_path, *words)
    told = plan(monkeypatch, tmp_path, *words, kernels="debian-source:6.1 debian-source:6.12")
    assert "Nothing was fetched or booted" in told and "too few" not in told


@pytest.mark.parametrize("word", ["--offline", "--exact-first"])
def test_what_a_fleet_cannot_have_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, word: str) -> None:
    assert "Leave" in plan(monkeypatch, tmp_path, "--machine", "qemu", "--fleet", "slurm", word)


@pytest.mark.parametrize("cache", ["file", "file/x", "link", "link/x", "/proc/nope"])
@pytest.mark.parametrize("variable", ["KDUEL_CACHE", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_is_refused_as_by_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, cache: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    monkeypatch.delenv("KDUEL_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / cache))
    before = sorted(tmp_path.iterdir())
    told = plan(monkeypatch, tmp_path)
    assert "is not usable" in told and "name another place in KDUEL_CACHE" in told
    assert sorted(tmp_path.iterdir()) == before
    refused = CliRunner().invoke(command, ["debian:6.1", "debian:6.12"]).exception
    assert isinstance(refused, HostError) and refused.message in told


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("scheduler=scx_nope", "the scheduler scx_nope is neither built nor in PATH"),
        ("scheduler=scx_lavd -x", "`kduel schedulers build scx_lavd` builds it"),
        ("scheduler=none", "For the kernel's own scheduler, leave scheduler out"),
        ("scheduler=./none", "neither built nor in PATH"),
        ("scheduler=scx_plain 'x", "is no command: No closing quotation"),
        ("sysctl=../x=1", "is neither a sysctl nor a file below /sys"),
        ("sysctl=kernel.sched_base_slice_ns=500000", "Give debug.sched.base_slice_ns, which 6.6 and later have"),
        ("sysctl=debug.sched.latency_ns=1", "6.12 has no debug.sched.latency_ns (5.13 to 6.5 have it)"),
    ],
)
def test_a_setting_that_no_kernel_can_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, said: str
) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    kernels = ["debian:6.1", f"debian:6.12,{setting}"]
    assert said in plan(monkeypatch, tmp_path, *kernels[1:], kernels=kernels[0])
    refused = CliRunner().invoke(command, kernels).exception
    assert isinstance(refused, InputError) and said in f"{refused.message} {refused.remedy}"
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name != "locks"]


def test_a_scheduler_that_is_there_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "scx_own").touch()
    for scheduler in ("scx_plain", "scx_lavd", "./scx_own -x"):
        (tmp_path / "cache/schedulers" / key_of(KNOWN["scx_lavd"])).mkdir(parents=True, exist_ok=True)
        told = plan(monkeypatch, tmp_path, f"debian:6.12,scheduler={scheduler}", kernels="debian:6.1")
        assert "Nothing was fetched or booted" in told


@pytest.mark.parametrize(
    ("words", "kernels", "said"),
    [
        ("qemu:accel=kvm", "debian:6.1 debian:6.12", "KVM does not work on this host: this host has no /dev/kvm"),
        ("qemu", "debian:6.1 debian:6.12-arm64", "debian:6.12-arm64 is a kernel for aarch64; the machine qemu boots"),
        ("slurm-node", "installed:6.1 installed:6.2", "the machine slurm-node needs the name of a node"),
        ("ssh:place=", "debian:6.1 debian:6.12", "place: this must"),
        (
            "board:own.toml",
            "debian:6.1-arm64 ./image",
            "the board own.toml is aarch64, ./image is a kernel for x86_64",
        ),
    ],
)
def test_a_machine_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, kernels: str, said: str
) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("kduel.guest.probe.KVM", tmp_path / "kvm")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "image").write_bytes(bzimage("6.1.0"))
    described = (files("kduel.machines.boards") / "arm64-virt.toml").read_text("utf-8")
    (tmp_path / "own.toml").write_text(described.replace("qemu-system-aarch64", "true"))
    for more in (["--dry-run"], []):
        given = [*kernels.split(), "--machine", words, "--benchmark", "boot-timeline", *more]
        refused = CliRunner().invoke(command, given).exception
        assert isinstance(refused, KduelError) and said in str(refused)


@pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")
@pytest.mark.parametrize(
    ("kernels", "words", "said"),
    [
        (
            "debian:6.1 debian:6.12",
            [],
            "the machine local runs kernels that are installed on it; 'debian:6.1' is none",
        ),
        ("installed:6.1.0-1 installed:6.1.0-2", [], "has the kernel 6.1.0-1; {release} runs, and nothing reboots"),
        ("installed:{release}", ["--sweep", "cmdline=quiet,debug"], "adds words to the command line"),
        ("study.toml", [], "does not reboot, and the study's unit is the boot"),
    ],
)
def test_what_this_very_machine_cannot_be_is_refused_alike(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernels: str, words: list[str], said: str
) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    release = os.uname().release
    (tmp_path / "study.toml").write_text(STUDY)
    more = words if kernels == "study.toml" else [*words, "--benchmark", "kload"]
    for dry in (["--dry-run"], []):
        given = [*kernels.format(release=release).split(), "--machine", "local", *more, *dry]
        refused = CliRunner().invoke(command, given).exception
        assert isinstance(refused, InputError) and said.format(release=release) in str(refused)


@pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")
def test_policies_swept_on_this_very_machine_are_loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["--sweep", "policy=other,batch", "--machine", "local", "--benchmark", "kload"]
    told = plan(monkeypatch, tmp_path, *words, kernels=f"installed:{os.uname().release}")
    assert "Nothing was fetched" in told and "whether it takes the settings of the contenders" in told


@pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")
def test_a_program_that_this_very_machine_lacks_is_told_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = tmp_path / "bin"
    there.mkdir()
    for name in ("sh", "cat", "cut", "date", "uname", "hackbench"):
        (there / name).symlink_to(shutil.which(name) or "/bin/true")
    monkeypatch.setenv("PATH", str(there))
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    kernel = f"installed:{os.uname().release}"

    def refused(*words: str) -> str:
        given = [kernel, "--sweep", "policy=other,batch", "--machine", "local", *words, "--dry-run"]
        error = CliRunner().invoke(command, given).exception
        return f"{error} {getattr(error, 'remedy', '')}"

    said = refused("--benchmark", "sysbench-cpu", "--benchmark", "perf-sched-pipe")
    assert "lacks sysbench, which sysbench-cpu-1t runs" in said and "apt install linux-perf sysbench" in said
    # One that is there, and loads only where they run.
    assert "lacks" not in refused("--benchmark", "hackbench")
    assert "lacks cyclictest" in refused("--benchmark", "cyclictest")
    (there / "cyclictest").symlink_to("/bin/true")
    assert "lacks" not in refused("--benchmark", "cyclictest")
    assert "lacks sysbench, which cyclictest-sysbench-cpu" in refused("--benchmark", "cyclictest:load=sysbench-cpu")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--benchmark redis", "the guest root (bookworm, 17 packages) is not in the cache"),
        ("--benchmark kload --machine qemu:suite=trixie", "the guest root (trixie, 15 packages) is not in the cache"),
        ("--machine icount --benchmark request:application=git-status", "is not in the cache"),
        ("--machine icount --suite exact-quick", ""),
    ],
)
def test_without_the_network_a_root_that_is_not_kept_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, said: str
) -> None:
    """The run would refuse it, too, and nothing need be downloaded to see that."""
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(bzimage(f"6.1.0-{name}"))
    given = ["./a", "./b", *words.split(), "--blocks", "1", "--offline", "--dry-run"]
    done = CliRunner().invoke(command, given)
    if said:
        assert isinstance(done.exception, KduelError) and said in done.exception.message, done.output
        assert "--offline" in done.exception.remedy and not (tmp_path / "cache").exists()
    else:
        assert done.exit_code == 0, done.output
