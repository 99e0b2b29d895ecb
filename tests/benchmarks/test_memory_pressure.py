"""kpress on this host, and what the benchmark refuses. That reclaim happens takes a guest: captured/linux-x86_64-6.12."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.guest import programs

PRESSURE = benchmark("memory-pressure")


def press(tmp_path: Path, *words: str) -> dict[str, int]:
    program = programs.build("kpress", platform.machine(), cache=Cache())
    command = [str(program), "--mib", "4", "--touches", "5000", "--writes", "20", *words, "/proc/vmstat"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_the_seed_decides_what_is_written(tmp_path: Path) -> None:
    told = [press(tmp_path, "--pattern", "skewed", "--seed", seed) for seed in ("1", "1", "2")]
    assert told[0]["writes"] == told[1]["writes"] != told[2]["writes"]
    assert all((one["pages"], one["touches"]) == (1024, 5000) and 900 < one["writes"] < 1100 for one in told)


def test_counters_are_what_each_grew_by(tmp_path: Path) -> None:
    press(tmp_path, "--pattern", "random", "--seed", "1", "--file", str(tmp_path / "file"))
    rows = [line.split() for line in (tmp_path / "counters").read_text().splitlines()]
    names = [line.split()[0] for line in Path("/proc/vmstat").read_text().splitlines()]
    assert [row[:2] for row in rows] == [["vmstat", name] for name in names]
    now = {line.split()[0]: int(line.split()[1]) for line in Path("/proc/vmstat").read_text().splitlines()}
    assert all(0 <= int(row[2]) <= now[row[1]] // 2 for row in rows if row[1] == "pgfault"), (
        "growth, not the sum since boot"
    )


def test_counters_are_read_on_the_way_where_asked_for(tmp_path: Path) -> None:
    """A counter that is there to be read: how often the program itself called read()."""
    program = programs.build("kpress", platform.machine(), cache=Cache())
    calls = []
    for every in ("0", "1000"):
        command = f"{program} --mib 4 --touches 5000 --pattern random --seed 1 --read-every {every} /proc/self/io"
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
        (line,) = (line for line in (tmp_path / "counters").open() if line.startswith("io syscr: "))
        calls.append(int(line.split()[2]))
    assert calls[1] == 5 * calls[0], "four times on the way, and once at the end"


def test_the_script_asks_for_readings_on_the_way() -> None:
    assert "--read-every 100 " in PRESSURE.script(PRESSURE.read_parameters({"read_every": 100}))
    assert "--read-every" not in PRESSURE.script(PRESSURE.read_parameters({}))


def flags_of_memory(tmp_path: Path, huge: str) -> list[str]:
    """What the kernel was told about kpress's memory, once all of it is filled."""
    program = programs.build("kpress", platform.machine(), cache=Cache())
    words = f"--mib 8 --touches {10**15} --pattern random --seed 1 --huge {huge} /proc/vmstat".split()
    with subprocess.Popen([str(program), *words], cwd=tmp_path) as press:
        try:
            while press.poll() is None:
                smaps = Path(f"/proc/{press.pid}/smaps").read_text()
                for found in re.finditer(r"^Rss: +(\d+) kB$.*?^VmFlags: ([^\n]*)$", smaps, re.MULTILINE | re.DOTALL):
                    if int(found[1]) >= 8 << 10:
                        return found[2].split()
        finally:
            press.kill()
    raise AssertionError("kpress ended")


def test_huge_pages_are_kept_out_unless_asked_for(tmp_path: Path) -> None:
    assert "nh" in flags_of_memory(tmp_path, "0")
    assert "nh" not in flags_of_memory(tmp_path, "1")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"limit": 32}, "nothing is reclaimed"),
        ({"memory": "file", "swap": "disk"}, "of anonymous memory"),
        ({"memory": "file", "huge_pages": True}, "of anonymous memory"),
        ({"swap": "floppy"}, "swap"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(table: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        PRESSURE.read_parameters(table)


def test_counts_of_program_and_group_that_differ_are_refused() -> None:
    place = Path(__file__).parent / "captured/linux-x86_64-6.12/pressure-anonymous-skewed-8000x"
    raw = Raw.read(place)
    counters = raw.files["counters"].replace("memory.stat pgmajfault 2228\n", "memory.stat pgmajfault 22\n")
    raw = msgspec.structs.replace(raw, files={"counters": counters})
    with pytest.raises(ParseError, match="2226 major faults, its group 22"):
        PRESSURE.parse(raw, PRESSURE.read_parameters({"touches": 8000}))


@pytest.mark.parametrize(
    ("kills", "said"), [("oom_kill 1", "the kernel killed kpress for lack of memory"), ("oom_kill 0", "")]
)
def test_the_step_says_that_memory_was_lacking(tmp_path: Path, kills: str, said: str) -> None:
    """The end of the step's script, with a group and a kpress that stand in for the guest's."""
    script = PRESSURE.script(PRESSURE.read_parameters({})).partition('cd "$KDUEL_STEP"')[2]
    (tmp_path / "memory.events").write_text(f"oom 1\n{kills}\noom_group_kill 0\n")
    (tmp_path / "kpress").write_text("#!/bin/sh\nexit 137\n")
    (tmp_path / "kpress").chmod(0o755)
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        env={"PATH": "/usr/bin:/bin", "group": str(tmp_path), "KDUEL_PROGRAMS": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.strip()) == (137, said)


def test_a_step_has_a_group_of_its_own(tmp_path: Path) -> None:
    """One that was killed at its timeout leaves its group behind, and the next step found it in its way."""
    lines = PRESSURE.script(PRESSURE.read_parameters({"memory": "file"})).splitlines()
    (name,) = (line for line in lines if line.startswith("group="))
    made = {subprocess.check_output(["sh", "-c", f"{name}; echo $group"], env={"groups": "/g"}) for _ in range(2)}
    assert len(made) == 2 and all(one.startswith(b"/g/kduel-pressure-") for one in made)
