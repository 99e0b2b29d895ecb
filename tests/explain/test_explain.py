"""From the plug-in's file to an explanation: on real counts of two Debian kernels, and on any counts at all."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kduel.benchmarks.kbench import read_line
from kduel.core.errors import InputError, NotMeasuredError
from kduel.explain.compare import (
    Clock,
    Explanation,
    Row,
    Shift,
    compare_conditions,
    explain_difference,
    fold_small_branches,
)
from kduel.explain.cost import LOCKED, Cost, cost_text
from kduel.explain.flame import as_svg, chain_tree
from kduel.explain.layout import Figures
from kduel.explain.profile import (
    BULK,
    IDLE,
    INTERRUPT,
    OPERATION,
    THREAD,
    USER,
    Instruction,
    Profile,
    annotate,
    profile,
    read_dump,
)
from kduel.explain.show import annotation_text, as_text, changed_work, condition_lines, next_command, per_operation
from kduel.explain.symbols import Symbols

DATA = Path(__file__).parent / "data"
REGION = 2


def real(version: str) -> Profile:
    return profile(
        read_dump(DATA / f"null-call-{version}.counts"), Symbols.read(DATA / f"null-call-{version}.kallsyms"), REGION
    )


def explanation() -> Explanation:
    return explain_difference("null-call", ("6.1", "6.12"), (real("6.1"), real("6.12")))


# A null call of two Debian kernels, as counted in the guest (QEMU 7.2).


@pytest.mark.parametrize("version", ["6.1", "6.12"])
def test_the_count_is_what_the_guests_clock_says(version: str) -> None:
    line = read_line((DATA / f"null-call-{version}.stdout").read_text())
    found = real(version)
    assert found.operations == line.count
    # Reading the clock takes three instructions of the region and is not in the samples.
    assert found.total == sum(line.samples) + 3 * line.count


def test_a_null_call_by_function() -> None:
    found = explanation()
    rows = {(row.context, row.function): row for row in found.rows}
    assert rows[OPERATION, "do_syscall_64"].baseline == 31_000
    assert rows[OPERATION, "do_syscall_64"].contender == 60_000
    assert rows[OPERATION, "exit_to_user_mode_prepare"].only == "baseline"
    assert rows[OPERATION, "arch_exit_to_user_mode_prepare"].only == "contender"
    assert rows[OPERATION, "__do_sys_getppid"].only == ""
    assert found.total() == (387_000, 382_000)
    assert found.total(USER) == (66_000, 66_000)
    assert [abs(row.difference) for row in found.rows] == sorted(
        (abs(r.difference) for r in found.rows), reverse=True
    )


def test_call_chains_begin_where_the_kernel_is_entered() -> None:
    chains = {stack for stack in real("6.12").stacks if stack[0] == OPERATION}
    assert {stack[1] for stack in chains} == {"entry_SYSCALL_64"}
    assert (
        OPERATION,
        "entry_SYSCALL_64",
        "entry_SYSCALL_64_after_hwframe",
        "do_syscall_64",
        "__do_sys_getppid",
    ) in chains


def test_the_table_names_what_changed_and_adds_up() -> None:
    text = as_text(explanation(), limit=3)
    rows = [line.split()[:3] for line in text.splitlines() if line.lstrip()[:1].isdigit()]
    numbers = [[int(word.replace(",", "").replace("−", "-")) for word in row] for row in rows]
    assert "(baseline only)" in text
    functions, contexts = numbers[:5], numbers[5:7]
    assert [sum(column) for column in zip(*functions, strict=True)] == contexts[0]
    assert [sum(column) for column in zip(*contexts, strict=True)] == numbers[-1] == [387, 382, -5]


LONG = "_RNvMNtCs_some_crate_with_a_long_name_and_more_than_a_line_of_it_17h0123456789abcdef"


def wide() -> Explanation:
    """With names, figures and conditions that are longer than most."""
    profiles = [
        Profile(
            operations=3,
            stacks={(OPERATION, LONG): 4_000_000_001 * number, (OPERATION, f"{LONG}x"): 7, (BULK, "memcpy"): 5},
            known=frozenset([f"{LONG}x"] if number == 1 else [LONG, f"{LONG}x"]),
        )
        for number in (1, 2)
    ]
    found = explain_difference("pipe", ("6.1", "6.12"), (profiles[0], profiles[1]))
    words = "1: phase of 812 us, five times as many calls, 3 KiB of environment, mappings 211 pages lower, after mmap"
    found.conditions = compare_conditions(
        ["plain", words], [profiled(10, clone=1000), profiled(10, clone=1000)], [profiled(10, clone=900)] * 2
    )
    found.conditions[1].shifts.append(Shift(function=LONG, baseline=1.0, contender=1e6))
    found.conditions[1] = structs.replace(found.conditions[1], contender=1e6)
    return found


@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_fit_the_terminal(width: int) -> None:
    for found in (explanation(), wide()):
        text = as_text(found, 0, width)
        assert max(map(len, text.splitlines())) <= width
        folded = " ".join(text.split())
        assert "(contender only)" in folded and "copying and clearing memory for it: loops" in " ".join(
            as_text(wide(), 0, width).split()
        )
    rows = [Cost(kind=LOCKED, function=LONG, baseline=1, contender=3_000_000_000)]
    assert max(map(len, cost_text(wide(), rows, 0, width).splitlines())) <= width


def test_a_name_that_is_too_long_is_cut_in_the_middle_and_only_then() -> None:
    narrow, broad = as_text(wide(), 0, 80), as_text(wide(), 0, 200)
    assert LONG not in narrow and LONG in broad
    (cut,) = {word for word in narrow.split() if "…" in word and word.endswith("def")}
    assert LONG.startswith(cut.split("…")[0]) and LONG.endswith(cut.split("…")[1])
    assert all("exit_to_user_mode_prepare" in as_text(explanation(), 0, width) for width in (60, 80))


def test_a_condition_is_described_whole_however_narrow_the_terminal_is() -> None:
    found = wide()
    folded = " ".join(as_text(found, 0, 60).split())
    words = found.conditions[1].condition.split()
    assert all(word in folded for word in words)
    lines = as_text(found, 0, 80).splitlines()
    (first,) = [number for number, line in enumerate(lines) if "1: phase of" in line]
    assert lines[first + 1].startswith(" " * lines[first].index("1: phase"))


def test_the_next_command_opens_the_largest_difference() -> None:
    words = "kduel explain 'my run' -b null-call --contender new --annotate exit_to_user_mode_prepare"
    assert next_command(explanation(), ["my run"], "new") == words
    same = explain_difference("null-call", ("6.1", "6.1"), (real("6.1"), real("6.1")))
    assert next_command(same, ["my run"]) == ""


def test_the_clock_is_compared_with_the_count() -> None:
    found = explanation()
    found.clock = Clock(baseline=384_000, contender=379_000)
    assert "agrees to the instruction" in as_text(found)
    found.clock = Clock(baseline=384_000, contender=979_000)
    assert "idle" in as_text(found)


@pytest.mark.parametrize(
    ("count", "told"), [(1500, "1.50"), (2_000_000, "2,000"), (2, "0.002"), (-2, "−0.002"), (0, "0"), (5, "0.01")]
)
def test_what_happens_rarely_is_not_told_as_never(count: int, told: str) -> None:
    assert per_operation(count, 1000) == told


# Contexts: what struck from outside is told apart from the operation's own work.

KALLSYMS = """ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 T asm_sysvec_apic_timer_interrupt
ffffffff81000200 T entry_SYSCALL_64
ffffffff81000300 T asm_exc_page_fault
ffffffff81000400 t do_syscall_64
ffffffff81000500 T __pfx_kthread
ffffffff81000510 T kthread
ffffffff81000600 t do_idle
ffffffff81000700 t update_load_avg.isra.0
ffffffff81000700 t update_load_avg.constprop.0
ffffffff81000800 T ret_from_fork
ffffffffc0000000 t nft_do_chain\t[nf_tables]
"""


def dump_of(tmp_path: Path, body: str, end: str = "end\n") -> Path:
    path = tmp_path / "counts"
    path.write_text(f"kduel-counter 1 x86_64\nR 1 10\n{body}{end}")
    return path


def contexts(tmp_path: Path, body: str) -> dict[str, int]:
    return profile(read_dump(dump_of(tmp_path, body)), Symbols.from_kallsyms(KALLSYMS), 1).contexts()


LOAD = "B 1 ffffffff81000700 4,4,4\n"


@pytest.mark.parametrize(
    ("chain", "context"),
    [
        ("N 1 0 e ffffffff81000200\nN 2 1 c ffffffff81000405\n", OPERATION),
        ("N 1 0 e ffffffff81000300\nN 2 1 c ffffffff81000305\n", OPERATION),
        ("N 1 0 e ffffffff81000100\nN 2 1 c ffffffff81000105\n", INTERRUPT),
        ("N 1 0 c ffffffff81000805\nN 2 1 c ffffffff81000555\n", THREAD),
        ("N 1 0 c ffffffff81000605\nN 2 1 c ffffffff81000605\n", IDLE),
    ],
    ids=["system call", "page fault", "interrupt in user mode", "kernel thread", "idle"],
)
def test_the_context_is_who_the_work_is_for(tmp_path: Path, chain: str, context: str) -> None:
    assert contexts(tmp_path, f"{chain}{LOAD}C 1 2 1 0 3 10\n") == {context: 30}


def test_a_thread_that_first_ran_when_an_interrupt_gave_it_the_cpu_is_no_part_of_that_interrupt(
    tmp_path: Path,
) -> None:
    # Since 7.x an interrupt's end may switch to a new task, whose chain goes on below the interrupt's for good.
    chain = (
        "N 1 0 e ffffffff81000100\nN 2 1 c ffffffff81000105\nN 3 2 c ffffffff81000805\nN 4 3 c ffffffff81000555\n"
        "N 5 4 e ffffffff81000100\nN 6 5 c ffffffff81000105\n"
    )
    body = f"{chain}{LOAD}C 1 2 1 0 3 1\nC 1 4 1 0 3 10\nC 1 6 1 0 3 2\n"
    assert contexts(tmp_path, body) == {INTERRUPT: 3 + 6, THREAD: 30}


def test_an_interrupt_inside_a_system_call_is_no_part_of_it(tmp_path: Path) -> None:
    chain = "N 1 0 e ffffffff81000200\nN 2 1 c ffffffff81000405\nN 3 2 e ffffffff81000100\nN 4 3 c ffffffff81000105\n"
    assert contexts(tmp_path, f"{chain}{LOAD}C 1 2 1 0 3 10\nC 1 4 1 0 3 1\n") == {OPERATION: 30, INTERRUPT: 3}


def test_an_interrupt_whose_entry_was_not_seen_is_one_all_the_same(tmp_path: Path) -> None:
    # A call from asm_sysvec..., below a system call that never called it; and its own first instructions.
    chain = "N 1 0 e ffffffff81000200\nN 2 1 c ffffffff81000405\nN 3 2 c ffffffff81000105\n"
    body = f"{chain}{LOAD}B 2 ffffffff81000100 2,2\nC 1 3 1 0 3 1\nC 1 2 2 0 2 1\nC 1 2 1 0 3 10\n"
    assert contexts(tmp_path, body) == {OPERATION: 30, INTERRUPT: 5}


def test_the_way_back_that_all_entries_share_is_no_interrupts(tmp_path: Path) -> None:
    kallsyms = KALLSYMS + "ffffffff81000900 T common_interrupt_return\n"
    body = "N 1 0 e ffffffff81000300\nB 1 ffffffff81000900 2,2\nC 1 1 1 0 2 1\n"
    found = profile(read_dump(dump_of(tmp_path, body)), Symbols.from_kallsyms(kallsyms), 1)
    assert found.contexts() == {OPERATION: 2}


def test_a_page_fault_inside_an_interrupt_is_the_interrupts(tmp_path: Path) -> None:
    chain = "N 1 0 e ffffffff81000100\nN 2 1 e ffffffff81000300\n"
    assert contexts(tmp_path, f"{chain}{LOAD}C 1 2 1 0 3 1\n") == {INTERRUPT: 3}


def test_a_block_across_two_functions_is_split(tmp_path: Path) -> None:
    body = "B 1 ffffffff810003fc 2,2,3,3\nC 1 0 1 0 4 5\nC 1 0 1 1 2 1\n"
    found = profile(read_dump(dump_of(tmp_path, body)), Symbols.from_kallsyms(KALLSYMS), 1)
    assert found.functions() == {(OPERATION, "asm_exc_page_fault"): 11, (OPERATION, "do_syscall_64"): 11}


BEHIND_A_MODULE = (
    "N 1 0 e ffffffff81000200\nN 2 1 c ffffffff81000{caller}\nB 1 ffffffffc0000100 4,4\nC 1 2 1 0 2 10\n"
)


@pytest.mark.parametrize(
    ("caller", "entered", "function"),
    [
        ("905", "", "(BPF program)"),
        ("405", "", "(code without a symbol)"),
        ("905", "B 2 ffffffffc0000000 4\n", "nft_do_chain [nf_tables]"),
    ],
)
def test_code_behind_a_module_is_that_of_its_last_function_only_where_that_was_entered(
    tmp_path: Path, caller: str, entered: str, function: str
) -> None:
    kallsyms = KALLSYMS + "ffffffff81000900 t __seccomp_filter\n"
    body = BEHIND_A_MODULE.format(caller=caller) + entered
    dump, symbols = read_dump(dump_of(tmp_path, body)), Symbols.from_kallsyms(kallsyms)
    assert profile(dump, symbols, 1).functions() == {(OPERATION, function): 20}
    executed = [one.times for one in annotate(dump, symbols, 1, "nft_do_chain [nf_tables]")]
    assert executed == ([10, 10] if entered else [])


def test_other_regions_do_not_count(tmp_path: Path) -> None:
    assert contexts(tmp_path, f"{LOAD}C 2 0 1 0 3 9\nC 1 0 1 0 3 1\n") == {OPERATION: 3}


def test_each_visit_of_a_region_is_counted_apart(tmp_path: Path) -> None:
    """Each condition is one; the explanation is of all together."""
    dump = read_dump(
        dump_of(tmp_path, f"R 65537 20\nR 2 5\n{LOAD}C 1 0 1 0 3 10\nC 65537 0 1 0 1 20\nC 2 0 1 0 3 9\n")
    )
    symbols = Symbols.from_kallsyms(KALLSYMS)
    assert dump.visits(1) == [1, 65537]
    both, second = profile(dump, symbols, 1), profile(dump, symbols, 1, visits=[65537])
    assert (both.operations, both.total) == (30, 50)
    assert (second.operations, second.total) == (20, 20)


def profiled(operations: int, **functions: int) -> Profile:
    stacks = {(OPERATION, name): count for name, count in functions.items()}
    return Profile(operations=operations, stacks=stacks, known=frozenset(functions))


def test_the_function_that_a_condition_changes_is_named() -> None:
    found = explanation()
    found.conditions = compare_conditions(
        ["plain", "1: after mmap"],
        [profiled(10, clone=1000, clear_page=100), profiled(20, clone=2000, clear_page=200)],
        [profiled(10, clone=900, clear_page=100), profiled(20, clone=1800, clear_page=800)],
    )
    plain, other = found.conditions
    assert (plain.difference, plain.shifts) == (-10, [])
    assert (other.baseline, other.contender, other.difference) == (110, 130, 20)
    assert [(shift.function, shift.difference) for shift in other.shifts] == [("clear_page", 30)]
    lines = condition_lines(found)
    shift = lines[lines.index("functions whose counts condition 1 changes, compared with plain") + 1]
    assert isinstance(shift, Figures) and (*shift.cells, shift.text) == ("0", "+30.0", "+30.0", "clear_page")
    assert "by condition" in as_text(found)


def test_conditions_that_agree_are_not_listed() -> None:
    found = explanation()
    arms = [profiled(10, clone=1000), profiled(50, clone=5010)], [profiled(10, clone=900), profiled(50, clone=4510)]
    found.conditions = compare_conditions(["plain", "1"], *arms)
    assert condition_lines(found) == [] and compare_conditions(["plain"], arms[0][:1], arms[1][:1]) == []


def test_user_code_is_counted_without_names(tmp_path: Path) -> None:
    assert contexts(tmp_path, "B 1 401000 4,4\nC 1 0 1 0 2 7\n") == {USER: 14}


@pytest.mark.parametrize(
    "name", ["memcpy_orig", "__memset", "clear_page_orig", "copy_user_generic_unrolled", "rep_movs_alternative"]
)
def test_loops_that_move_bytes_are_told_apart(tmp_path: Path, name: str) -> None:
    kallsyms = KALLSYMS + f"ffffffff81000900 T {name}\nffffffff81000a00 T copy_page_range\n"
    body = (
        "N 1 0 e ffffffff81000200\nN 2 1 c ffffffff81000405\nN 3 1 c ffffffff81000905\n"
        "B 1 ffffffff81000900 2,2\nB 2 ffffffff81000a00 2,2\nC 1 2 1 0 2 64\nC 1 2 2 0 2 1\n"
    )
    found = profile(read_dump(dump_of(tmp_path, body)), Symbols.from_kallsyms(kallsyms), 1)
    assert found.contexts() == {OPERATION: 2, BULK: 128}


def test_the_steps_of_a_repeated_string_instruction_are_told_apart(tmp_path: Path) -> None:
    # Three instructions and `rep stosq`: entered once, then once for each of 512 steps.
    body = "N 1 0 e ffffffff81000200\nBr 1 ffffffff81000700 2,2,2,3\nBr 2 ffffffff81000706 3\nC 1 1 1 0 4 1\nC 1 1 2 0 1 512\n"
    assert contexts(tmp_path, body) == {OPERATION: 3, BULK: 513}


def test_in_a_boot_the_kernels_threads_do_its_work(tmp_path: Path) -> None:
    body = f"N 1 0 c ffffffff81000805\nN 2 1 c ffffffff81000555\n{LOAD}C 1 2 1 0 3 10\n"
    dump = read_dump(dump_of(tmp_path, body))
    assert profile(dump, Symbols.from_kallsyms(KALLSYMS), 1, boot=True).contexts() == {OPERATION: 30}


def test_annotate_counts_each_instruction(tmp_path: Path) -> None:
    body = (
        f"{LOAD}T 1 0 endbr64\nT 1 1 testl %eax, (%rbx)\nT 1 2 retq\nC 1 0 1 0 3 10\nC 1 0 1 0 2 5\nC 2 0 1 0 3 99\n"
    )
    found = annotate(read_dump(dump_of(tmp_path, body)), Symbols.from_kallsyms(KALLSYMS), 1, "update_load_avg")
    assert [(i.offset, i.times, i.text) for i in found] == [
        (0, 15, "endbr64"),
        (4, 15, "testl %eax, (%rbx)"),
        (8, 10, "retq"),
    ]
    assert "1.50  +4     testl" in annotation_text("6.1", "update_load_avg", 10, found)


@pytest.mark.parametrize("end", ["", "en"])
def test_a_file_cut_short_gives_nothing(tmp_path: Path, end: str) -> None:
    with pytest.raises(NotMeasuredError, match=r"cut short|cannot be read"):
        read_dump(dump_of(tmp_path, f"{LOAD}C 1 0 1 0 3 10\n", end))


@pytest.mark.parametrize(
    "line", ["C 1 0 1 0 3", "C 1 0 1 0 3 10 4", "C 1 0 1  0 3", f"C 1 0 1 0 3 {1 << 63}", "C 1 0 1 0 3 x"]
)
def test_a_count_that_is_none_gives_nothing(tmp_path: Path, line: str) -> None:
    with pytest.raises(NotMeasuredError, match="cannot be read"):
        read_dump(dump_of(tmp_path, f"{LOAD}{line}\n"))


def test_a_region_without_instructions_has_no_stacks(tmp_path: Path) -> None:
    dump = read_dump(dump_of(tmp_path, "R 1 4\n"))
    assert profile(dump, Symbols.from_kallsyms(KALLSYMS), 1).stacks == {}


def test_a_region_that_was_never_entered_is_no_zero(tmp_path: Path) -> None:
    with pytest.raises(NotMeasuredError, match="never reached"):
        profile(read_dump(dump_of(tmp_path, LOAD)), Symbols.from_kallsyms(KALLSYMS), 7)


# Symbols


def test_symbols_prefer_functions_to_marks_and_paddings() -> None:
    symbols = Symbols.from_kallsyms(KALLSYMS)
    assert symbols.function(0xFFFFFFFF81000000) == "startup_64"
    assert symbols.function(0xFFFFFFFF81000505) == "__pfx_kthread"
    assert symbols.function(0xFFFFFFFF8100051F) == "kthread"
    assert symbols.function(0xFFFFFFFF81000701) == "update_load_avg"
    assert symbols.function(0xFFFFFFFFC0000010) == "nft_do_chain [nf_tables]"
    assert symbols.function(0xFFFFFFFF80000000) == "(code without a symbol)"


@pytest.mark.parametrize("text", ["", "nonsense\n", "0000000000000000 T a\n0000000000000000 t b\n"])
def test_a_table_without_addresses_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Symbols.from_kallsyms(text)


# Any profiles: nothing is lost, whatever they hold.

names = st.sampled_from(["a", "b", "c<d>&\"'", "e;f"])
stacks = st.dictionaries(
    st.tuples(st.sampled_from([OPERATION, INTERRUPT, THREAD]), names, names)
    | st.just((USER, "(program)"))
    | st.tuples(st.just(OPERATION), names),
    st.integers(1, 10**9),
    max_size=12,
)


@pytest.mark.slow
@given(one=stacks, other=stacks, operations=st.integers(1, 2000), limit=st.integers(0, 5))
def test_differences_add_up_to_the_total_exactly(
    one: dict[tuple[str, ...], int], other: dict[tuple[str, ...], int], operations: int, limit: int
) -> None:
    profiles = tuple(Profile(operations=operations, stacks=s, known=frozenset("ab")) for s in (one, other))
    found = explain_difference("x", ("A", "B"), (profiles[0], profiles[1]))
    assert found.total() == (profiles[0].total, profiles[1].total)
    assert sum(row.difference for row in found.rows) == profiles[1].total - profiles[0].total
    assert chain_tree(found.benchmark, found.stacks).sums == found.total()
    for row in found.rows:
        only = not row.function.startswith("(") and row.function not in "ab" and not row.was
        assert (row.only == "baseline") == only
    picture = ET.fromstring(as_svg(found))
    assert picture.tag.endswith("svg")
    assert as_text(found, limit)


@pytest.mark.slow
@given(one=stacks, other=stacks)
def test_boxes_stay_inside_their_parents(one: dict[tuple[str, ...], int], other: dict[tuple[str, ...], int]) -> None:
    profiles = tuple(Profile(operations=1, stacks=s, known=frozenset()) for s in (one, other))
    compared = explain_difference("x", ("A", "B"), (profiles[0], profiles[1]))
    pending = [chain_tree(compared.benchmark, compared.stacks)]
    while pending:
        box = pending.pop()
        assert box.wide >= max(box.sums) and box.wide >= sum(inner.wide for inner in box.inner.values())
        pending += box.inner.values()


@pytest.mark.slow
@given(one=stacks, other=stacks, share=st.floats(0, 1), rows=st.integers(0, 4))
def test_a_slim_explanation_adds_up_to_the_same(
    one: dict[tuple[str, ...], int], other: dict[tuple[str, ...], int], share: float, rows: int
) -> None:
    profiles = tuple(Profile(operations=1, stacks=s, known=frozenset("ab")) for s in (one, other))
    found = explain_difference("x", ("A", "B"), (profiles[0], profiles[1]))
    small = fold_small_branches(found, share, rows)
    assert small.total() == found.total() == chain_tree(small.benchmark, small.stacks).sums
    assert [small.total(context) for context in found.contexts()] == [found.total(c) for c in found.contexts()]


def test_a_slim_explanation_draws_the_same_picture() -> None:
    found = explanation()
    assert as_svg(fold_small_branches(found, 0.0001)) == as_svg(found)


def test_profiles_of_different_length_are_not_compared() -> None:
    one, other = (Profile(operations=n, stacks={}, known=frozenset()) for n in (1, 2))
    with pytest.raises(ValueError, match="operations"):
        explain_difference("x", ("A", "B"), (one, other))


def test_the_header_says_that_it_is_the_mean_and_one_function_is_no_functions() -> None:
    text = as_text(explanation(), limit=1)
    assert "the mean over 1,000 operations" in text
    assert "(1 functions" not in text


def test_a_boot_is_no_operation_and_its_count_is_compared_with_that_of_a_run() -> None:
    found = explanation()
    found.operations, found.boot = 1, True
    one, other = found.total()
    found.clock = Clock(baseline=one + 6, contender=other + 8)
    text = " ".join(as_text(found).split())
    assert "instructions of one boot, 6.12 against 6.1" in text and "first instruction of init" in text
    assert f"A run counts {one + 6:,} and {other + 8:,} of the same boots (boot-instructions): +6 and +8." in text
    assert "operation" not in text
    assert "per operation" not in as_svg(found)
    assert "executions in one boot" in annotation_text("6.1", "f", 1, [Instruction(0, "nop", 1, 1)], boot=True)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ((100, 20), (0, 0), ["sleeps in a, and not in b", "switches tasks in a, and not in b"]),
        ((0, 1), (100, 40), ["sleeps in b, and not in a", "switches tasks in b, and hardly in a"]),
        ((100, 20), (50, 10), []),
        ((9, 9), (0, 0), []),  # less than once in an operation
    ],
)
def test_an_operation_that_does_other_work_says_so(
    before: tuple[int, int], after: tuple[int, int], told: list[str]
) -> None:
    rows = [
        Row(context=IDLE, function="do_idle", baseline=before[0], contender=after[0]),
        Row(context=OPERATION, function="finish_task_switch.isra.0", baseline=before[1], contender=after[1]),
    ]
    found = Explanation(benchmark="timer", baseline="a", contender="b", operations=10, rows=rows)
    said = changed_work(found)
    assert [one for one in told if any(one in str(line) for line in said)] == told and len(said) == len(told)
    assert all(one in " ".join(as_text(found, width=200).split()) for one in told)


def test_a_fault_is_one_by_whatever_name_its_entry_has() -> None:
    """5.4 has `do_page_fault` where 5.8 and later have `exc_page_fault`."""
    functions = {"do_page_fault": (300, 0), "exc_page_fault": (0, 250), "handle_mm_fault": (900, 800)}
    rows = [Row(context=OPERATION, function=name, baseline=a, contender=b) for name, (a, b) in functions.items()]
    assert not changed_work(Explanation(benchmark="fork", baseline="a", contender="b", operations=1, rows=rows))


def test_an_explanation_of_one_block_of_several_says_so() -> None:
    """A verdict over 15 conditions in three layouts was explained by 5 of them, without a word."""
    found = explanation()
    assert "Block 1 of" not in as_text(found) + cost_text(found, [])
    found.blocks = 1
    assert "Block 1 of" not in as_text(found) + cost_text(found, [])
    found.blocks = 3
    for width in (40, 100):
        for text in (as_text(found, width=width), cost_text(found, [], width=width)):
            assert "Block 1 of 3 only: the run's verdict is over all of them" in " ".join(text.split())
