"""kbench on this very host, and its parser on its real output."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.kbench import APART, SITUATED, SITUATIONS, read_line, read_lines
from kduel.benchmarks.support.operations import ABOUT, GROUP_OF, MODULES, OPERATIONS
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.guest import programs

DATA = Path(__file__).parents[1] / "explain/data"
MISSING = 4
"""The exit status of an operation that this kernel cannot do."""
REAL = (DATA / "null-call-6.12.stdout").read_text()


def parameters(**values: object) -> object:
    return benchmark("kbench").read_parameters(values)


def raw(stdout: str) -> Raw:
    return Raw(stdout=stdout, stderr="", exit_status=0)


def run(*words: str, cwd: Path) -> str:
    program = programs.build("kbench", cache=Cache())
    return subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=True).stdout


def test_the_plug_in_and_the_program_know_the_same_operations(tmp_path: Path) -> None:
    listed = run("--list", cwd=tmp_path).splitlines()
    assert dict(line.split("\t") for line in listed) == ABOUT and tuple(ABOUT) == OPERATIONS
    assert GROUP_OF.keys() == set(OPERATIONS) - {"empty"}


IN_GROUPS = ("cgroup-attach", "pipe-cgroup-2", "pipe-cgroup-8")
ASKS_MUCH = (
    dict.fromkeys(IN_GROUPS, "control groups")
    | {"netfilter-100": "nf_tables"}
    | {name: " ".join(needed[:1]) for name, needed in MODULES.items() if name != "netfilter-100"}
)
"""Operations that not every kernel of a host can do, and what they name where it cannot."""


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_runs_and_cleans_up(operation: str, tmp_path: Path) -> None:
    program = programs.build("kbench", cache=Cache())
    words = [str(program), "--exact", "--count", "3", operation]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not list(tmp_path.iterdir())
    if done.returncode == MISSING and operation in ASKS_MUCH:
        assert done.stdout == "" and ASKS_MUCH[operation] in done.stderr
        return
    assert done.returncode == 0, done.stderr
    line = read_line(done.stdout)
    assert line.operation == operation
    assert line.count == 3 and line.region == OPERATIONS.index(operation) + 1


def test_the_ext4_that_operations_use_is_sound(tmp_path: Path) -> None:
    header = (Path(programs.__file__).parent / "ext4_image.h").read_text()
    image = bytearray(int(re.findall(r"EXT4_SIZE = (\d+)", header)[0]))
    for at, length, fill, text in re.findall(r"^    \{(\d+), (\d+), (\d+), (.*)\},$", header, re.MULTILINE):
        written = [int(byte, 8) for byte in re.findall(r"\\([0-7]{3})", text)]
        assert text == "NULL" or len(written) == int(length)
        image[int(at) : int(at) + int(length)] = bytes(written) or bytes([int(fill)]) * int(length)
    place = tmp_path / "image"
    place.write_bytes(image)
    done = subprocess.run(["/sbin/e2fsck", "-f", "-n", place], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("operation", ["null-call", "pipe", "fork-exit", "fault-anonymous"])
def test_timed_operations_are_longer_than_the_clocks_error(operation: str, tmp_path: Path) -> None:
    # What else the host does may fall into a batch and make the next ones too short: then it says so, and is asked again.
    for _ in range(8):
        stdout = run("--time", "0.05", operation, cwd=tmp_path)
        line = read_line(stdout)
        if line.clock_error_pct < 1:
            break
    assert line.clock_error_pct < 1
    values = benchmark("kbench").parse(raw(stdout), parameters(operation=operation))
    assert set(values) == {"time", "time-mean", "time-min"}
    assert 0 < values["time-min"] <= values["time"]


def test_more_work_takes_more_time(tmp_path: Path) -> None:
    few, many = (
        read_line(run("--time", "0.05", "--cpu", "0", f"poll-{count}", cwd=tmp_path)).min for count in (10, 100)
    )
    assert 2 < many / few < 30


def test_kinds_of_work_are_counted_beside_the_calls(tmp_path: Path) -> None:
    faults, idle = (run("--exact", "--count", "50", name, cwd=tmp_path) for name in ("fault-anonymous", "null-call"))
    kbench = benchmark("kbench")

    def work(text: str, operation: str) -> dict[str, float]:
        return kbench.details(raw(text), parameters(operation=operation, mode="exact")).work["instructions"]

    done = work(faults, "fault-anonymous")
    assert 1 <= done["takes page faults"] < 2 and done["switches tasks"] < 0.5
    assert work(idle, "null-call")["takes page faults"] < 0.5
    # Two operations in a call.
    twice = faults.replace('"hops":1,', '"hops":2,')
    assert twice != faults and work(twice, "fault-anonymous")["takes page faults"] == done["takes page faults"] / 2
    # A program that does not say it.
    assert work(REAL, "null-call") == {}


def test_exact_values_come_from_the_median_and_the_mean() -> None:
    values = benchmark("kbench").parse(raw(REAL), parameters(operation="null-call", mode="exact"))
    line = read_line(REAL)
    # Each call took the same, and an empty one took 6.
    assert set(line.samples) == {379.0} and line.empty == 6
    assert values == {"instructions": 373.0, "instructions-mean": 373.0}


def test_a_counter_that_goes_in_steps_is_no_count_of_instructions() -> None:
    coarse = msgspec.json.decode(REAL) | {"resolution": 16.0}
    with pytest.raises(ParseError, match="steps of 16"):
        benchmark("kbench").parse(
            raw(msgspec.json.encode(coarse).decode()), parameters(operation="null-call", mode="exact")
        )


def test_output_of_another_operation_or_mode_is_refused() -> None:
    for wrong in (parameters(operation="pipe", mode="exact"), parameters(operation="null-call")):
        with pytest.raises(ParseError, match="not what was asked"):
            benchmark("kbench").parse(raw(REAL), wrong)


@given(cut=st.integers(0, len(REAL) - 3))
def test_output_cut_anywhere_gives_no_number(cut: int) -> None:
    with pytest.raises(ParseError):
        benchmark("kbench").parse(raw(REAL[:cut]), parameters(operation="null-call", mode="exact"))


def test_a_lost_sample_is_noticed() -> None:
    damaged = REAL.replace("[379,", "[", 1)
    with pytest.raises(ParseError, match="announces 1000 samples and gives 999"):
        read_line(damaged)


def test_labels_are_lmbenchs_names_in_both_modes() -> None:
    kbench = benchmark("kbench")
    assert kbench.label(parameters(operation="pipe", mode="exact")) == "pipe"
    assert kbench.label(parameters(operation="pipe", cpu=0)) == "pipe-cpu0"
    assert kbench.label(parameters(operation="pipe", count=50, mode="exact")) == "pipe-50x"


def test_unknown_operations_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="kbench"):
        parameters(operation="lunch")


def test_scripts_say_what_is_asked() -> None:
    kbench = benchmark("kbench")
    script = kbench.script(parameters(operation="pipe", mode="exact", count=7, cpu=0))
    assert script == (
        '"$KDUEL_PROGRAMS/kbench" --exact --conditions 5 --seed "${KDUEL_SEED:-0}" --count 7 --cpu 0 pipe\n'
    )
    single = kbench.script(parameters(operation="pipe", mode="exact", conditions=0))
    assert single == '"$KDUEL_PROGRAMS/kbench" --exact pipe\n'
    assert kbench.label(parameters(operation="pipe", mode="exact", conditions=0)) == "pipe"


def made(number: int, *samples: float, situation: str = "", empty: float = 6, hops: int = 1) -> str:
    """A line as the program prints it."""
    condition = {
        "number": number,
        "phase": 1_500_000,
        "times": 5,
        "environment": 7,
        "layout": 256,
        "held": 3,
        "before": "",
    }
    middle = sorted(samples)[len(samples) // 2]
    line = msgspec.json.decode(REAL) | {
        "condition": condition, "situation": situation, "count": len(samples), "samples": samples, "empty": empty,
        "hops": hops, "median": (middle - empty) / hops, "mean": (sum(samples) / len(samples) - empty) / hops,
        "operation": "pipe", "min": (min(samples) - empty) / hops, "max": (max(samples) - empty) / hops,
    }  # fmt: skip
    return msgspec.json.encode(line).decode() + "\n"


def test_conditions_give_their_median_each_its_own_value_and_the_modes() -> None:
    kbench, chosen = benchmark("kbench"), parameters(operation="pipe", mode="exact", conditions=3)
    out = raw(
        made(0, 106, 106, 106)
        + made(1, 106, 126, 126)
        + made(2, 116, 116, 116)
        + made(0, 96, 96, 96, situation="fifo")
    )
    values = kbench.parse(out, chosen)
    assert values["instructions"] == 110 and values["instructions-fifo"] == 90
    assert "instructions-cgroup" not in values  # a kernel without it
    details = kbench.details(out, chosen)
    assert list(details.conditions["instructions"].values()) == [100, 120, 110]
    names = list(details.conditions["instructions"])
    assert names[0] == "plain" and "phase 1.50 ms" in names[1] and "x5" in names[1]
    assert [(mode.value, round(9 * mode.share)) for mode in details.modes["instructions"]] == [
        (100, 4),
        (110, 3),
        (120, 2),
    ]


def test_situations_alone_are_no_output() -> None:
    """It was an IndexError."""
    chosen = parameters(operation="pipe", mode="exact", conditions=1)
    stdout = made(0, 12, 12, 12, situation="cgroup") + made(0, 12, 12, 12, situation="fifo")
    for use in (benchmark("kbench").parse, benchmark("kbench").details):
        with pytest.raises(ParseError, match="situations only"):
            use(raw(stdout), chosen)


def test_a_condition_that_is_missing_is_noticed() -> None:
    with pytest.raises(ParseError, match="under 2 conditions, not 3"):
        benchmark("kbench").parse(
            raw(made(0, 106) + made(1, 106)), parameters(operation="pipe", mode="exact", conditions=3)
        )


def test_the_same_seed_gives_the_same_conditions_and_another_others(tmp_path: Path) -> None:
    def conditions(seed: int) -> list[object]:
        out = run("--exact", "--conditions", "4", "--seed", str(seed), "--count", "2", "null-call", cwd=tmp_path)
        return [line.condition for line in read_lines(out)]

    first = conditions(7)
    assert first == conditions(7) and first[0] == conditions(8)[0]
    assert not any(one == other for one, other in zip(first[1:], conditions(8)[1:], strict=True))
    assert len({str(condition) for condition in first}) == 4


@pytest.mark.parametrize("operation", sorted(SITUATED))
def test_situations_are_counted_beside_and_leave_nothing(operation: str, tmp_path: Path) -> None:
    lines = read_lines(run("--exact", "--conditions", "1", "--count", "2", operation, cwd=tmp_path))
    assert lines[0].situation == "" and lines[0].region > 0
    # What this host does not allow (a group, a real-time policy) is left out.
    assert {line.situation for line in lines[1:]} <= set(SITUATIONS) - (set() if operation in APART else {"session"})
    assert not any(line.region for line in lines[1:])
    assert not list(tmp_path.iterdir())


def test_a_boot_that_was_not_counted_says_what_it_takes() -> None:
    boot = benchmark("boot-instructions")
    script = boot.script(boot.read_parameters({}))
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "without --layouts" in done.stderr and not done.stdout


@pytest.mark.parametrize(
    ("stdout", "value"), [("123456789\n", 123456789.0), ("", None), ("0\n", None), ("-5\n", None), ("12 13\n", None)]
)
def test_boot_instructions_are_a_count_or_nothing(stdout: str, value: float | None) -> None:
    boot = benchmark("boot-instructions")
    if value is None:
        with pytest.raises(ParseError):
            boot.parse(raw(stdout), boot.read_parameters({}))
    else:
        assert boot.parse(raw(stdout), boot.read_parameters({})) == {"boot-instructions": value}
