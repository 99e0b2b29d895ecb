"""Energy from a fixture tree of powercap, read by the benchmark's own script; boot stages; sizes.

The counters of the tree are files, moved on by the stand-ins for `sleep` and `sysbench` while the script runs.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kduel.benchmarks import ParseError, Raw
from kduel.benchmarks.power import PLUGIN, Snapshot, mean_watts
from kduel.benchmarks.system_size import PLUGIN as SIZE
from kduel.benchmarks.systemd_analyze import PLUGIN as BOOT
from kduel.core.experiment import Settle
from kduel.guest.script import ScriptStep, compose

CAPTURED = Path(__file__).parent / "captured" / "sysbench-1.0.20+ds-1" / "sysbench-cpu-4t-1s-prime2000" / "stdout"
MOST = 262_143_328_850


def tree(root: Path, zones: dict[str, tuple[str, int]]) -> None:
    """A sysfs with these powercap zones: name and microjoules."""
    for zone, (name, energy) in zones.items():
        place = root / "class" / "powercap" / zone
        place.mkdir(parents=True)
        (place / "name").write_text(f"{name}\n")
        (place / "energy_uj").write_text(f"{energy}\n")
        (place / "max_energy_range_uj").write_text(f"{MOST}\n")


def snapshots(*moments: tuple[str, float, dict[str, tuple[str, object]]]) -> str:
    """The file that the script leaves."""
    lines = []
    for name, uptime, zones in moments:
        lines.append(f"snapshot {name} {uptime}")
        lines += [f"{zone} {what} {energy} {MOST}" for zone, (what, energy) in zones.items()]
    return "\n".join(lines) + "\n"


def raw(energy: str) -> Raw:
    return Raw(stdout=CAPTURED.read_text(), stderr="", exit_status=0, files={"energy": energy})


PARAMETERS = PLUGIN.read_parameters({"threads": 4, "time": 1, "cpu_max_prime": 2000})


def events() -> float:
    (line,) = [line for line in CAPTURED.read_text().splitlines() if "total number of events" in line]
    return float(line.split()[-1])


def test_two_packages_are_summed_exactly_and_one_wraps_around() -> None:
    one, two, core = "intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"
    found = PLUGIN.parse(
        raw(
            snapshots(
                ("idle", 100.0, {one: ("package-0", 5), two: ("package-1", MOST - 60_000_000), core: ("core", 0)}),
                ("load", 110.0, {one: ("package-0", 50_000_005), two: ("package-1", MOST - 10_000_000), core: ("core", 1)}),
                ("end", 120.0, {one: ("package-0", 250_000_005), two: ("package-1", 140_000_000), core: ("core", 2)}),
            )
        ),
        PARAMETERS,
    )  # fmt: skip
    assert found["idle-power"] == 10.0
    # 200 J and, around the end of the counter, 10 + 140 J in 10 s.
    assert found["load-power"] == 35.0
    assert found["energy-per-event"] == pytest.approx(1000 * 350 / events(), rel=1e-12)
    assert found["net-energy-per-event"] == pytest.approx(1000 * 250 / events(), rel=1e-12)
    assert found["events-per-joule"] == pytest.approx(events() / 350, rel=1e-12)


ONE = {"intel-rapl:0": ("package-0", 0)}


def three(**change: object) -> str:
    zones = [{"intel-rapl:0": ("package-0", energy)} for energy in (0, 10_000_000, 40_000_000)]
    return snapshots(("idle", 0.5, zones[0]), ("load", 10.5, zones[1]), ("end", 20.5, zones[2]))


@pytest.mark.parametrize(
    ("energy", "says"),
    [
        (three().replace(" 10000000 ", " denied "), "permission denied to read the energy of package-0"),
        (snapshots(("idle", 0, {}), ("load", 1, {}), ("end", 2, {})), "shows no energy counters"),
        (three().replace("package-0", "psys"), "no energy counter of package; it has psys"),
        ("", "three snapshots"),
        (three().replace("40000000", "19000000"), "was not idle"),
        (three().replace(str(MOST), "4000000000"), "goes around every 4000 J"),
        (three().replace("load 10.5", "load 0.5"), "no time passed"),
        (three().replace(" 10000000 ", " -5 "), "is '-5'"),
        (three()[: three().index("end")], "a line of the energy counters"),
    ],
)
def test_counters_that_do_not_tell_are_refused(energy: str, says: str) -> None:
    with pytest.raises(ParseError, match=says):
        PLUGIN.parse(raw(energy), PARAMETERS)


def test_a_domain_that_is_asked_for_must_be_there() -> None:
    asked = PLUGIN.read_parameters({"threads": 4, "time": 1, "cpu_max_prime": 2000, "domains": ["dram"]})
    with pytest.raises(ParseError, match="no energy counter of dram; it has package-0"):
        PLUGIN.parse(raw(three()), asked)
    before, after = (
        Snapshot(up, {"intel-rapl:0": ("package-0", 0, MOST), "intel-rapl:0:2": ("dram", energy, MOST)})
        for up, energy in ((0.0, 0), (4.0, 6_000_000))
    )
    assert mean_watts(before, after, "dram") == 1.5


def test_the_script_reads_the_tree_as_it_is(tmp_path: Path) -> None:
    """The shell lines themselves, in the guest script, with counters that move while it runs."""
    root, programs, out = tmp_path / "sys", tmp_path / "bin", tmp_path / "out"
    tree(root, {"intel-rapl:0": ("package-0", MOST - 1_000_000), "intel-rapl:0:0": ("core", 7), "intel-rapl:1": ("package-1", 0),
                "intel-rapl-mmio:0": ("package-0", 3)})  # fmt: skip
    programs.mkdir()
    powercap = root / "class" / "powercap"
    move = 'echo "$2" >"$1/energy_uj"'
    for name, body in {
        "sleep": f"[ $1 = 10 ] || exit 0; {powercap}/move intel-rapl:0 500000; {powercap}/move intel-rapl:1 1000000; exec /bin/sleep 0.2",
        "sysbench": f"{powercap}/move intel-rapl:0 9500000; {powercap}/move intel-rapl:1 5000000; /bin/sleep 0.2; "
        f"cat {CAPTURED}",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    (powercap / "move").write_text(f'#!/bin/sh\nset -- "{powercap}/$1" "$2"\n{move}\n')
    (powercap / "move").chmod(0o755)
    part = ScriptStep(label="power", script=PLUGIN.script(PARAMETERS), timeout=30)
    script = tmp_path / "guest.sh"
    script.write_text(compose([part], settle=Settle(mode="fixed", seconds=0)))
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "KDUEL_SYSFS": str(root)}
    subprocess.run(["sh", str(script), str(out)], env=environment, check=True, capture_output=True)
    kept = Raw.read(out / "01-power")
    assert kept.exit_status == 0, kept.stderr
    seen = kept.files["energy"]
    assert "mmio" not in seen and f"intel-rapl:0 package-0 {MOST - 1_000_000} {MOST}" in seen
    found = PLUGIN.parse(kept, PARAMETERS)
    # 1.5 J around the end, and 1 J; then 9 J and 4 J: by the file's own times.
    times = [float(line.split()[2]) for line in seen.splitlines() if line.startswith("snapshot")]
    assert found["idle-power"] == pytest.approx(2.5 / (times[1] - times[0]), rel=1e-12)
    assert found["load-power"] == pytest.approx(13 / (times[2] - times[1]), rel=1e-12)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "Startup finished in 1.234s (kernel) + 5.678s (userspace) = 6.912s \ngraphical.target reached after 5s\n",
            {"kernel": 1.234, "userspace": 5.678, "time": 6.912},
        ),
        (
            "Startup finished in 11.2s (firmware) + 802ms (loader) + 3.5s (kernel) + 1min 2.498s (userspace) = 1min 18s \n",
            {"kernel": 3.5, "userspace": 62.498, "time": 65.998},
        ),
    ],
)
def test_boot_stages(line: str, values: dict[str, float]) -> None:
    found = BOOT.parse(Raw(stdout=line, stderr="", exit_status=0), BOOT.read_parameters({}))
    assert found == pytest.approx(values)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("Bootup is not yet finished\n", "no line"),
        ("Startup finished in 5.678s (userspace) = 5.678s \n", "no stage kernel"),
        ("Startup finished in 1.0s (kernel) + 5.678s (userspace) = 16.678s \n", "add up to 6.678"),
        ("Startup finished in x (kernel) + 5s (userspace) = 5s \n", "a stage is 'x"),
    ],
)
def test_boot_stages_that_are_not_there_are_refused(line: str, says: str) -> None:
    with pytest.raises(ParseError, match=says):
        BOOT.parse(Raw(stdout=line, stderr="", exit_status=0), BOOT.read_parameters({}))


def test_sizes() -> None:
    whole = Raw(stdout="modules: 48\ninitramfs: 24117248\n", stderr="", exit_status=0)
    assert SIZE.parse(whole, SIZE.read_parameters({})) == {"modules": 48, "initramfs": 24117248}
    with pytest.raises(ParseError, match="size of the initial RAM disk"):
        SIZE.parse(Raw(stdout="modules: 48\n", stderr="", exit_status=0), SIZE.read_parameters({}))
    bare = SIZE.read_parameters({"initramfs": False})
    assert SIZE.parse(Raw(stdout="modules: 0\n", stderr="", exit_status=0), bare) == {"modules": 0}
