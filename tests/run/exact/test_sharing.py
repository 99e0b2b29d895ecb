"""Shared lines without a guest: what the program and the plug-in leave, verdicts, types, names and what two kernels share."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from examples import exact

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.sharing import SHARED_LINES, region_of
from kduel.benchmarks.support.operations import ASKED_FOR, OPERATIONS
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.explain.sharing.btf import BrokenBtfError, Btf
from kduel.explain.sharing.compare import (
    Region,
    SharedBy,
    SharingExplanation,
    TouchedLine,
    allocators,
    compare_kernels,
    shared_by,
    without_other_fields,
)
from kduel.explain.sharing.lines import Namer, trim_field
from kduel.explain.sharing.memory import IMAGE, LINEAR, Data, Memory, NamelessError
from kduel.explain.sharing.show import as_svg, as_text
from kduel.explain.sharing.touched import touched_text
from kduel.explain.symbols import Symbols
from kduel.guest import programs
from kduel.report.html import explanations
from kduel.run.exact.sharing import sharing_study
from kduel.study.file import parse_study, suite_text
from kduel.study.first_part import first_part
from kduel.study.load import assemble

CONDITION = {"number": 0, "phase": 0, "times": 1, "environment": 0, "layout": 0, "held": 0, "before": ""}
CALLED = {"operation": "dup", "other": "dup", "workers": "threads", "objects": "own", "cpus": 2, "rounds": 3}
NUMBER = region_of("dup", "dup", "threads", "own")
MOVES = [
    [0, 2, 0, 0, 4, 1],
    [1, 3, 1, 0, 6, 2],
    [0, 2, 0, 1, 4, 1],
    [1, 2, 0, 0, 4, 0],
    [0, 9, 0, 0, 30, 9],
    [1, 2, 2, 0, 2, 1],
]


def raw(called: dict[str, object] | None = None, moves: list[list[int]] = MOVES, region: int = NUMBER) -> Raw:
    line = msgspec.json.encode({**CALLED, "region": NUMBER, "condition": CONDITION, **(called or {})}).decode()
    counted = msgspec.json.encode({"region": region, "cpus": 2, "unknown": 0, "operations": moves}).decode()
    return Raw(stdout=f"{line}\n", stderr="", exit_status=0, files={SHARED_LINES: f"{counted}\n"})


def parameters(**values: object) -> object:
    return benchmark("sharing").read_parameters({"operation": "dup", "workers": "threads", "conditions": 1, **values})


def test_a_round_is_the_mean_of_its_calls_and_the_value_the_median_over_rounds() -> None:
    assert benchmark("sharing").parse(raw(), parameters()) == {
        "lines": 2.5,  # of 2.5, 2 and 5.5
        "lines-mean": pytest.approx(20 / 6),
        "lines-false": 0.5,
        "lines-accesses": 5,  # of 5, 4 and 16
        "lines-locked": 1.5,  # of 1.5, 0.5 and 5
    }
    found = benchmark("sharing").details(raw(), parameters())
    assert found.conditions["lines"] == {"plain": 2.5}
    assert benchmark("sharing").parse(raw(), parameters(conditions=0))["lines"] == 2.5
    assert not benchmark("sharing").details(raw(), parameters(conditions=0)).conditions


def test_a_run_from_before_the_weights_has_none() -> None:
    before = raw(moves=[one[:4] for one in MOVES])
    found = benchmark("sharing").parse(before, parameters())
    assert found["lines"] == 2.5 and found.keys() == {"lines", "lines-mean", "lines-false"}
    assert benchmark("sharing").details(before, parameters()).conditions.keys() == found.keys()


@pytest.mark.parametrize(
    "wrong",
    [
        raw({"operation": "lseek"}),
        raw({"workers": "processes"}),
        raw({"region": NUMBER + 1}),
        raw(region=NUMBER + 1),  # the plug-in has none
        raw({"rounds": 2}),
        raw(moves=[*MOVES[1:], MOVES[0]]),  # not in turn
        msgspec.structs.replace(raw(), files={}),
        msgspec.structs.replace(raw(), stdout=""),
    ],
)
def test_what_was_not_counted_as_asked_is_refused(wrong: Raw) -> None:
    with pytest.raises(ParseError):
        benchmark("sharing").parse(wrong, parameters())


def test_every_combination_has_a_region_of_its_own() -> None:
    regions = [
        region_of(one, other, workers, objects)
        for one in OPERATIONS[::9]
        for other in OPERATIONS
        for workers in ("processes", "threads")
        for objects in ("own", "directory", "common")
    ]
    assert len(set(regions)) == len(regions) and min(regions) > 0 and max(regions) < 1 << 16


SHARE = [("dup", "processes", "own"), ("fault-anonymous", "threads", "common"), ("pipe", "threads", "own"), ("rename", "processes", "directory"),
         ("epoll-10", "threads", "common"), ("fork-exit", "threads", "own")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2, reason="takes root and two CPUs")
@pytest.mark.parametrize(("operation", "workers", "objects"), SHARE)
def test_the_program_calls_it_on_both_cpus_and_numbers_its_region_as_we_do(
    operation: str, workers: Any, objects: Any, tmp_path: Path
) -> None:
    words = [
        "--workers",
        workers,
        "--objects",
        objects,
        "--count",
        "3",
        "--conditions",
        "2",
        "--seed",
        "5",
        operation,
    ]
    done = subprocess.run(
        [programs.build("kshare", cache=Cache()), *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["condition"]["number"] for line in lines] == [0, 1]
    assert {line["region"] for line in lines} == {region_of(operation, operation, workers, objects)}
    assert all(line["rounds"] == 3 and line["cpus"] == 2 for line in lines)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wrong", [{"other": "futex"}, {"operation": "futex", "workers": "processes", "objects": "common"}]
)
def test_what_several_workers_cannot_call_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        parameters(**wrong)


def test_labels_name_what_is_not_usual() -> None:
    label = benchmark("sharing").label
    assert label(parameters()) == "dup-threads"
    assert label(parameters(conditions=3)) == "dup-threads"
    assert label(parameters(conditions=3, workers="processes", objects="common")) == "dup-processes-common"
    assert label(parameters(conditions=3, other="mmap")) == "dup-against-mmap-threads"


def test_the_suite_takes_two_cpus_and_knows_only_shared_lines() -> None:
    contenders = '\n[[contender]]\nkernel = "debian:6.1"\n[[contender]]\nkernel = "debian:6.12"\n'
    text = suite_text("exact-sharing") + contenders
    study = assemble(parse_study(text, "exact-sharing"), text, "exact-sharing")
    assert study.machine_settings["cpus"] == 2 and {step.benchmark for step in study.steps} == {"sharing"}
    with pytest.raises(InputError, match="two CPUs"):
        assemble(parse_study(text, "exact-sharing"), text, "exact-sharing", machine="icount:cpus=1")


def test_the_suite_counts_all_operations_and_the_atlas_what_both_suites_count() -> None:
    exact, sharing = (parse_study(suite_text(name), name) for name in ("exact", "exact-sharing"))
    operations = exact.benchmark[1]["operation"]
    # With several CPUs each load and unload of a module waits for the others: it takes minutes.
    assert (
        set(operations)
        == set(OPERATIONS) - {"empty", *ASKED_FOR}
        == {*sharing.benchmark[0]["operation"], "module-load"}
    )
    path = Path(__file__).parents[3] / "studies/atlas.toml"
    atlas = parse_study(path.read_text(), str(path))
    assert (atlas.benchmark, atlas.machine, atlas.settle) == (sharing.benchmark, sharing.machine, sharing.settle)
    assert [step.label for step in first_part(assemble(atlas, path.read_text(), "atlas")).steps][1:] == operations
    assert len(atlas.contender) >= 6


def test_an_operation_is_asked_for_with_its_workers_and_objects() -> None:
    (step,) = sharing_study(["debian:6.1", "debian:6.12"], "fault-anonymous+mmap/threads/common").steps
    assert step.label == "fault-anonymous-against-mmap-threads-common"
    for wrong in ("fault/threads", "mmap/thread", "mmap+nothing", "boot", "mmap+boot"):
        with pytest.raises(InputError):
            sharing_study(["debian:6.1", "debian:6.12"], wrong)


# Types, memory and names: a kernel made here, of one slab page and one variable


def btf(strings: list[str], types: list[bytes]) -> bytes:
    text = b"\0" + b"".join(one.encode() + b"\0" for one in strings)
    body = b"".join(types)
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(body), len(body), len(text)) + body + text


class Strings:
    """Names and where they lie."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.at = dict(zip(names, (1 + sum(len(name) + 1 for name in names[:number]) for number in range(len(names))), strict=True))  # fmt: skip


