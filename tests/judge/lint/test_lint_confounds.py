"""The confound table: every difference between the arms found, told apart from those that were meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.core.experiment import Contender, MachineRecord
from kduel.core.results import Results, StudyResult
from kduel.judge.lint.confounds import DeclaredDifferences, declared_by, differences, topic
from kduel.judge.lint.examine import findings_of_run

BASE: dict[str, Any] = {
    "release": "6.1.0-40-amd64",
    "architecture": "x86_64",
    "cmdline": "console=ttyS0 quiet root=/dev/vda",
    "clocksource": "tsc",
    "cpus": 2,
    "memory_kib": 4_030_000,
    "config": {"CONFIG_HZ": "250", "CONFIG_PREEMPT": "n", "CONFIG_SCHED_CORE": "y", "CONFIG_DRM_VKMS": "m"},
    "mitigations": {"spectre_v2": "Mitigation: Retpolines", "meltdown": "Not affected"},
    "sysctl": {"kernel.sched_autogroup_enabled": "1", "vm.swappiness": "60"},
    "cpu_model": "Some CPU",
    "cpu_flags": ["sse2", "avx", "avx2"],
    "packages": {"sysbench": "1.0.20", "perf": "6.1"},
    "boot_id": "one",
}


def other(**changed: Any) -> dict[str, Any]:
    """BASE with some keys changed; tables are merged."""
    return {
        key: value | changed[key] if key in changed and isinstance(value, dict) else changed.get(key, value)
        for key, value in (BASE | {key: BASE.get(key, value) for key, value in changed.items()}).items()
    }


def compare(new: dict[str, Any], declared: DeclaredDifferences | None = None) -> dict[str, bool]:
    """By full name of each difference, whether it is declared."""
    found = differences({"old": [BASE], "new": [new]}, declared or DeclaredDifferences())
    return {f"{d.group}.{d.key}": d.declared for d in found}


KERNELS = DeclaredDifferences(kernels=True)


def test_equal_environments_do_not_differ() -> None:
    assert compare(other(boot_id="two", sysctl={"kernel.perf_event_max_sample_rate": "63000"})) == {}
    # Computed at boot from the memory that happens to be free: a real run of one kernel under two names had ten values.
    assert compare(other(sysctl={"vm.user_reserve_kbytes": "124783"})) == {}


def test_what_older_trials_do_not_record_is_no_difference() -> None:
    """A run that was begun before renicers and peers were recorded, and goes on."""
    old = other(conditions={"governor": "performance"})
    new = old | {"conditions": {"governor": "performance", "renicers": "none"}, "peer": {"release": "6.1"}}
    assert differences({"old": [old, new], "new": [old, old, new]}, DeclaredDifferences()) == []
    assert differences({"old": [old, old], "new": [new, new]}, DeclaredDifferences()) == []
    gamemode = new | {"conditions": {"governor": "performance", "renicers": "gamemoded"}}
    found = differences({"old": [old, new], "new": [gamemode, gamemode]}, DeclaredDifferences())
    assert [(one.group, one.key) for one in found] == [("conditions", "renicers")]


def test_a_kernel_that_reported_trouble_has_no_other_setting() -> None:
    """A real A/A had two soft lockups on a busy host, and `kernel.tainted` was called an undeclared difference."""

    def compared(old: int, new: int) -> list[str]:
        environments = [[other(sysctl={"kernel.tainted": str(value)})] for value in (old, new)]
        return [
            one.key
            for one in differences(dict(zip(("old", "new"), environments, strict=True)), DeclaredDifferences())
        ]

    lockup, warning, out_of_tree = 1 << 14, 1 << 9, 1 << 12
    assert compared(0, lockup | warning) == []
    assert compared(out_of_tree, out_of_tree | lockup) == []
    assert compared(lockup, out_of_tree) == ["kernel.tainted"]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"clocksource": "hpet"}, "clocksource.clocksource"),
        ({"clocksource_end": "hpet"}, "clocksource.clocksource_end"),
        ({"cmdline": "console=ttyS0 quiet root=/dev/vda mitigations=off"}, "cmdline.mitigations"),
        ({"cmdline": "console=ttyS0 root=/dev/vda"}, "cmdline.quiet"),
        ({"cmdline": "console=ttyS1 quiet root=/dev/vda"}, "cmdline.console"),
        ({"mitigations": {"spectre_v2": "Vulnerable"}}, "mitigations.spectre_v2"),
        ({"sysctl": {"vm.swappiness": "10"}}, "sysctl.vm.swappiness"),
        ({"packages": {"perf": "6.12"}}, "packages.perf"),
        ({"cpus": 4}, "hardware.cpus"),
        ({"memory_kib": 8_000_000}, "hardware.memory_kib"),
        ({"cpu_model": "Other CPU"}, "hardware.cpu_model"),
        ({"platform_profile": "balanced"}, "conditions.platform_profile"),
        ({"conditions": {"cooldown": "5 s"}}, "conditions.cooldown"),
        ({"firmware": {"bios": {"version": "2"}}}, "firmware.bios.version"),
    ],
)
def test_what_differs_without_being_declared_is_a_confound(changed: dict[str, Any], name: str) -> None:
    assert compare(other(**changed), KERNELS) == {name: False}


@pytest.mark.parametrize(
    "changed",
    [
        {"release": "6.12.48-amd64"},
        {"config": {"CONFIG_HZ": "1000"}},
        {"config": {"CONFIG_SCHED_CLASS_EXT": "y"}},
        {"cpu_flags": ["sse2", "avx", "avx2", "la57"]},
        {"sysctl": {"kernel.new_knob": "1"}},
        {"cmdline": "BOOT_IMAGE=/other console=ttyS0 quiet root=/dev/vda"},
    ],
)
def test_what_follows_from_other_kernels_is_declared_but_listed(changed: dict[str, Any]) -> None:
    assert list(compare(other(**changed), KERNELS).values()) == [True]
    assert list(compare(other(**changed)).values()) == [False], "the same kernel twice must not differ so"


def test_other_flags_of_another_processor_are_a_confound() -> None:
    found = compare(other(cpu_flags=["sse2"], cpu_model="Other CPU"), KERNELS)
    assert found == {"hardware.cpu_flags": False, "hardware.cpu_model": False}


def test_an_option_that_is_off_and_one_that_is_unknown_are_alike() -> None:
    assert compare(other(config={"CONFIG_NEW": "n", "CONFIG_OTHER": "not set"}), KERNELS) == {}


def test_a_kernel_that_sees_a_little_less_memory_is_the_same_machine() -> None:
    assert compare(other(memory_kib=4_010_000)) == {}


def test_contenders_declare_what_their_tables_set() -> None:
    declared = declared_by(
        [
            Contender(kernel="debian:6.12", cmdline="quiet preempt=none"),
            Contender(kernel="debian:6.12", cmdline="quiet preempt=full nohz_full=1", sysctl={"vm.swappiness": 10}),
        ],
        keys=("packages",),
    )
    assert not declared.kernels and not declared.scheduler
    assert "preempt" in declared.cmdline and "nohz_full" in declared.cmdline and "quiet" not in declared.cmdline
    changed = other(
        cmdline="console=ttyS0 quiet root=/dev/vda preempt=full nosmt",
        sysctl={"vm.swappiness": "10", "kernel.sched_autogroup_enabled": "0"},
        packages={"perf": "6.12"},
    )
    assert compare(changed, declared) == {
        "cmdline.preempt": True,
        "cmdline.nosmt": False,
        "sysctl.vm.swappiness": True,
        "sysctl.kernel.sched_autogroup_enabled": False,
        "packages.perf": True,
    }


def test_schedulers_and_policies_are_declared_by_the_contenders() -> None:
    declared = declared_by(
        [
            Contender(kernel="k"),
            Contender(kernel="k", scheduler="scx_bpfland"),
            Contender(kernel="k", policy="fifo:50"),
        ]
    )
    assert declared.scheduler and not declared.kernels
    assert compare(other(sched_ext={"ops": "bpfland_1.1.4"}), declared) == {"scheduler.sched_ext.ops": True}
    assert compare(other(sched_ext={"ops": "bpfland_1.1.4"})) == {"scheduler.sched_ext.ops": False}


def test_settings_of_the_machine_declare_what_follows_from_them() -> None:
    declared = declared_by([Contender(kernel="k", machine={"cpus": 2}), Contender(kernel="k", machine={"cpus": 4})])
    changed = other(cpus=4, topology={"llc": ["0-3"]}, clocksource="hpet")
    assert compare(changed, declared) == {
        "hardware.cpus": True,
        "topology.llc": True,
        "clocksource.clocksource": False,
    }
    declared = declared_by([Contender(kernel="k"), Contender(kernel="k", machine={"clocksource": "hpet"})])
    assert compare(other(clocksource="hpet"), declared) == {"clocksource.clocksource": True}
    assert compare(changed)["hardware.cpus"] is False


def test_lists_are_told_by_what_only_one_arm_has() -> None:
    (found,) = differences({"old": [BASE], "new": [other(cpu_flags=["avx", "la57"])]}, DeclaredDifferences())
    assert found.values == {"old": "avx2 sse2", "new": "la57"}


def test_trials_that_disagree_among_themselves_are_counted_and_never_declared() -> None:
    trials = [BASE] * 7 + [other(clocksource="hpet", release="6.12")] * 3
    found = {d.key: d for d in differences({"old": trials, "new": [BASE] * 10}, KERNELS)}
    assert found["clocksource"].values == {"old": "tsc (7 of 10), hpet (3 of 10)", "new": "tsc"}
    assert not found["clocksource"].declared and not found["release"].declared


def test_an_arm_of_which_nothing_is_known_is_not_compared() -> None:
    assert differences({"old": [BASE], "new": []}, DeclaredDifferences()) == []
    assert differences({"old": [], "new": [{}]}, DeclaredDifferences()) == []
    assert differences({}, DeclaredDifferences()) == []


def test_the_scheduler_and_timer_options_come_first_and_are_counted() -> None:
    config = {
        "CONFIG_ZRAM": "y",
        "CONFIG_SCHED_CLASS_EXT": "y",
        "CONFIG_NO_HZ_FULL": "y",
        "CONFIG_AAA": "y",
        "CONFIG_HZ": "1000",
    }
    found = differences({"old": [BASE], "new": [other(config=config, clocksource="hpet")]}, KERNELS)
    assert [d.key for d in found] == [
        "clocksource", "CONFIG_SCHED_CLASS_EXT", "CONFIG_HZ", "CONFIG_NO_HZ_FULL", "CONFIG_ZRAM", "CONFIG_AAA",
    ]  # fmt: skip
    told = {
        warning.code: warning.message
        for warning in findings_of_run(
            Results(
                study=StudyResult(edition=2),
                machine=MachineRecord(),
                contenders=[],
                trials=[],
                metrics=[],
                differences=found,
            ),
            [],
        )
    }
    assert "differ in 5 options (1 scheduler, 2 timers, 1 memory, 1 other)" in told["config-differs"]
    assert "1 property that" in told["confounds"]
    assert "clocksource: clocksource" in told["confounds"]


@pytest.mark.parametrize(
    ("option", "about"),
    [
        ("CONFIG_PREEMPT_DYNAMIC", "scheduler"),
        ("CONFIG_HZ_250", "timers"),
        ("CONFIG_HIGH_RES_TIMERS", "timers"),
        ("CONFIG_RCU_BOOST", "RCU"),
        ("CONFIG_MITIGATION_RETPOLINE", "mitigations"),
        ("CONFIG_DEBUG_INFO_BTF", "debugging"),
        ("CONFIG_CPU_IDLE_GOV_TEO", "power"),
        ("CONFIG_TRANSPARENT_HUGEPAGE", "memory"),
        ("CONFIG_CC_IS_GCC", "compiler"),
        ("CONFIG_DRM_VIRTIO_GPU", "other"),
    ],
)
def test_options_have_topics(option: str, about: str) -> None:
    assert topic(option) == about


def test_long_values_are_cut() -> None:
    (found,) = differences({"old": [BASE], "new": [other(cpu_model="x" * 5000)]}, DeclaredDifferences())
    value = found.values["new"]
    assert value is not None and len(value) <= 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
ENVIRONMENT = st.dictionaries(
    st.sampled_from(["release", "cmdline", "config", "packages", "odd", "memory_kib"]), JSON
)


@pytest.mark.slow
@given(st.lists(ENVIRONMENT, max_size=3), st.lists(ENVIRONMENT, max_size=3))
def test_whatever_a_guest_captured_is_compared_without_falling_over(
    old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> None:
    found = differences({"old": old, "new": new}, KERNELS)
    assert differences({"old": new, "new": new}, KERNELS) == [
        d for d in differences({"old": new, "new": new}, KERNELS) if any("of" in (v or "") for v in d.values.values())
    ]
    for difference in found:
        assert set(difference.values) == {"old", "new"}


def of_command_lines(*given: tuple[str, dict[str, Any]]) -> dict[str, bool]:
    """By name of each difference, whether it is declared, of contenders with these command lines and environments."""
    arms = [Contender(kernel="k", name=f"c{number}", cmdline=words) for number, (words, _) in enumerate(given)]
    environments = {
        arm.name: [other(cmdline=f"{BASE['cmdline']} {words}".strip(), **changed)]
        for arm, (words, changed) in zip(arms, given, strict=True)
    }
    return {f"{d.group}.{d.key}": d.declared for d in differences(environments, declared_by(arms))}


OFF = {"mitigations": {"spectre_v2": "Vulnerable"}}


def test_what_a_declared_parameter_sets_is_declared() -> None:
    """A study that declares mitigations=off was told to declare spectre_v2."""
    assert of_command_lines(("", {}), ("mitigations=off", OFF)) == {
        "cmdline.mitigations": True,
        "mitigations.spectre_v2": True,
    }
    assert of_command_lines(("", {}), ("nospectre_v2", OFF))["mitigations.spectre_v2"]
    assert of_command_lines(("", {"preempt": "voluntary"}), ("preempt=full", {"preempt": "full"}))["kernel.preempt"]


def test_a_declared_parameter_declares_nothing_that_it_does_not_set() -> None:
    found = of_command_lines(("", {"preempt": "voluntary"}), ("mitigations=off", OFF | {"preempt": "full"}))
    assert found["mitigations.spectre_v2"] and not found["kernel.preempt"]
    assert not of_command_lines(("", {}), ("nospectre_v1", OFF))["mitigations.spectre_v2"]
    assert not of_command_lines(("mitigations=off", {}), ("mitigations=off", OFF))["mitigations.spectre_v2"]
    three = of_command_lines(("", {}), ("", OFF), ("mitigations=off", OFF))
    assert not three["mitigations.spectre_v2"], "the first two differ without a parameter"
