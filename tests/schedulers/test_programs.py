"""Our workload programs, run here on this host: what they say must be what the kernel says."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.core.cache import Cache
from kduel.guest import programs

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="real-time policies need root")


def program(name: str) -> str:
    return str(programs.build(name, "x86_64", cache=Cache()))


def kload(*words: str, status: int = 0) -> dict[str, Any]:
    done = subprocess.run([program("kload"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("k", [0, 1, 17])
def test_a_process_that_blocks_k_times_counts_k(k: int) -> None:
    out = kload("--kind", "blocks", "--processes", "5", "--iterations", str(k))
    counts = [row[4] for row in out["each"]["rows"]]
    # This host's kernel may have a process wait once more (for a page, say); test_accounts.py counts exactly.
    assert statistics.median(counts) == k == min(counts)
    assert out["voluntary"] == sum(counts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu", "io", "mixed", "blocks"])
def test_switches_are_those_of_proc_status(kind: str, tmp_path: Path) -> None:
    words = ["--kind", kind, "--processes", "8", "--verify", "--dir", str(tmp_path), "--io", "dsync"]
    out = kload(
        *words, "--iterations", "30" if kind == "blocks" else "400000", "--transfers", "40", "--size", "16384"
    )
    assert out["status"] == {"voluntary": out["voluntary"], "involuntary": out["involuntary"]}
    if kind == "blocks":
        assert 240 <= out["voluntary"] <= 244, "eight processes that sleep 30 times"
    if kind == "io":
        assert out["voluntary"] > 0, "synchronous writes must wait"
    assert not list(tmp_path.iterdir()), "kload leaves no file"


def cgroup2() -> Path | None:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2" and os.access(where, os.W_OK):
            return Path(where)
    return None


def test_cpu_time_agrees_with_the_cgroups() -> None:
    group = cgroup2()
    if group is None or not ROOT:
        pytest.skip("no cgroup2 to write to")
    before = sorted(path.name for path in group.iterdir() if path.is_dir())
    out = kload("--kind", "cpu", "--processes", "6", "--iterations", "60000000", "--cgroup", str(group))
    own = sum(out[who][what] for who in ("life", "driver") for what in ("user_s", "system_s"))
    theirs = (out["cgroup"]["user_us"] + out["cgroup"]["system_us"]) / 1e6
    assert own == pytest.approx(theirs, rel=0.02)
    assert sorted(path.name for path in group.iterdir() if path.is_dir()) == before


def test_cpu_time_agrees_with_perf_stat(tmp_path: Path, need: Callable[..., str]) -> None:
    command = [need("perf"), "stat", "-x,", "-e", "task-clock", "-o", str(tmp_path / "perf"), program("kload")]
    command += ["--kind", "cpu", "--processes", "6", "--iterations", "60000000"]
    before = not_ours()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    taken = not_ours() - before
    match = re.search(r"^([\d.]+),msec", (tmp_path / "perf").read_text(), re.MULTILINE)
    if done.returncode or not match:
        pytest.skip(f"perf cannot count here: {done.stderr}")
    out = json.loads(done.stdout)
    own = sum(out[who][what] for who in ("life", "driver") for what in ("user_s", "system_s"))
    theirs = float(match[1]) / 1000
    # perf's clock goes on while the host's host, or an interrupt, has the CPU; a process is not charged for that.
    assert theirs * 0.98 - taken <= own <= theirs * 1.02


def not_ours() -> float:
    """Seconds that all CPUs have lost so far to interrupts and to a host above this one."""
    irq, softirq, steal = (int(word) for word in Path("/proc/stat").read_text().split()[6:9])
    return (irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def test_messages_are_received_as_they_are_sent() -> None:
    """More than a socket holds, so that a receiver that does not read has its sender wait for ever; to an odd number, too."""
    for processes in (2, 5):
        words = ["--processes", str(processes), "--transfers", "3000", "--block", "512", "--deadline", "60"]
        out = kload("--kind", "messages", *words)
        assert out["finished"] == processes and out["voluntary"] > 0


def test_messengers_wait_for_each_answer() -> None:
    """One worker has one request at a time: what its requests take, from post to answer, does not overlap."""
    words = ["--workers", "1", "--requests", "200", "--work", "20000", "--messengers", "1"]
    done = subprocess.run([program("kwake"), *words], capture_output=True, text=True, check=True)
    out = json.loads(done.stdout)
    assert out["response_ns"]["n"] == 200 and out["dispatch_ns"]["max"] == 0 and out["late"] is None
    took = sum(least * count for least, count in out["response_ns"]["histogram"])
    assert 200 * out["work_ns"]["min"] < took < out["seconds"] * 1e9


POLICIES = [
    ("other", "other"),
    ("batch", "batch"),
    ("idle", "idle"),
    ("other+nice:5", "other"),
    ("rr:50", "rr"),
    ("fifo:50", "fifo"),
    ("deadline:1000000,100000000,100000000", "deadline"),
]


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize(("policy", "seen"), POLICIES)
def test_every_policy_is_taken_and_all_work_is_done(policy: str, seen: str) -> None:
    out = kload(
        "--kind", "cpu", "--processes", "40", "--iterations", "100000", "--policy", policy, "--deadline", "30"
    )
    assert out["finished"] == 40
    assert out["policy"]["policy"] == seen
    assert out["driver_policy"] == "fifo:99"
    assert out["pi"] == pytest.approx(3.1416, abs=0.01)


@pytest.mark.slow
@needs_root
def test_the_deadline_ends_processes_that_never_yield() -> None:
    out = kload(
        "--kind", "cpu", "--processes", "8", "--iterations", "100000000000", "--policy", "fifo:50", "--deadline", "1",
        status=124,
    )  # fmt: skip
    assert out["in_time"] is False
    assert out["finished"] == 0
    assert "wall_s" not in out, "there is no wall time of work that was not done"
    assert 0.5 < out["ended_s"] < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"), [("kload", ["--kind", "cpu", "--iterations", "1" + 14 * "0"]), ("kwake", ["--hogs", "2"])]
)
def test_nothing_outlives_a_driver_that_was_killed(name: str, words: list[str]) -> None:
    running = subprocess.Popen([program(name), *words], stdout=subprocess.DEVNULL)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    while not (pids := children.read_text().split()):
        time.sleep(0.01)
    time.sleep(0.1)
    pids = children.read_text().split()
    running.kill()
    running.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "end of its processes")


@needs_root
def test_a_refused_policy_is_an_error() -> None:
    # 40 processes that reserve 20 CPUs.
    words = ["--kind", "cpu", "--processes", "400", "--policy", "deadline:50000000,100000000,100000000"]
    done = subprocess.run([program("kload"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "policy deadline" in done.stderr
    assert not done.stdout


def test_unknown_words_are_usage_errors() -> None:
    for words in (["--kind", "gpu"], ["--kind", "cpu", "--policy", "fifo:0"], ["--kind", "cpu", "--processes", "0x"]):
        done = subprocess.run([program("kload"), *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("usage: kload")


@needs_root
@pytest.mark.parametrize("nice", ["-5", "7"])
@pytest.mark.parametrize(("policy", "seen"), POLICIES)
def test_a_policy_is_taken_whatever_the_nice_level_was_before(policy: str, seen: str, nice: str) -> None:
    # From any level of this shell's own: `nice` adds to it.
    here = os.nice(0)
    command = ["nice", "-n", str(int(nice) - here), program("kpolicy"), policy, program("kpolicy"), "--show"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["policy"] == seen
    if seen in ("other", "batch"):
        assert found["nice"] == (5 if "nice:5" in policy else 0)


@needs_root
@pytest.mark.parametrize(("policy", "seen"), POLICIES)
def test_the_launcher_sets_a_policy_for_what_it_starts(policy: str, seen: str) -> None:
    command = [program("kpolicy"), policy, program("kpolicy"), "--show"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["policy"] == seen


def test_the_launcher_says_what_is_wrong() -> None:
    assert subprocess.run([program("kpolicy"), "fifo:0", "true"], capture_output=True, check=False).returncode == 2
    done = subprocess.run([program("kpolicy"), "other", "/no/such"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "No such file" in done.stderr


def raw_of(name: str, parameters: dict[str, Any], directory: Path) -> tuple[Any, Any, Raw]:
    """A benchmark of ours, carried out here as a trial does it."""
    chosen = benchmark(name)
    typed = chosen.read_parameters(parameters)
    bin_ = directory / "programs"
    bin_.mkdir()
    for own in chosen.programs:
        (bin_ / own).symlink_to(program(own))
    place = os.environ | {"KDUEL_PROGRAMS": str(bin_), "KDUEL_SCRATCH": str(directory), "KDUEL_STEP": str(directory)}
    done = subprocess.run(
        ["sh", "-ec", chosen.script(typed)], env=place, capture_output=True, text=True, check=False, cwd=directory
    )
    assert done.returncode == 0, done.stderr
    return chosen, typed, Raw(done.stdout, done.stderr, 0)


BENCHMARKS: list[tuple[str, dict[str, Any]]] = [
    ("kload", {"processes": 12, "iterations": 200_000}),
    ("kload", {"kind": "io", "processes": 4, "io": "buffered", "transfers": 16}),
    ("kload", {"kind": "mixed", "processes": 4, "io": "dsync", "transfers": 8}),
    ("kload", {"kind": "messages", "processes": 6, "transfers": 20, "block": 512}),
    ("wakeup", {"requests": 500, "rate": 1000, "hogs": 2}),
    ("wakeup", {"requests": 250, "workers": 4, "messengers": 2, "work": 1000}),
    ("desktop", {"frames": 100, "rate": 100, "hogs": 2, "work": 20_000}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), BENCHMARKS)
def test_benchmarks_give_all_their_metrics_and_none_from_garbled_output(
    name: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    chosen, typed, raw = raw_of(name, parameters, tmp_path)
    values = chosen.parse(raw, typed)
    assert list(values) and {metric.name for metric in chosen.metrics(typed)} == set(values)
    assert all(value >= 0 for value in values.values())
    if name == "kload":
        assert 1 / 12 <= values["fairness"] <= 1
        assert values["cpu"] <= 100.5 * (os.cpu_count() or 1)
    for cut in range(1, len(raw.stdout), max(1, len(raw.stdout) // 60)):
        with pytest.raises(ParseError):
            chosen.parse(Raw(raw.stdout[: len(raw.stdout) - 1 - cut], "", 0), typed)


def test_output_of_another_work_is_not_taken(tmp_path: Path) -> None:
    chosen, typed, raw = raw_of(*BENCHMARKS[0], tmp_path)
    other = chosen.read_parameters({"processes": 13, "iterations": 200_000})
    with pytest.raises(ParseError, match="processes is 12"):
        chosen.parse(raw, other)
    for pattern, replacement in (
        (r'"voluntary":\d+', '"voluntary":987654'),
        (r'"user_s":[\d.]+', '"user_s":55.5'),
        (r'"wall_s":[\d.]+', '"wall_s":0.000001'),
        (r'"pi":[\d.]+', '"pi":2.9'),
        (r'"in_time":true', '"in_time":false'),
        (
            r"\[\d+,\d+,",
            "[5,",
        ),
    ):
        garbled = re.sub(pattern, replacement, raw.stdout, count=1)
        assert garbled != raw.stdout
        with pytest.raises(ParseError):
            chosen.parse(Raw(garbled, "", 0), typed)
