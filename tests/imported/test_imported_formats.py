"""Foreign files, really written by their programs, give exactly the numbers that they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.judge.imported import results
from kduel.store.imported import Source, bring_in, contenders, environments, read
from kduel.store.imported.support.store import the_format

FIXTURES = Path(__file__).parent / "fixtures"


def samples_of(tmp_path: Path, *sources: Source) -> dict[str, Samples]:
    """The tables of an import, by full name."""
    bring_in(sources, tmp_path / "run")
    return {table.key: table for table in read(tmp_path / "run")}


def named(**files: str) -> list[Source]:
    return [Source(FIXTURES / file, name) for name, file in files.items()]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("hyperfine-1.15.0-two.json", "hyperfine"),
        ("hyperfine-1.20.0-two.json", "hyperfine"),
        ("pyperf-2.10.0-a.json", "pyperf"),
        ("pyperf-2.10.0-single.json", "pyperf"),
        ("google-benchmark-1.7.1-a.json", "google-benchmark"),
        ("google-benchmark-1.7.1-aggregates.json", "google-benchmark"),
        ("phoronix-after-schema.xml", "phoronix"),
        ("../../../studies/published/generations.csv", "csv"),
    ],
)
def test_a_format_is_known_by_its_content(file: str, name: str, tmp_path: Path) -> None:
    copy = tmp_path / "no-ending-that-helps"
    copy.write_bytes((FIXTURES / file).read_bytes())
    assert the_format(copy, None).name == name


def test_hyperfine_alone_has_its_commands_as_contenders(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, Source(FIXTURES / "hyperfine-1.15.0-two.json"))
    document = json.loads((FIXTURES / "hyperfine-1.15.0-two.json").read_text())
    assert list(tables) == ["hyperfine/wall_time"]
    table = tables["hyperfine/wall_time"]
    assert table.values == {result["command"]: result["times"] for result in document["results"]}
    assert (table.metric.unit, table.metric.better, table.paired) == ("s", "lower", False)
    assert table.blocks == list(range(1, 9))


def test_hyperfine_with_names_has_its_commands_as_benchmarks(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="hyperfine-1.15.0-a.json", new="hyperfine-1.15.0-b.json"))
    assert {key: table.contenders for key, table in tables.items()} == {"sleep 0.02/wall_time": ["old", "new"]}


def test_later_hyperfine_has_memory_too(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, Source(FIXTURES / "hyperfine-1.20.0-two.json"))
    memory = tables["hyperfine/peak_memory"]
    assert memory.values["sleep 0.02"] == [3162112.0] * 5
    assert (memory.metric.unit, memory.metric.statistic) == ("B", "max")


def test_pyperf_gives_one_number_a_process(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="pyperf-2.10.0-a.json", new="pyperf-2.10.0-b.json"))
    assert list(tables) == ["sort/time", "join/time"]
    for name, file in (("old", "a"), ("new", "b")):
        document = json.loads((FIXTURES / f"pyperf-2.10.0-{file}.json").read_text())
        for index, key in enumerate(tables):
            processes = [run["values"] for run in document["benchmarks"][index]["runs"] if "values" in run]
            assert len(processes) == 4, "the process that calibrates has no values"
            assert tables[key].values[name] == [sum(values) / len(values) for values in processes]
    assert tables["sort/time"].metric.statistic == "mean"


def test_pyperf_memory_is_in_bytes_and_a_lone_benchmark_has_the_files_name(tmp_path: Path) -> None:
    source = FIXTURES / "pyperf-2.10.0-memory.json"
    table = samples_of(tmp_path, Source(source, "old"), Source(source, "new"))["rss/memory"]
    assert (table.metric.unit, table.values["old"]) == ("B", [12611584, 12648448, 12652544])
    other = FIXTURES / "pyperf-2.10.0-single.json"
    assert list(samples_of(tmp_path / "2", Source(other, "old"), Source(other, "new"))) == ["single/time"]


def test_google_benchmark_gives_one_number_a_repetition(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="google-benchmark-1.7.1-a.json", new="google-benchmark-1.7.1-b.json"))
    document = json.loads((FIXTURES / "google-benchmark-1.7.1-a.json").read_text())
    copies = [b for b in document["benchmarks"] if b["run_type"] == "iteration" and b["name"] == "BM_Copy/1024"]
    assert len(copies) == 4
    assert tables["BM_Copy/1024/real_time"].values["old"] == [b["real_time"] for b in copies]
    shown = {key: (t.metric.unit, t.metric.better) for key, t in tables.items()}
    assert shown["BM_Copy/1024/cpu_time"] == ("ns", "lower")
    assert shown["BM_Copy/1024/bytes_per_second"] == ("B/s", "higher")
    assert shown["BM_Copy/1024/size"] == ("", "none")
    assert shown["BM_Sum/real_time"] == ("us", "lower")
    assert shown["BM_Sum/items_per_second"] == ("items/s", "higher")
    assert not [key for key in tables if "index" in key or "iterations" in key or "threads" in key]


def test_google_benchmark_failures_are_left_out_and_told(tmp_path: Path) -> None:
    source = FIXTURES / "google-benchmark-1.7.1-broken.json"
    record = bring_in([Source(source, "old"), Source(source, "new")], tmp_path / "run")
    assert any("BM_Broken" in reason and "no such device" in reason for reason in record.skipped)
    assert not [table for table in read(tmp_path / "run") if table.benchmark == "BM_Broken"]


def test_google_benchmark_aggregates_alone_are_refused(tmp_path: Path) -> None:
    source = FIXTURES / "google-benchmark-1.7.1-aggregates.json"
    with pytest.raises(InputError, match="aggregates only") as caught:
        bring_in([Source(source, "old"), Source(source, "new")], tmp_path / "run")
    assert "--benchmark_report_aggregates_only" in caught.value.remedy


def test_phoronix_systems_are_contenders_and_their_hardware_is_compared(tmp_path: Path) -> None:
    source = Source(FIXTURES / "phoronix-after-schema.xml")
    record = bring_in([source], tmp_path / "run")
    tables = {table.key: table for table in read(tmp_path / "run")}
    cpu = tables["sysbench-1.1.0/Test: CPU"]
    assert cpu.values == {"Linux 6.1": [16010.2, 16020.9, 16006.1], "Linux 6.12": [16001.7, 16009.4, 15998.5]}
    assert (cpu.metric.unit, cpu.metric.better) == ("Events Per Second", "higher")
    build = tables["build-linux-kernel-1.15.0/Build: defconfig"]
    assert build.values["Linux 6.12"] == [209.8, None, None], "a single value, and no raw ones"
    assert build.metric.better == "lower"
    assert any("LINE_GRAPH" in reason for reason in record.skipped)
    found = environments(tmp_path / "run")
    assert found["Linux 6.1"]["hardware"]["Motherboard"] == "QEMU Standard PC (Q35 + ICH9, 2009)"
    differing = {f"{d.group}.{d.key}" for d in results(tmp_path / "run").differences}
    assert differing == {"software.Kernel", "software.File-System"}


def test_phoronix_one_system_may_be_renamed_but_not_two(tmp_path: Path) -> None:
    text = (FIXTURES / "phoronix-after-schema.xml").read_text()
    lone = tmp_path / "lone.xml"
    lone.write_text("\n".join(line for line in text.splitlines() if "<Entry><Identifier>Linux 6.12" not in line))
    tables = samples_of(tmp_path, Source(lone, "old"), Source(lone, "new"))
    assert tables["sysbench-1.1.0/Test: CPU"].contenders == ["old", "new"]
    with pytest.raises(InputError, match="holds 2 systems"):
        bring_in([Source(FIXTURES / "phoronix-after-schema.xml", "old")], tmp_path / "other")


def test_files_without_names_are_called_after_themselves(tmp_path: Path) -> None:
    files = [Source(FIXTURES / f"pyperf-2.10.0-{which}.json") for which in "ab"]
    bring_in(files, tmp_path / "run")
    assert contenders(tmp_path / "run") == ["pyperf-2.10.0-a", "pyperf-2.10.0-b"]


@pytest.mark.parametrize("file", sorted(path.name for path in FIXTURES.glob("*.json")))
def test_a_file_cut_off_anywhere_is_an_error_and_never_a_number(file: str, tmp_path: Path) -> None:
    whole = (FIXTURES / file).read_bytes().rstrip()
    for part in range(1, 8):
        cut = tmp_path / f"{part}.json"
        cut.write_bytes(whole[: len(whole) * part // 8])
        with pytest.raises(InputError):
            bring_in([Source(cut, "old"), Source(cut, "new")], tmp_path / "run")
    assert not list(tmp_path.glob("*run*")), "nothing is left behind"
