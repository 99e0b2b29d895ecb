"""Policies in words, and what is refused before the first boot."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.benchmarks import benchmark
from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.kernels import Kernel
from kduel.schedulers import parse_policy, validate
from kduel.schedulers.knobs import knob_path
from kduel.schedulers.validate import check_written


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("other", "other"),
        ("batch nice:3", "batch+nice:3"),
        ("nice:-5", "other+nice:-5"),
        ("idle", "idle"),
        ("ext", "ext"),
        ("rr:1", "rr:1"),
        ("fifo:99", "fifo:99"),
        ("slice:3ms nice:5", "other+nice:5+slice:3000000"),
        ("slice:0.1ms", "other+slice:100000"),
        ("deadline:2ms,10ms,10ms", "deadline:2000000,10000000,10000000"),
        ("deadline:1024ns,100us,4s", "deadline:1024,100000,4000000000"),
    ],
)
def test_policies_are_understood(text: str, canonical: str) -> None:
    policy = parse_policy(text)
    assert policy.canonical == canonical
    # What is written for our programs means the same to us, but for the unit of times.
    if ":" not in canonical or policy.kind in ("fifo", "rr"):
        assert parse_policy(canonical).canonical == canonical


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("fifi:50", "'fifi:50' is not known"),
        ("fifo", "'fifo' is not known"),
        ("fifo:0", "priority is 0"),
        ("rr:100", "priority is 100"),
        ("nice:20", "nice level is 20"),
        ("fifo:50 nice:3", "fifo has no nice"),
        ("idle slice:3ms", "idle has no slice"),
        ("other batch", "policy twice"),
        ("nice:1 nice:2", "nice twice"),
        ("slice:3", "not a time with a unit"),
        ("slice:200ms", "0.1 to 100 ms"),
        ("deadline:1ms,2ms", "three times"),
        ("deadline:1000ns,1ms,1ms", "1024 ns"),
        ("deadline:3ms,2ms,10ms", "runtime <= deadline <= period"),
        ("deadline:1ms,10ms,5ms", "runtime <= deadline <= period"),
        ("deadline:10us,50us,50us", "100 us to 4.19 s"),
        ("deadline:1s,5s,5s", "100 us to 4.19 s"),
    ],
)
def test_what_no_kernel_takes_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_policy(text)
    assert why in caught.value.message
    assert "policy" in caught.value.remedy


@given(st.text(max_size=60))
def test_any_text_is_a_policy_or_an_input_error(text: str) -> None:
    try:
        policy = parse_policy(text)
    except InputError:
        return
    assert set(policy.canonical) <= set("abcdefghijklmnopqrstuvwxyz0123456789:,+-")


CONFIG_612 = (
    "# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_DEBUG_INFO_BTF=y\n"
    "# CONFIG_SCHED_CLASS_EXT is not set\n"
)
CONFIG_73 = (
    "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\nCONFIG_DEBUG_INFO_BTF=y\nCONFIG_SCHED_CLASS_EXT=y\n"
)


def kernel(tmp_path: Path, release: str, config: str | None) -> Kernel:
    path = None
    if config is not None:
        path = tmp_path / "config"
        path.write_text(config)
    return Kernel(spec="x", release=release, image=tmp_path, sha256="0", config=path)


def steps(**parameters: Any) -> list[tuple[Any, Any]]:
    chosen = benchmark("kload")
    return [(chosen, chosen.read_parameters(parameters))]


@pytest.mark.parametrize(
    ("release", "config", "contender", "why"),
    [
        ("6.12.1", CONFIG_612, {"scheduler": "scx_bpfland"}, "6.12.1 has no sched_ext"),
        ("6.1.0", None, {"scheduler": "scx_bpfland"}, "new in 6.12"),
        ("6.1.0", None, {"policy": "slice:3ms"}, "since 6.12"),
        ("6.12.1", CONFIG_612, {"cmdline": "quiet preempt=lazy"}, "lazy preemption"),
        ("6.1.0", "", {"cmdline": "preempt=full"}, "PREEMPT_DYNAMIC"),
        ("7.3.0", CONFIG_73, {"cmdline": "preempt=some"}, "no preemption mode"),
        ("7.3.0", CONFIG_73, {"cmdline": "preempt=none"}, "has no preempt=none any more"),
        ("7.3.0", CONFIG_73, {"cmdline": "preempt=voluntary"}, "has no preempt=voluntary any more"),
        ("7.3.0", "", {"sysctl": {"kernel.sched_autogroup_enabled": 0}}, "SCHED_AUTOGROUP"),
        ("7.3.0", CONFIG_73, {"policy": "ext"}, "needs a scheduler"),
        ("7.3.0", CONFIG_73, {"scheduler": "scx_lavd 'open"}, "is no command: No closing quotation"),
        ("7.3.0", CONFIG_73, {"scheduler": " "}, "the scheduler is blank"),
        ("7.3.0", CONFIG_73, {"sysctl": {"debug.sched.features": "no_lag"}}, "names no scheduler features"),
        ("7.3.0", CONFIG_73, {"sysctl": {"../etc/passwd": "1"}}, "neither a sysctl"),
        ("7.3.0", CONFIG_73, {"policy": "deadline:1ms,100ms,100ms"}, "reserve 10 CPUs"),
    ],
)
def test_what_the_kernel_lacks_is_told_before_the_boot(
    tmp_path: Path, release: str, config: str | None, contender: dict[str, Any], why: str
) -> None:
    with pytest.raises(InputError) as caught:
        validate(Contender(kernel="k", **contender), kernel(tmp_path, release, config), steps(processes=1000), cpus=2)
    assert why in str(caught.value)


def test_what_the_kernel_has_passes(tmp_path: Path) -> None:
    contender = Contender(kernel="k", scheduler="scx_lavd --performance", cmdline="preempt=lazy")
    validate(contender, kernel(tmp_path, "7.3.0", CONFIG_73), steps(), cpus=2)
    for mode in ("none", "voluntary", "full"):
        validate(Contender(kernel="k", cmdline=f"preempt={mode}"), kernel(tmp_path, "6.12.1", CONFIG_612), steps())
    admitted = Contender(kernel="k", policy="deadline:1ms,1s,1s")
    validate(admitted, kernel(tmp_path, "6.1.0", None), steps(processes=1000), cpus=2)


@pytest.mark.parametrize(
    ("spec", "key", "fits"),
    [
        ("debian:6.1", "debug.sched.base_slice_ns", False),
        ("debian:6.6-cloud", "debug.sched.base_slice_ns", True),
        ("debian-source:6.12.1", "debug.sched.latency_ns", False),
        ("debian:5.10", "debug.sched.latency_ns", False),
        ("debian:5.10", "kernel.sched_latency_ns", True),
        ("debian:6.1", "kernel/sched_latency_ns", False),
        ("debian:6", "debug.sched.base_slice_ns", True),
        ("git:linux#v6.1", "debug.sched.base_slice_ns", True),
    ],
)
def test_a_scheduler_knob_is_checked_against_the_release_where_it_is_written(spec: str, key: str, fits: bool) -> None:
    with nullcontext() if fits else pytest.raises(InputError, match=f"has no {key}"):
        check_written(Contender(kernel=spec, sysctl={key: 1}), [], cpus=None)


def test_a_deadline_policy_is_refused_for_programs_that_fork(tmp_path: Path) -> None:
    chosen = benchmark("hackbench")
    with pytest.raises(InputError, match="forbids a deadline task to fork"):
        validate(
            Contender(kernel="k", policy="deadline:1ms,10ms,10ms"),
            kernel(tmp_path, "6.12.0", None),
            [(chosen, chosen.read_parameters({}))],
        )


def test_knobs_are_files() -> None:
    assert knob_path("kernel.sched_autogroup_enabled") == "/proc/sys/kernel/sched_autogroup_enabled"
    assert knob_path("net.ipv4.conf.eth0/1.rp_filter") == "/proc/sys/net/ipv4/conf/eth0.1/rp_filter"
    assert knob_path("debug.sched.base_slice_ns") == "/sys/kernel/debug/sched/base_slice_ns"
    assert knob_path("/sys/block/vda/queue/scheduler") == "/sys/block/vda/queue/scheduler"
    assert knob_path("net/ipv4/conf/eth0.1/rp_filter") == "/proc/sys/net/ipv4/conf/eth0.1/rp_filter"
