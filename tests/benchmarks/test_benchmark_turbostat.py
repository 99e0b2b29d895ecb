"""turbostat's tables. No machine here has the counters that it reads, so none could be captured: MANUAL is from the manual that
Debian 12's package has, ONE_SHOT is written by hand after its description; sysbench's output is captured.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.benchmarks import ParseError, Raw
from kduel.benchmarks.turbostat import PLUGIN, read_summary

CAPTURED = Path(__file__).parent / "captured" / "sysbench-1.0.20+ds-1" / "sysbench-cpu-4t-1s-prime2000" / "stdout"
MANUAL = """\
	Core	CPU	Avg_MHz	Busy%	Bzy_MHz	TSC_MHz	CPU%c7	UncMhz
	-	-	524	12.48	4198	3096	74.53	3800
	0	0	4	0.09	4081	3096	98.88	3800
	0	4	1	0.02	4063	3096
	2	2	4178	99.52	4199	3096	0.00
"""
ONE_SHOT = """\
10.003837 sec
Busy%	Bzy_MHz	PkgTmp	PkgWatt
99.71	3893	71	27.42
"""


def raw(table: str) -> Raw:
    return Raw(stdout=CAPTURED.read_text(), stderr="", exit_status=0, files={"turbostat": table})


def parameters(**more: object) -> object:
    return PLUGIN.read_parameters({"threads": 4, "time": 1, "cpu_max_prime": 2000, **more})


def test_the_manuals_table() -> None:
    found = PLUGIN.parse(raw(MANUAL), parameters(columns=["Busy%", "Bzy_MHz"]))
    assert (found["busy"], found["busy-clock"]) == (12.48, 4198.0)
    assert found["events-per-second"] > 0


def test_a_command_of_one_shot() -> None:
    found = PLUGIN.parse(raw(ONE_SHOT), parameters())
    assert found["package-power"] == 27.42 and found["package-temperature"] == 71 and found["busy-clock"] == 3893
    assert list(found) == [metric.name for metric in PLUGIN.metrics(parameters())]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", "0 tables"),
        (ONE_SHOT + ONE_SHOT, "2 tables"),
        (ONE_SHOT.replace("\t27.42", ""), "4 columns and a row of 3"),
        (ONE_SHOT.replace("PkgWatt", "Pkg_J"), "shows no PkgWatt on this machine; it shows Busy%, Bzy_MHz, PkgTmp, Pkg_J"),
        (ONE_SHOT.replace("27.42", "0.00"), "PkgWatt"),
        (ONE_SHOT.replace("27.42", "wide"), "PkgWatt"),
        ("turbostat: no /dev/cpu/0/msr, Try \"# modprobe msr\": No such file or directory\n", "0 tables"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_no_value(table: str, says: str) -> None:
    with pytest.raises(ParseError, match=says):
        PLUGIN.parse(raw(table), parameters())


def test_the_command_that_is_run() -> None:
    script = PLUGIN.script(PLUGIN.read_parameters({"time": 5}))
    assert "turbostat --quiet --Summary --show Busy%,Bzy_MHz,PkgTmp,PkgWatt --out" in script
    assert 'sysbench cpu --threads="$(nproc)" --time=5' in script
    assert read_summary(ONE_SHOT) == {"Busy%": "99.71", "Bzy_MHz": "3893", "PkgTmp": "71", "PkgWatt": "27.42"}