def structure(name: int, size: int, *members: tuple[int, int, int], kind: int = 4) -> bytes:
    return struct.pack("<III", name, kind << 24 | len(members), size) + b"".join(
        struct.pack("<III", *member) for member in members
    )


ALLOCATION = 0xFFFFFFFF81000320
"""Where `alloc_thing` calls the allocator."""
NAMES = Strings("int", "lock", "owner", "things", "pair", "deep", "slab", "slab_cache", "page", "page_type", "kmem_cache", "name",
                "size", "object_size", "PG_slab", "either", "inuse", "offset", "group", "marker")  # fmt: skip
AT = NAMES.at
TYPES = btf(
    NAMES.names,
    [
        struct.pack("<IIII", AT["int"], 1 << 24, 4, 32),  # 1
        structure(AT["pair"], 8, (AT["lock"], 1, 0), (AT["owner"], 1, 32)),  # 2
        structure(0, 8, (AT["deep"], 2, 0)),  # 3, without a name
        structure(AT["things"], 72, (AT["owner"], 1, 0), (0, 3, 64 * 8)),  # 4
        structure(AT["slab"], 64, (AT["slab_cache"], 1, 24 * 8)),  # 5
        structure(AT["page"], 64, (AT["page_type"], 1, 48 * 8)),  # 6
        structure(
            AT["kmem_cache"],
            64,
            (AT["size"], 1, 0),
            (AT["object_size"], 1, 32),
            (AT["name"], 1, 64),
            (AT["inuse"], 1, 128),
            (AT["offset"], 1, 160),
        ),  # 7
        struct.pack("<III", 0, 6 << 24 | 1, 4) + struct.pack("<Ii", AT["PG_slab"], 9),
        structure(AT["either"], 8, (AT["owner"], 1, 0), (AT["deep"], 2, 0), kind=5),  # 9, a union
        struct.pack("<IIIIII", 0, 3 << 24, 0, 1, 1, 0),  # 10, an array of nothing
        structure(AT["group"], 4, (AT["marker"], 10, 0), (AT["lock"], 1, 0)),  # 11
    ],
)


