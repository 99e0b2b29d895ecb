"""Studies on the machine build, end to end, with small synthetic trees."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cut_runs import cut_run

from kduel.core.cache import Cache

SOURCE = Path(__file__).parents[3] / "src"
Run = Callable[..., subprocess.CompletedProcess[str]]


def results(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "results.json").read_text())
    return found


def metric(found: dict[str, Any], key: str, contender: str = "new") -> dict[str, Any]:
    (one,) = [m for m in found["metrics"] if f"{m['benchmark']}/{m['metric']}" == key and m["contender"] == contender]
    return one  # type: ignore[no-any-return]


@pytest.mark.slow
def test_a_study_of_two_trees(kduel: Run, write_study: Callable[..., Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = kduel("run", write_study("old", "new", blocks="fixed = 2"), "--out", run)
    assert done.returncode == 0, done.stderr
    found = results(run)
    real = metric(found, "build/real")
    assert real["verdict"] == "undecided" and real["n"] == 2
    assert all(value > 0 for value in real["values"]["old"])
    for trial in (run / "trials").iterdir():
        times = json.loads((trial / "01-build/times.json").read_text())
        assert times["status"] == 0 and times["user"] + times["sys"] > 0

    # Sizes are those that size and ls print, and one pair decides them.
    first = {t["contender"]: run / t["directory"] for t in found["trials"] if t["block"] == 1}
    for name, directory in first.items():
        kept = directory / "kernel/vmlinux"
        printed = subprocess.run(["size", kept], capture_output=True, text=True, check=True).stdout.splitlines()[1]
        text, data, bss, total = map(int, printed.split()[:4])
        for what, value in (("text", text), ("data", data), ("bss", bss), ("vmlinux", total)):
            assert set(metric(found, f"size/{what}")["values"][name]) == {value}
    size = metric(found, "size/vmlinux")
    assert (size["verdict"], size["scale"], size["effect"]) == ("different", "exact", 4 * 36 + 6)
    assert "higher, +150 B" in size["told"]
    assert metric(found, "size/data")["verdict"] == "equal"
    assert "clean build" in kduel("report", run).stdout


@pytest.mark.slow
def test_the_configuration_told_is_the_one_built(
    kduel: Run, write_study: Callable[..., Path], trees: dict[str, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    study = write_study("old", "new")
    study.write_text(
        study.read_text().replace(f"{trees['new']},config=tinyconfig", f"{trees['new']},config=defconfig")
    )
    done = kduel("run", study, "--out", run)
    assert done.returncode == 0, done.stderr
    configs = {
        path.parents[1].name[9:]: gzip.decompress(path.read_bytes()).decode()
        for path in run.glob("trials/*/environment/config.gz")
    }
    assert "CONFIG_LARGE=y" in configs["new"] and "# CONFIG_LARGE is not set" in configs["old"]
    assert "config-differs" in {w["code"] for w in results(run)["warnings"]}
    assert not list(run.glob("trials/*/environment/dmesg")), "the host's log is nobody's business"


@pytest.mark.slow
def test_a_tree_that_does_not_compile_is_told_and_the_others_go_on(
    kduel: Run, write_study: Callable[..., Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = kduel("run", write_study("old", "broken", "new", blocks="fixed = 3"), "--out", run)
    assert done.returncode == 1
    assert "broken could not be measured" in done.stderr
    assert "kernel/sched.c:7:27: error: ‘nothing’ undeclared" in done.stderr
    found = results(run)
    assert metric(found, "size/vmlinux")["verdict"] == "different"
    assert metric(found, "size/vmlinux", "broken")["mean"] is None
    reasons = [t["reason"] for t in found["trials"] if t["contender"] == "broken"]
    assert [reason.partition(":")[0] for reason in reasons] == ["does-not-build", "does-not-build", "left-out"]
    assert "not measurable: it does not build: kernel/sched.c:7:27: error" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_what_cannot_be_compared_ends_the_run_with_the_cause(
    kduel: Run, write_study: Callable[..., Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = kduel("run", write_study("old", "broken"), "--out", run)
    assert done.returncode == 1
    assert "its trial is void" in done.stderr and "‘nothing’ undeclared" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_missing_tool_is_named_with_its_package(
    kduel: Run, write_study: Callable[..., Path], trees: dict[str, Path], tmp_path: Path
) -> None:
    from small_tree import MAKEFILE, archive

    needs = MAKEFILE.replace("bzImage: $(O)/vmlinux\n", "bzImage: $(O)/vmlinux\n\tpahole --version\n")
    bare = tmp_path / "bin"
    bare.mkdir()
    for place in ("/usr/bin", "/bin"):
        for tool in Path(place).iterdir():
            if tool.name != "pahole" and not (bare / tool.name).exists():
                (bare / tool.name).symlink_to(tool)
    study = write_study("old", "new")
    study.write_text(study.read_text().replace(str(trees["new"]), str(archive(tmp_path, patch=4, makefile=needs))))
    done = kduel("run", study, "--out", tmp_path / "run", PATH=str(bare))
    assert done.returncode == 1
    assert "pahole: " in done.stderr
    assert "apt install pahole" in done.stderr


@pytest.mark.slow
def test_an_interrupted_run_goes_on(kduel: Run, write_study: Callable[..., Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert kduel("run", write_study("old", "new", blocks="fixed = 2"), "--out", run).returncode == 0
    before = sorted(path.name for path in (run / "trials").iterdir())
    cut_run(run, [before[-1]])
    again = kduel("resume", run)
    assert again.returncode == 0, again.stderr
    assert sorted(path.name for path in (run / "trials").iterdir()) == before
    assert again.stderr.count(" ok") == 1


def test_what_makes_no_sense_on_the_machine_build_is_refused(
    kduel: Run, write_study: Callable[..., Path], tmp_path: Path
) -> None:
    cases = {
        "with ccache the time of a build is meaningless": lambda text: text.replace(
            "tinyconfig", "tinyconfig,ccache=yes"
        ),
        "is not given as source": lambda text: text.replace("source:", "debian:6.1#"),
        "the machine build boots nothing": lambda text: text.replace('"kernel-size"', '"sysbench-cpu"').replace(
            '"compressed", "vmlinux"', ""
        ),
        "sets a command line": lambda text: text.replace('name = "new"', 'name = "new"\ncmdline = "quiet"'),
        "there is no arch=vax": lambda text: text.replace("config=", "arch=vax,config="),
        "is neither a configuration that KDuel knows nor a file": lambda text: text.replace(
            "tinyconfig", "tiniconfig"
        ),
    }
    whole = write_study("old", "new").read_text()
    for told, change in cases.items():
        path = tmp_path / "changed.toml"
        path.write_text(change(whole))
        done = kduel("run", path, "--out", tmp_path / "run")
        assert done.returncode == 2, (told, done.stderr)
        assert told in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_machine_that_boots_refuses_these_benchmarks_in_words() -> None:
    from kduel.benchmarks import benchmark

    for name in ("kernel-build", "kernel-size"):
        chosen = benchmark(name)
        script = chosen.script(chosen.read_parameters({}))
        done = subprocess.run(["sh", "-e"], input=script, capture_output=True, text=True, check=False, env={})
        assert done.returncode == 1
        assert done.stderr == "this benchmark takes the machine build\n"


@pytest.mark.slow
def test_no_build_goes_on_when_the_run_is_interrupted(
    shared: Cache, write_study: Callable[..., Path], trees: dict[str, Path], tmp_path: Path
) -> None:
    from small_tree import MAKEFILE, archive

    mark = f"{os.getpid()}.5"
    slow = archive(
        tmp_path, patch=5, makefile=MAKEFILE.replace("bzImage: $(O)/vmlinux\n", f"bzImage:\n\tsleep {mark}\n")
    )
    study = write_study("old", "new")
    study.write_text(study.read_text().replace(str(trees["old"]), str(slow)).replace(str(trees["new"]), str(slow)))
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "KDUEL_CACHE": str(shared.root)}
    runner = subprocess.Popen(
        [sys.executable, "-m", "kduel", "run", study, "--out", tmp_path / "run"],
        cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def asleep() -> bool:
        return any(f"sleep\0{mark}\0" in cmdline(path) for path in Path("/proc").glob("[0-9]*/cmdline"))

    while not asleep():
        assert runner.poll() is None, runner.communicate()[1]
        time.sleep(0.1)
    runner.terminate()
    _, said = runner.communicate(timeout=300)
    assert runner.returncode == 130, said
    assert "go on with: kduel resume" in said.lower()
    assert not asleep()
    assert not list(shared.root.glob(".build-*"))


def cmdline(path: Path) -> str:
    """Of a process that may just have ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
