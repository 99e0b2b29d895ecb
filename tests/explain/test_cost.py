"""What the instructions of an operation are: classes read off their texts, and cache lines that the plug-in counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.cli.explain import command
from kduel.core.errors import InputError, NotMeasuredError
from kduel.explain.compare import Explanation
from kduel.explain.cost import (
    ACCESSES,
    BRANCHES,
    INDIRECT,
    LINES,
    LOCKED,
    PAGE_TABLES,
    SERIALISING,
    compare_costs,
    cost_text,
    count_costs,
    instruction_classes,
)
from kduel.explain.profile import read_dump
from kduel.explain.symbols import Symbols

KALLSYMS = "ffffffff81000000 T _stext\nffffffff81000100 T one\nffffffff81000200 T other\n"
DUMP = """kduel-counter 1 x86_64
R 1 10
R 65537 10
B 1 ffffffff81000100 4,2,5
T 1 0 movq 8(%rdi), %rax
T 1 1 je 0xffffffff81000200
T 1 2 lock cmpxchgl %edx, (%rbx)
B 2 401000 3
T 2 0 movq (%rax), %rax
C 1 0 1 0 3 10
C 65537 0 1 0 2 10
C 2 0 1 0 3 99
C 1 0 2 0 1 7
L 1 ffffffff81000100 10
L 65537 ffffffff81000100 5
L 2 ffffffff81000100 99
L 1 401000 7
end
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("movl %eax, %ebx", set()),
        ("movl 8(%rbx), %eax", {ACCESSES}),
        ("movq %gs:0x1fcc0, %rax", {ACCESSES}),
        ("leaq 8(%rbx), %rax", set()),
        ("nopl (%rax)", set()),
        ("pushq %rbp", {ACCESSES}),
        ("je 0xffffffff81000000", {BRANCHES}),
        ("callq 0xffffffff81000000", {BRANCHES, ACCESSES}),
        ("callq *%rax", {BRANCHES, INDIRECT, ACCESSES}),
        ("jmp *0x20(%rbx)", {BRANCHES, INDIRECT, ACCESSES}),
        ("notrack jmpq *%rax", {BRANCHES, INDIRECT}),
        ("retq", {BRANCHES, ACCESSES}),
        ("lock incl (%rdi)", {LOCKED, ACCESSES}),
        ("xchgl %eax, (%rdi)", {LOCKED, ACCESSES}),
        # What a kernel makes of a lock prefix where there is one CPU, as QEMU prints it.
        ("cmpxchgq %rdx, %ds:(%rdi)", {LOCKED, ACCESSES}),
        ("incl %ds:0x80(%rdi)", {LOCKED, ACCESSES}),
        ("leaq %ds:(%rax), %rax", set()),
        ("jmpq *%ds:(%rax)", {BRANCHES, INDIRECT, ACCESSES}),
        ("xchgl %eax, %eax", set()),
        ("rep stosq %rax, %es:(%rdi)", {ACCESSES}),
        ("wrmsr", {SERIALISING}),
        ("iretq", {SERIALISING, ACCESSES}),
        ("movq %rax, %cr3", {SERIALISING, PAGE_TABLES}),
        ("movq %cr3, %rax", set()),
        ("movq %rax, %cr4", {SERIALISING}),
    ],
)
def test_an_instruction_is_counted_in_its_classes(text: str, found: set[str]) -> None:
    assert set(instruction_classes(text)) == found


def counted(tmp_path: Path, text: str = DUMP) -> dict[tuple[str, str], int]:
    path = tmp_path / "counts"
    path.write_text(text)
    return count_costs(read_dump(path), Symbols.from_kallsyms(KALLSYMS), 1)


def test_code_behind_a_module_is_not_its_last_functions(tmp_path: Path) -> None:
    (tmp_path / "counts").write_text(DUMP.replace("B 1 ffffffff81000100", "B 1 ffffffffc0000100"))
    symbols = Symbols.from_kallsyms(KALLSYMS + "ffffffffc0000000 t last [module]\n")
    assert count_costs(read_dump(tmp_path / "counts"), symbols, 1)[LOCKED, "(code without a symbol)"] == 10


def test_classes_are_added_up_over_all_visits_of_the_region(tmp_path: Path) -> None:
    assert counted(tmp_path) == {
        (ACCESSES, "one"): 30,
        (BRANCHES, "one"): 20,
        (LOCKED, "one"): 10,
        (ACCESSES, "(program)"): 7,
        (LINES, "one"): 15,
        (LINES, "(program)"): 7,
    }


def test_a_line_more_is_shown_with_its_function(tmp_path: Path) -> None:
    before = counted(tmp_path)
    rows = compare_costs(before, before | {(LINES, "other"): 20})
    assert [(row.kind, row.function, row.difference) for row in rows if row.difference] == [(LINES, "other", 20)]
    found = Explanation(benchmark="null-call", baseline="a", contender="b", operations=20, rows=[])
    text = cost_text(found, rows)
    assert "not time" in text
    assert [line.split()[:4] for line in text.splitlines() if line.endswith(" other")] == [["0", "1", "+1", "other"]]


def test_another_processor_has_no_cost_model(tmp_path: Path) -> None:
    with pytest.raises(NotMeasuredError, match="aarch64"):
        counted(tmp_path, DUMP.replace("x86_64", "aarch64"))


@pytest.mark.parametrize(
    "words", [["-b", "boot"], ["-b", "pipe", "--annotate", "f"], ["-b", "pipe", "--plot", "x.svg"]]
)
def test_the_costs_are_of_operations(words: list[str]) -> None:
    with pytest.raises(InputError, match="--cost is for operations"):
        command.main(["debian:6.1", "debian:6.12", "--cost", *words], standalone_mode=False)