def test_a_field_is_found_also_in_what_has_no_name() -> None:
    found = Btf(TYPES)
    number = found.structures["things"]
    assert found.size(number) == 72
    assert found.field(number, 0) == "owner" and found.field(number, 64) == "deep.lock"
    assert found.field(number, 69) == "deep.owner" and found.field(number, 8) == "+8"
    assert found.offset("things", "deep") == 64 and found.offset("things", "none") is None
    assert found.constants == {"PG_slab": 9}
    # How a union is used is not known; where only one of its fields lies, it is.
    either = found.structures["either"]
    assert found.field(either, 0) == "owner|deep" and found.field(either, 4) == "deep.owner"
    assert found.field(found.structures["group"], 0) == "lock"
    for damaged in (b"", TYPES[:40], b"\0" + TYPES[1:]):
        with pytest.raises(BrokenBtfError):
            Btf(damaged)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return memory_of(tmp_path, b"things")


MODULE = 0xFFFFFFFFC0001000
"""Where the variables of two modules lie."""


def memory_of(tmp_path: Path, slab: bytes) -> Memory:
    """Physical pages: 0 the image, 1 a slab of this name, 2 to 5 page tables up to the page records, 6 these, 7 the cache, which
    keeps who allocated an object."""
    pages = bytearray(8 * 4096)
    pages[0x100 : 0x100 + len(TYPES)] = TYPES
    tables = (0xFFFFEA0000000000 >> 39 & 511, 0xFFFFEA0000000000 >> 30 & 511, 0, 0)
    for level, entry in enumerate(tables):
        struct.pack_into("<Q", pages, (2 + level) * 4096 + 8 * entry, (3 + level) << 12 | 1)
    struct.pack_into("<Q", pages, 6 * 4096 + 64, 1 << 9)  # page 1's record: PG_slab
    struct.pack_into("<Q", pages, 6 * 4096 + 64 + 24, LINEAR + 7 * 4096)
    struct.pack_into("<IIQII", pages, 7 * 4096, 128, 72, LINEAR + 7 * 4096 + 64, 72, 72)
    pages[7 * 4096 + 64 : 7 * 4096 + 64 + len(slab)] = slab
    struct.pack_into("<Q", pages, 4096 + 72 + 8, ALLOCATION)  # of the first object
    (tmp_path / "memory").write_bytes(pages)
    lines = {"init_top_pgt": 2 * 4096, "__start_BTF": 0x100, "__stop_BTF": 0x100 + len(TYPES), "counter": 0xF00, "after": 0xF80,
             "__per_cpu_offset": 0xF90, "__per_cpu_start": -IMAGE, "__per_cpu_end": -IMAGE}  # fmt: skip
    lines |= {"_sdata": 0xE00, "_edata": 0xF90}
    kinds = {
        "init_top_pgt": "T",
        "counter": "T",
    }  # in newer kernels the one lies in the code, the other is only called so
    text = "".join(f"{IMAGE + at:016x} {kinds.get(name, 'D')} {name}\n" for name, at in lines.items())
    for name, at in {"hits\t[small]": 0, "misses\t[small]": 64, "other\t[large]": 4096}.items():
        text += f"{MODULE + at:016x} b {name}\n"
    (tmp_path / "kallsyms").write_text(text)
    return Memory(tmp_path / "memory", Data.read(tmp_path / "kallsyms"))


