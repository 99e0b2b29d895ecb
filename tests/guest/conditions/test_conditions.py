"""Conditions on a fixture tree: told as they are, held within bands, set, and put back even after a crash."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kduel.core.errors import InputError
from kduel.guest.conditions import OUT_OF_BAND, Bands, check, read_conditions, script

FIXTURE = {
    "sys/firmware/acpi/platform_profile": "performance",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "5200000",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "sys/devices/system/cpu/smt/active": "1",
    "sys/class/power_supply/AC/type": "Mains",
    "sys/class/power_supply/AC/online": "1",
    "sys/class/power_supply/BAT0/type": "Battery",
    "sys/class/powercap/intel-rapl:0/name": "package-0",
    "sys/class/powercap/intel-rapl:0/constraint_0_name": "long_term",
    "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw": "64000000",
    "sys/class/thermal/thermal_zone0/type": "acpitz",
    "sys/class/thermal/thermal_zone0/temp": "91000",
    "sys/class/thermal/thermal_zone1/type": "x86_pkg_temp",
    "sys/class/thermal/thermal_zone1/temp": "54000",
    "sys/class/hwmon/hwmon3/name": "thinkpad",
    "sys/class/hwmon/hwmon3/fan1_input": "2800",
    "sys/bus/usb/devices/2-1/idVendor": "17ef",
    "sys/bus/usb/devices/2-1/idProduct": "30b4",
    "sys/bus/usb/devices/2-1/product": "USB-C Dock",
    "proc/812/comm": "gamemoded",
    "proc/90/comm": "ananicy-cpp",
    "proc/91/comm": "ananicy-cpp",
    "proc/92/comm": "not-gamemoded",
    "proc/loadavg": "0.12 0.34 0.56 1/234 5678",
    "proc/modules": "cdc_ether 24576 0 - Live 0x0\nusbnet 61440 1 cdc_ether, Live 0x0",
}
"""A laptop with a dock, as sysfs and procfs show it, written down by hand."""


class Laptop:
    """The fixture tree, and the script run on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FIXTURE.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"{text}\n")
        self.restore = root / "restore.sh"
        self.out = root / "conditions"

    def read(self, name: str) -> str:
        return (self.root / name).read_text().strip()

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(f"{text}\n")

    def run(self, bands: Bands, what: str = "begin") -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"KDUEL_SYSFS": str(self.root / "sys"), "KDUEL_PROC": str(self.root / "proc")}
        return subprocess.run(
            ["sh", "-c", script(bands, str(self.restore)), "conditions", what, str(self.out)],
            env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip


GOVERNORS = [f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor" for number in (0, 1)]


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


def test_everything_is_told_as_it_is(laptop: Laptop) -> None:
    assert laptop.run(Bands()).returncode == 0
    assert read_conditions(laptop.out) == {
        "platform_profile": "performance",
        "governor": "performance,powersave",
        "frequency_max": "5200000",
        "turbo": "on",
        "smt": "on",
        "supply": "AC",
        "power_limit.package-0.long_term": "64000000",
        "temperatures": "54000",
        "fans.thinkpad.fan1_input": "2800",
        "load": "0.12",
        "renicers": "ananicy-cpp,gamemoded",
        "usb": ["17ef:30b4 USB-C Dock"],
        "modules": ["cdc_ether", "usbnet"],
    }


def test_what_is_not_there_is_not_told(laptop: Laptop) -> None:
    shutil.rmtree(laptop.root / "sys")
    (laptop.root / "sys").mkdir()
    for program in (90, 91, 812):
        shutil.rmtree(laptop.root / f"proc/{program}")
    assert laptop.run(Bands()).returncode == 0
    found = read_conditions(laptop.out)
    assert set(found) == {"load", "modules", "renicers"}
    assert found["renicers"] == "none", "so that two runs differ where one had such a program"


@pytest.mark.parametrize(
    ("bands", "change", "says"),
    [
        ({"governor": "performance"}, {}, "governor is performance,powersave, required is performance"),
        ({"platform_profile": "balanced"}, {}, "platform_profile is performance, required is balanced"),
        ({"turbo": "off"}, {}, "turbo is on, required is off"),
        ({"smt": "off"}, {}, "smt is on"),
        ({"supply": "AC"}, {"sys/class/power_supply/AC/online": "0"}, "supply is battery, required is AC"),
        ({"temperature_below": 50, "wait": 0}, {}, "temperature is 54000, required is below 50000 after 0 s"),
        ({"load_below": 0.1, "wait": 0}, {}, "load is 0.12, required is below 0.1"),
    ],
)
def test_a_trial_outside_its_band_is_void(
    laptop: Laptop, bands: dict[str, Any], change: dict[str, str], says: str
) -> None:
    for name, text in change.items():
        laptop.write(name, text)
    done = laptop.run(Bands(**bands))
    assert done.returncode == OUT_OF_BAND
    assert says in done.stdout
    assert not laptop.out.exists()


def test_within_all_bands(laptop: Laptop) -> None:
    bands = Bands(
        platform_profile="performance", turbo="on", smt="on", supply="AC", temperature_below=60, load_below=0.3
    )
    assert laptop.run(bands).returncode == 0
    assert laptop.run(bands, "end").returncode == 0


def test_a_condition_lost_on_the_way_voids_too(laptop: Laptop) -> None:
    bands = Bands(supply="AC")
    assert laptop.run(bands).returncode == 0
    laptop.write("sys/class/power_supply/AC/online", "0")
    assert laptop.run(bands, "end").returncode == OUT_OF_BAND


SETTING = Bands(
    governor="performance", turbo="off", platform_profile="balanced", set=("governor", "turbo", "platform_profile")
)


def test_what_is_set_is_put_back(laptop: Laptop) -> None:
    assert laptop.run(SETTING).returncode == 0
    assert [laptop.read(name) for name in GOVERNORS] == ["performance", "performance"]
    assert laptop.read("sys/devices/system/cpu/intel_pstate/no_turbo") == "1"
    assert laptop.run(SETTING, "end").returncode == 0
    for name in (*GOVERNORS, "sys/devices/system/cpu/intel_pstate/no_turbo", "sys/firmware/acpi/platform_profile"):
        assert laptop.read(name) == FIXTURE[name]
    assert not laptop.restore.exists()


def test_after_a_crash_the_next_trial_puts_back_first(laptop: Laptop) -> None:
    """The crash is a trial without an end: its restore script lies there, and the next one runs it before all else."""
    assert laptop.run(SETTING).returncode == 0
    assert laptop.run(Bands()).returncode == 0
    assert read_conditions(laptop.out)["governor"] == "performance,powersave"
    assert laptop.read("sys/firmware/acpi/platform_profile") == "performance"
    assert laptop.run(SETTING).returncode == 0
    assert laptop.run(SETTING, "restore").returncode == 0
    assert [laptop.read(name) for name in GOVERNORS] == ["powersave", "performance"]


@pytest.mark.parametrize("then", ["begin", "end", "restore"])
@pytest.mark.parametrize(
    "lost", ["sys/devices/system/cpu/intel_pstate/no_turbo", "sys/firmware/acpi/platform_profile"]
)
def test_what_could_not_be_put_back_voids_and_is_tried_again(laptop: Laptop, then: str, lost: str) -> None:
    """Whether the first or the last of what was set: the rest is put back, and the trial's own bands would still hold."""
    bands = Bands(turbo="off", platform_profile="balanced", set=("turbo", "platform_profile"))
    assert laptop.run(bands).returncode == 0
    assert laptop.run(Bands()).returncode == 0, "what is set is put back by the next trial"
    assert laptop.run(bands).returncode == 0
    path = laptop.root / lost
    path.unlink()
    path.mkdir()
    assert laptop.run(Bands(), then).returncode != 0
    (other,) = {"sys/devices/system/cpu/intel_pstate/no_turbo", "sys/firmware/acpi/platform_profile"} - {lost}
    assert laptop.read(other) == FIXTURE[other]
    path.rmdir()
    assert laptop.run(Bands(), "restore").returncode == 0
    assert laptop.read(lost) == FIXTURE[lost] and not laptop.restore.exists()


def test_what_cannot_be_set_is_told_and_the_rest_put_back_later(laptop: Laptop) -> None:
    (laptop.root / "sys/firmware/acpi/platform_profile").unlink()
    done = laptop.run(SETTING)
    assert done.returncode == OUT_OF_BAND and "platform_profile cannot be written" in done.stdout
    assert laptop.run(SETTING, "restore").returncode == 0
    assert [laptop.read(name) for name in GOVERNORS] == ["powersave", "performance"]


def test_setting_needs_a_value_and_values_are_words() -> None:
    with pytest.raises(InputError, match="governor is to be set"):
        check(Bands(set=("governor",)))
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"governor": "x; rm -rf /"}, Bands)
