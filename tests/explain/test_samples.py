"""The output of perf script: read, named, and refused where it is damaged."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.untrusted import MalformedError, read, whole_number
from kduel.explain.profile import IDLE, INTERRUPT, OPERATION, THREAD, USER, USER_FUNCTION
from kduel.explain.samples import PROFILER, name_samples, read_samples, unpack_gzip
from kduel.explain.symbols import UNKNOWN, Symbols
from kduel.run.profile.carry_out import cpus_of, idle_share, metric_value

DATA = Path(__file__).parent / "data"
"""Parts of what profiled trials of two Debian kernels left (kbench pipe, QEMU 7.2, perf 6.1), with the symbols that occur."""
FUNCTIONS = "entry_SYSCALL_64_after_hwframe do_syscall_64 pipe_read.isra.0 asm_sysvec_apic_timer_interrupt kthread do_idle schedule"
SYMBOLS = Symbols.from_kallsyms(
    "".join(f"{0xFFFFFFFF81000000 + 0x1000 * place:016x} T {name}\n" for place, name in enumerate(FUNCTIONS.split()))
)


def at(place: int, offset: int = 0x10) -> str:
    return f"\t{0xFFFFFFFF81000000 + 0x1000 * place + offset:16x}"


def sample(process: int, *places: int, event: str = "cpu-clock", user: str = "\t    7f94a344bd00") -> str:
    return "\n".join([f"{process:5}    1001001 {event}: ", *(at(place) for place in places), user, ""])


def test_chains_are_named_outermost_first_without_user_addresses() -> None:
    found = name_samples(sample(7, 2, 1, 0), SYMBOLS, 99)
    assert found.stacks == {(OPERATION, "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "pipe_read"): 1001001}
    assert found.samples == 1 and "schedule" in found.known


def test_each_sample_has_its_context() -> None:
    text = "\n".join(
        [
            sample(7, 2, 0),
            sample(7, 6, 3, 0),
            sample(12, 6, 4),
            sample(0, 5),
            sample(0, 6, 3, 5),
            sample(99, 2),
            sample(7),
        ]
    )
    contexts = [stack[0] for stack in name_samples(text, SYMBOLS, 99).stacks]
    assert contexts == [OPERATION, INTERRUPT, THREAD, IDLE, INTERRUPT, PROFILER, USER]
    assert (USER, USER_FUNCTION) in name_samples(text, SYMBOLS, 99).stacks


def test_a_return_address_just_behind_a_function_belongs_to_the_caller() -> None:
    # A call that does not return is the last instruction of its function.
    text = "7 1 cycles:u:\n" + at(6) + "\n" + at(2, 0) + "\n"
    assert list(name_samples(text, SYMBOLS, 99).stacks) == [(OPERATION, "do_syscall_64", "schedule")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no samples"),
        (at(2) + "\n", "belongs to no sample"),
        (sample(7, 2) + "Error: no trace\n", "none that perf script prints"),
        (sample(7, 2) + sample(7, 2, event="cycles"), "several events"),
        (sample(7, 2).replace("1001001", "1" * 40), "none that perf script prints"),
        (sample(7, 2).replace("1001001", "0"), "has a period"),
    ],
)
def test_what_is_no_output_of_perf_script_is_refused(text: str, why: str) -> None:
    with pytest.raises(MalformedError, match=why):
        name_samples(text, SYMBOLS, 99)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(sample(7, 2).encode() * 50)
    for name, data in (("cut.gz", whole[:-9]), ("none.gz", b"plain"), ("empty.gz", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(MalformedError):
            unpack_gzip(tmp_path / name)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kduel.explain.samples.MOST_UNPACKED", 1000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(100_000)))
    with pytest.raises(MalformedError, match="more than 1,000 bytes"):
        unpack_gzip(tmp_path / "bomb.gz")


def test_a_kernel_that_hides_its_addresses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "samples.gz").write_bytes(gzip.compress(sample(7, 2).encode()))
    (tmp_path / "kallsyms.gz").write_bytes(gzip.compress(b"0000000000000000 T schedule\n"))
    with pytest.raises(InputError, match="hides the addresses"):
        read_samples(tmp_path, 99)


@pytest.mark.parametrize(
    ("version", "own", "other"),
    [
        ("6.1", "copy_user_short_string", "rep_movs_alternative"),
        ("6.12", "rep_movs_alternative", "copy_user_short_string"),
    ],
)
def test_samples_of_a_real_guest(version: str, own: str, other: str) -> None:
    found = read_samples(DATA / version, whole_number(read(DATA / version / "perf.pid").strip()))
    innermost = {stack[-1] for stack in found.stacks}
    assert found.event == "cpu-clock" and found.weight == found.samples * 1001001 > 300 * 1001001
    assert UNKNOWN not in {name for stack in found.stacks for name in stack}
    assert {"pipe_read", "pipe_write", "finish_task_switch", own} <= {
        name for stack in found.stacks for name in stack
    }
    assert own in innermost and other not in innermost
    in_processes = sum(value for stack, value in found.stacks.items() if stack[0] == OPERATION)
    assert 0.6 < in_processes / found.weight < 0.95
    assert 0 <= idle_share(read(DATA / version / "stat.before"), read(DATA / version / "stat.after")) < 0.3


@pytest.mark.parametrize("text", ["", "cpu x", "cpu 1 2 3", "cpu 1 2 3 4 5"])
def test_a_damaged_proc_stat_is_refused(text: str) -> None:
    with pytest.raises((MalformedError, ValueError)):
        idle_share(text, "cpu 1 2 3 4 5")


def test_an_idle_share_is_none_where_a_counter_went_back() -> None:
    """Idle time that fell by 900 of 100 ticks in all was a share of -900 %, and a cost of idle CPUs below 0."""
    with pytest.raises(MalformedError):
        idle_share("cpu 0 0 0 1000 0 0 0 0", "cpu 1000 0 0 100 0 0 0 0")
    assert idle_share("cpu 0 0 0 0 50 0 0 0", "cpu 50 0 0 50 20 0 0 0") == 0.5


def test_a_proc_stat_without_cpus_and_a_missing_metric_are_refused() -> None:
    with pytest.raises(MalformedError, match="lists no CPU"):
        cpus_of("cpu 1 2 3 4 5\ncpux\n")
    assert cpus_of("cpu 1\ncpu0 1\ncpu1 1\n") == 2
    with pytest.raises(MalformedError, match="no value of p99"):
        metric_value({"mean": 1.0}, "p99")


@pytest.mark.slow
def test_reading_samples_takes_no_many_times_their_size() -> None:
    """A list of all lines takes many times the memory of the text."""
    text = sample(7, 2) + " a\n" * 200_000
    tracemalloc.start()
    try:
        name_samples(text, SYMBOLS, 99)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(text)
    finally:
        tracemalloc.stop()


def test_a_symbol_table_has_a_smaller_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kduel.explain.samples.MOST_SYMBOLS", 1000)
    (tmp_path / "samples.gz").write_bytes(gzip.compress(sample(7, 2).encode()))
    (tmp_path / "kallsyms.gz").write_bytes(gzip.compress(b"ffffffff81000000 T schedule\n" * 1000))
    with pytest.raises(MalformedError, match="more than 1,000 bytes"):
        read_samples(tmp_path, 99)
