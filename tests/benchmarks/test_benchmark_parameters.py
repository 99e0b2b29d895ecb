"""Parameters, labels, metrics and scripts of every benchmark here, over all that a study may ask for."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from benchmark_cases import CASES, DOCUMENTED, NAMES
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from kduel.benchmarks import benchmark
from kduel.core.errors import InputError


def values_of(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Everything that a parameter of that type may be."""
    match kind:
        case inspect.IntType():
            return st.integers(kind.ge, kind.le)
        case inspect.BoolType():
            return st.booleans()
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.VarTupleType():
            return st.lists(values_of(kind.item_type), min_size=kind.min_length or 0, unique=True).map(tuple)
        case inspect.StrType():
            return st.from_regex(kind.pattern, fullmatch=True).map(str.strip)
    raise TypeError(kind)


def tables(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Tables that a study may give a benchmark."""
    fields = inspect.type_info(benchmark(name).Parameters).fields
    table = st.fixed_dictionaries({}, optional={field.name: values_of(field.type) for field in fields})
    return table.filter(lambda table: accepts(name, table))


def accepts(name: str, table: dict[str, Any]) -> bool:
    try:
        benchmark(name).read_parameters(table)
    except InputError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_labels_are_well_formed_and_tell_parameters_apart(name: str, data: st.DataObject) -> None:
    chosen = benchmark(name)
    first = data.draw(tables(name))
    changed = data.draw(tables(name))
    second = data.draw(
        st.sampled_from([changed, first | dict(list(changed.items())[:1])]).filter(lambda t: accepts(name, t))
    )
    one, two = chosen.read_parameters(first), chosen.read_parameters(second)
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*[a-z0-9]", chosen.label(one))
    assert (chosen.label(one) == chosen.label(two)) == (one == two)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_metrics_are_well_formed(name: str, data: st.DataObject) -> None:
    chosen = benchmark(name)
    parameters = chosen.read_parameters(data.draw(tables(name)))
    metrics = chosen.metrics(parameters)
    assert metrics
    assert len({metric.name for metric in metrics}) == len(metrics)
    for metric in metrics:
        assert re.fullmatch(r"[a-z0-9.-]+", metric.name) and metric.unit and metric.about.endswith(".")
        assert msgspec.convert(msgspec.to_builtins(metric), type(metric)) == metric
    assert 0 < chosen.seconds(parameters) < math.inf


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_scripts_are_posix_shell(name: str, data: st.DataObject) -> None:
    chosen = benchmark(name)
    script = chosen.script(chosen.read_parameters(data.draw(tables(name))))
    assert script.endswith("\n")
    checked = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr + script


@pytest.mark.slow
def test_scripts_pass_shellcheck(need: Callable[..., str]) -> None:
    scripts = {case.benchmark.script(case.parameters) for case in CASES}
    scripts |= {benchmark(name).script(benchmark(name).read_parameters({})) for name in NAMES}
    script = '#!/bin/sh -e\n: "${KDUEL_STEP:=}" "${KDUEL_SCRATCH:=}"\n' + "".join(
        f"(\n{s})\n" for s in sorted(scripts)
    )
    checked = subprocess.run([need("shellcheck"), "-"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_processes_that_only_calculate_are_not_expected_to_transfer() -> None:
    """The 27 cells on exact CPUs, of half an hour, were announced as five hours: a CPU cell counted the transfers of messages."""
    kload = benchmark("kload")
    cell = {"kind": "cpu", "processes": 1000, "iterations": 100_000}
    assert kload.seconds(kload.read_parameters(cell)) < 3


def test_a_benchmark_that_is_handed_nothing_has_short_defaults() -> None:
    for name in NAMES:
        chosen = benchmark(name)
        if name not in ("sysbench-fileio", *DOCUMENTED):
            assert chosen.seconds(chosen.read_parameters({})) <= 5, name


@pytest.mark.parametrize(
    ("name", "table", "told"),
    [
        ("sysbench-cpu", {"threads": 0}, "threads"),
        ("sysbench-cpu", {"threads": "2"}, "threads"),
        ("sysbench-cpu", {"thread": 2}, "thread"),
        ("sysbench-cpu", {"time": 2.5}, "time"),
        ("sysbench-fileio", {"mode": "seq"}, "mode"),
        ("sysbench-fileio", {"file_total_size": "2G; reboot"}, "file_total_size"),
        ("sysbench-fileio", {"file_total_size": "2 GiB"}, "file_total_size"),
        ("perf-stat", {"load": "busy"}, "load"),
        ("cyclictest", {"priority": 100}, "priority"),
        ("cyclictest", {"loops": 999}, "loops"),
        ("stress-ng", {"stressor": "reboot"}, "stressor"),
        ("fio", {"iodepth": 8}, "iodepth 8 needs ioengine libaio or io_uring"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(name: str, table: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        benchmark(name).read_parameters(table)
    assert told in str(error.value) and name in str(error.value)


def test_fixed_metrics_say_what_fixes_them() -> None:
    def fixed(name: str, **table: Any) -> dict[str, float | None]:
        chosen = benchmark(name)
        return {m.name: m.fixed_at for m in chosen.metrics(chosen.read_parameters(table)) if m.fixed_at is not None}

    assert fixed("sysbench-fileio", time=10) == {"total-time": 10.0}
    assert fixed("sysbench-cpu", time=3) == {"total-time": 3.0}
    assert fixed("perf-stat", time=5) == {"task-clock": 5000.0}
    assert fixed("schbench", rps=500) == {"requests-per-second": 500.0}
    assert not fixed("schbench") and not fixed("cyclictest") and not fixed("fio")


def test_links_of_iperf3_may_be_there_at_the_same_time() -> None:
    chosen = benchmark("iperf3")
    services = [
        chosen.service(msgspec.convert({"path": "veth", **more}, chosen.Parameters))
        for more in ({}, {"qdisc": "fq"}, {"delay": 2}, {"streams": 4, "time": 9})
    ]
    spaces = [re.findall(r"netns add (\S+)", one.start) for one in services]
    assert spaces[0] == spaces[3] and services[0] == services[3], "steps over one link share it"
    assert len({one.name for one in services}) == len({str(space) for space in spaces}) == 3
    with pytest.raises(msgspec.ValidationError, match="qdisc is of the path veth"):
        msgspec.convert({"qdisc": "fq"}, chosen.Parameters)
    with pytest.raises(msgspec.ValidationError, match="exclude each other"):
        msgspec.convert({"path": "veth", "qdisc": "fq", "delay": 1}, chosen.Parameters)


SIZES: dict[str, tuple[str, list[dict[str, object]]]] = {
    "nginx": (r"listen [^ ]+:(\d+) |:(\d+)/file", [{}, {"path": "link"}, {"size": 2048}, {"workers": 2}, {"path": "link", "size": 2048}]),
    "memcached": (r" -p (\d+)|(?:127.0.0.1|ADDRESS):(\d+)", [{}, {"path": "link"}, {"threads": 1}, {"path": "link", "threads": 1}]),
    "mariadb": (r"port=(\d+)", [{"path": "link"}, {"path": "link", "rows": 50}]),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_servers_that_may_run_side_by_side_have_different_ports(name: str) -> None:
    """A step's clients would reach another step's server, which is alive and well."""
    pattern, tables = SIZES[name]
    ports = []
    for table in tables:
        parameters = benchmark(name).read_parameters(table)
        service = benchmark(name).service(parameters)
        assert service is not None
        found = {
            "".join(one.groups(""))
            for one in re.finditer(pattern, service.start + benchmark(name).script(parameters))
        }
        ports += found
        assert len(found) == 1
    assert len(set(ports)) == len(ports)