def test_a_line_is_called_by_its_variable_its_field_or_not_at_all(memory: Memory) -> None:
    name = Namer(memory, 2).name
    assert name(0xF00, IMAGE + 0xF00, 0b1111) == "counter"
    assert name(0xF00, IMAGE + 0xF00, 1 << 24) == "counter+24"
    assert name(2 << 20, IMAGE + (2 << 20), 1) == ""  # far behind all variables
    # Of a module, where another variable of it follows; else other memory may begin in between.
    assert name(1 << 40, MODULE, 0b1) == "hits [small]" and name(1 << 40, MODULE, 1 << 16) == "hits [small]+16"
    assert [name(1 << 40, MODULE + at, 1) for at in (64, 4096)] == ["", ""]
    assert name(4096, LINEAR + 4096, 0b1) == "things.owner"
    assert name(4096 + 64, LINEAR + 4096 + 64, 0xF0) == "things.deep.owner"
    assert name(4096 + 128, LINEAR + 4096 + 128, 0b1) == "things.owner"  # the second object
    assert name(4096, LINEAR + 4096, 1 << 8) == "things.+8"
    assert name(7 * 4096, LINEAR + 7 * 4096, 1) == ""  # no slab
    assert name(1 << 40, LINEAR + (1 << 40), 1) == ""  # no memory
    assert trim_field("mmap_lock.count.counter") == "mmap_lock.count" and trim_field("counter") == "counter"
    assert trim_field("lock.val|locked|pending") == "lock" and trim_field("a.b|c|d|e|f") == "a.b|c|d|e|..."


