"""What disturbs measuring on another machine, from its own words; the tree cannot leave its directory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kduel.core.errors import HostError
from kduel.machines.host.doctor import examine_tree
from kduel.machines.remote.connection import CommandResult, Connection
from kduel.machines.remote.snapshot import bring

ANSWER = """\
/proc/loadavg:1.52 1.10 0.70 2/812 4242
/proc/1/comm:systemd
/proc/700/comm:tuned
/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:powersave
/sys/devices/system/cpu/intel_pstate/no_turbo:0
/sys/devices/system/cpu/smt/active:1
/sys/class/power_supply/BAT0/type:Battery
/sys/class/power_supply/BAT0/status:Discharging
/proc/../../../../tmp/kduel-escaped:gotcha
/etc/passwd:root
/proc/stat:cpu  900 0 100 5000 10 0 0 50 0 0
/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count:17
/sys/devices/system/cpu/cpu0/topology/thread_siblings_list:0-1
/sys/devices/system/cpu/cpu1/topology/thread_siblings_list:0-1
/sys/devices/system/cpu/cpu2/topology/thread_siblings_list:2
/sys/devices/system/cpu/cpu3/topology/thread_siblings_list:3
/sys/devices/cpu_core/cpus:0-1
/sys/devices/system/clocksource/clocksource0/current_clocksource:hpet
/proc/cpuinfo:processor\t: 0
/proc/cpuinfo:flags\t\t: fpu vme tsc constant_tsc
/proc/cpuinfo:
/proc/cpuinfo:processor\t: 1
/proc/cpuinfo:flags\t\t: fpu vme tsc constant_tsc
unit:laptop-mode.service
unit:tlp.service
unit:ananicy-cpp.service
unit:ssh.service
unit:fstrim.timer
"""
"""As the script prints it, written down by hand; two lines are hostile."""


def test_everything_that_disturbs_is_told_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(self: Connection, script: str, **_: Any) -> CommandResult:
        # The script itself must at least be shell.
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)
        return CommandResult(0, ANSWER.encode(), "")

    monkeypatch.setattr(Connection, "run", answer)
    findings = examine_tree(bring(Connection("laptop"), tmp_path))
    said = "\n".join(finding.what for finding in findings)
    for what in (
        "busy (load 1.52)", "governor is powersave", "turbo is on", "SMT is on", "runs on battery", "tuned is running",
        "laptop-mode.service is enabled", "tlp.service is enabled", "ananicy-cpp.service is enabled", "1 timer may start work in mid-trial: fstrim.timer",
        "noisy neighbours: CPU steal time of 4.8 %", "throttled 17 times",
        "clock source is hpet", "(TSC) changes its rate or stops (nonstop_tsc missing)",
        "3 cores, 1 of them performance cores, 4 hardware threads: threads = [1, 3, 4] shows",
    ):  # fmt: skip
        assert what in said
    assert "ssh.service" not in said
    assert all(finding.remedy and finding.effect for finding in findings if finding.weight != "good")
    files = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"proc", "sys", "units"}
    assert not Path("/tmp/kduel-escaped").exists()


def test_units_that_are_not_told_are_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "run", lambda *_, **__: CommandResult(0, b"no-units\n", ""))
    said = [finding.what for finding in examine_tree(bring(Connection("laptop"), tmp_path))]
    assert said == ["its services and timers cannot be listed"]


def test_a_machine_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot be re"):
        bring(Connection("no-such-host.invalid"), tmp_path)