# What two kernels share

SYMBOLS = Symbols(
    [(0xFFFFFFFF81000000, "_raw_spin_lock"), (0xFFFFFFFF81000100, "taker"), (0xFFFFFFFF81000200, "giver"),
     (0xFFFFFFFF81000300, "alloc_thing")]
)  # fmt: skip
LOCK, TAKER, GIVER = 0xFFFFFFFF81000004, 0xFFFFFFFF81000110, 0xFFFFFFFF81000210


def region(times: int, *, target: int = LOCK - 4) -> Region:
    site = [4096, [LOCK, TAKER, target], [GIVER, 0, 0], "W", 0, 1, True, times, 0]
    outside = [8192, [TAKER, 0, 0], [GIVER, 0, 0], "R", 1, 0, False, 50, 50]
    text = {
        "region": 1,
        "cpus": 2,
        "operations": [[0, 1, 0, 0, 3, 1], [1, 1, 0, 0, 3, 1]],
        "lines": [[4096, LINEAR + 4096, 1, 1, 1, 2], [8192, LINEAR + 8192, 0, 1, 0, 0]],
        "sites": [site, outside],
    }
    return msgspec.json.decode(msgspec.json.encode(text), type=Region)


def shared(memory: Memory, times: int, **options: int) -> SharedBy:
    return shared_by("a", "6.1", region(times, **options), Namer(memory, 2), SYMBOLS)


def test_only_what_the_calling_cpu_did_counts_and_a_helper_has_its_caller(memory: Memory) -> None:
    found = shared(memory, 2)
    assert [(line.name, line.times, line.false) for line in found.lines] == [("things.owner", 1.0, 0.0)]
    assert [(one.function, one.kind, one.other) for one in found.lines[0].meetings] == [
        ("_raw_spin_lock < taker", "W", "giver")
    ]
    # The last call led elsewhere: who called the helper is not known, and not guessed.
    assert shared(memory, 2, target=GIVER).lines[0].meetings[0].function == "_raw_spin_lock"


def test_what_an_operation_touches_is_weighed_and_named(memory: Memory) -> None:
    found = shared(memory, 2)
    assert found.touched == [TouchedLine("things", ["owner"], 1)]  # twice in two operations; the other line in none
    assert (found.accesses, found.locked) == (3, 1)


def test_touched_lines_are_compared_by_object_and_field() -> None:
    def by(name: str, *lines: tuple[str, list[str], float]) -> SharedBy:
        touched = [TouchedLine(*line) for line in lines]
        return SharedBy(contender=name, release="", median=0, mean=0, lines=[], touched=touched, accesses=0, locked=0)

    kept = ("kept", ["list"], 1.0)
    before = by("6.1", ("", [], 3), ("tcp_sock", ["rto"], 1), ("tcp_sock", ["snd_una", "old"], 1), kept)
    after = by("6.12", ("", [], 3), ("tcp_sock", ["rto", "snd_una"], 1), ("net", ["ipv4"], 0.5), kept)
    text = touched_text(SharingExplanation(benchmark="tcp", kernels=[before, after], rows=[]))
    rows = [line.split() for line in text.splitlines()]
    assert ["6", "5.50", "in", "all"] in rows
    at = rows.index(["2", "1", "tcp_sock"])
    assert rows[at + 1 : at + 5] == [
        ["no", "longer:", "old"],
        ["-", "1:", "rto"],
        ["-", "1:", "snd_una,", "old"],
        ["+", "1:", "rto,", "snd_una"],
    ]
    assert rows.index(["0", "0.50", "net"]) + 1 == rows.index(["+", "0.50:", "ipv4"])
    assert "2 objects of which both touch the same lines" in text and "kept" not in text


def test_memory_of_kmalloc_has_the_function_that_allocated_it(tmp_path: Path) -> None:
    namer = Namer(memory_of(tmp_path, b"kmalloc-72"), 2)
    known = allocators(region(2), namer, SYMBOLS)
    assert known == {("kmalloc-72", "_raw_spin_lock < taker", "giver"): {"alloc_thing"}}
    named = [shared_by("a", "6.1", region(2), namer, SYMBOLS, one).lines[0].name for one in ({}, known)]
    assert named == ["kmalloc-72+0", "kmalloc-72+0 from alloc_thing"]
    # Other functions fight over another object: nothing is known of its allocation.
    other = {("kmalloc-72", "taker", "giver"): {"alloc_thing"}}
    assert shared_by("a", "6.1", region(2), namer, SYMBOLS, other).lines[0].name == "kmalloc-72+0"
    assert namer.allocator(4096 + 128, 1) is None  # the second object: nothing is kept


def test_lines_are_gone_new_or_kept(memory: Memory) -> None:
    one, none = shared(memory, 2), msgspec.structs.replace(shared(memory, 2), lines=[])
    assert [row.change for row in compare_kernels("dup", [one, none], "7.2").rows] == ["gone"]
    assert [row.change for row in compare_kernels("dup", [none, one], "7.2").rows] == ["new"]
    assert [row.change for row in compare_kernels("dup", [one, one], "7.2").rows] == ["kept"]
    assert [row.change for row in compare_kernels("dup", [one, shared(memory, 4)], "7.2").rows] == ["more"]
    three = compare_kernels("dup", [one, shared(memory, 4), none], "7.2")
    assert [(row.change, row.times) for row in three.rows] == [("gone", [1, 2, 0])]
    assert "–" in as_text(three) and as_svg(three).count("<text") > as_svg(
        compare_kernels("dup", [one, none], "")
    ).count("<text")
    found = compare_kernels("dup", [one, none], "7.2")
    for text in (as_text(found), as_svg(found)):
        assert "things.owner" in text and "_raw_spin_lock" in text
    assert "&lt; taker" in as_svg(found)


def test_an_explanation_from_before_accesses_were_counted_is_shown_without_them(memory: Memory) -> None:
    found = msgspec.to_builtins(compare_kernels("dup", [shared(memory, 2), shared(memory, 4)], "7.2"))
    assert "loads and stores" in as_text(msgspec.convert(found, SharingExplanation))
    for one in ("accesses", "locked"):
        del found["kernels"][0][one]
    results = exact()
    results.explanations = [found]
    ((heading, _, text),) = explanations(results)
    assert heading.startswith("dup: cache lines") and "lines in the usual operation" in text
    mixed = next(line for line in text.splitlines() if "loads and stores" in line)
    assert mixed.split()[0] == "–" and mixed.split()[1] != "–"
    for one in ("accesses", "locked"):
        del found["kernels"][1][one]
    ((_, _, text),) = explanations(results)
    assert "loads and stores" not in text and "locked operations" not in text


def test_a_union_that_has_other_fields_in_another_kernel_is_the_same_line(memory: Memory) -> None:
    both = []
    for fields in ("slot|mr64|alloc", "slot|mr64|ma64|..."):
        arm = shared(memory, 2)
        arm.lines[0].name = f"maple_node.{fields}, parent|pad"
        both.append(arm)
    assert [(row.change, row.name) for row in compare_kernels("dup", both, "7.2").rows] == [
        ("kept", "maple_node.slot|mr64|ma64|..., parent|pad")
    ]
    assert (
        without_other_fields("a.b|c|..., d|e") == "a.b, d"
        and without_other_fields("inode.i_pipe|i_cdev.x") == "inode.i_pipe.x"
    )


def test_a_kernel_without_types_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "memory").write_bytes(bytes(4096))
    (tmp_path / "kallsyms").write_text(f"{IMAGE:016x} D init_top_pgt\n")
    with pytest.raises(NamelessError, match="__start_BTF"):
        Memory(tmp_path / "memory", Data.read(tmp_path / "kallsyms"))
