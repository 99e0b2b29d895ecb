"""The machine icount without a guest: how it tells that two trials differ, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.kernels import Kernel
from kduel.machines import Arm, Needs, machine_kind
from kduel.machines.icount import CPU, compare, plugin_api
from kduel.study.load import assemble, read_study, suites


def trial(where: Path, stdout: str = "{}\n", console: str = "") -> Path:
    (where / "01-pipe").mkdir(parents=True)
    (where / "01-pipe" / "stdout").write_text(stdout)
    (where / "console.log").write_text(console)
    return where


CONSOLE = "     0.101 [    0.5] Linux\n     0.102 kduel: script ended with 0\n     0.103 off\n"


def test_equal_trials_are_equal_whatever_the_hosts_clock_said(tmp_path: Path) -> None:
    one = trial(tmp_path / "a", console=CONSOLE)
    other = trial(tmp_path / "b", console=CONSOLE.replace("     0.1", "    17.2").replace(" off", " on the way off"))
    assert compare(one, other) == 2


def test_a_difference_in_a_file_is_named(tmp_path: Path) -> None:
    one, other = trial(tmp_path / "a", "1\n22\n3\n"), trial(tmp_path / "b", "1\n23\n3\n")
    with pytest.raises(NotMeasuredError, match=r"differ in 01-pipe/stdout: line 2 is b'22' and b'23'"):
        compare(one, other)


def test_a_missing_file_and_a_shorter_one_are_named(tmp_path: Path) -> None:
    one, other = trial(tmp_path / "a"), trial(tmp_path / "b")
    (other / "01-pipe" / "more").write_text("")
    with pytest.raises(NotMeasuredError, match="only one of them has it"):
        compare(one, other)
    (one / "01-pipe" / "more").write_text("x")
    with pytest.raises(NotMeasuredError, match="one is 1 bytes long, the other 0"):
        compare(one, other)


def test_a_difference_on_the_console_is_named(tmp_path: Path) -> None:
    one = trial(tmp_path / "a", console=CONSOLE)
    other = trial(tmp_path / "b", console=CONSOLE.replace("[    0.5]", "[    0.6]"))
    with pytest.raises(NotMeasuredError, match=r"what they print: line 1"):
        compare(one, other)


def test_the_plug_in_fits_qemus_version() -> None:
    assert [plugin_api(f"{v} (Debian 1:{v})") for v in ("7.2.22", "8.2.1", "9.0.0", "9.1.0", "10.0.8")] == [
        1,
        1,
        1,
        3,
        3,
    ]


@pytest.mark.parametrize(
    ("architecture", "settings", "said"),
    [("aarch64", {}, "x86_64"), ("x86_64", {"memory": "4G"}, "memory"), ("x86_64", {"memory": "100M"}, "memory")],
)
def test_what_it_cannot_do_is_refused_before_anything_is_made(
    architecture: str, settings: dict[str, str], said: str, tmp_path: Path
) -> None:
    kind = machine_kind("icount")
    kernel = Kernel(spec="x", release="6.1", architecture=architecture, image=tmp_path / "none", sha256="0")
    arms = [Arm(Contender(kernel="x"), kernel)]
    with pytest.raises(InputError, match=said):
        kind.prepare(kind.read_settings(settings), arms, Needs(), cache=Cache(tmp_path), progress=Progress())


def test_settings_are_checked() -> None:
    kind = machine_kind("icount")
    assert kind.read_settings({"layouts": 5}).layouts == 5
    with pytest.raises(InputError, match="cpus"):
        kind.read_settings({"cpus": 2})


def test_no_entropy_by_default() -> None:
    assert "-rdrand" in CPU and "-rdseed" in CPU


def test_the_suite_is_there() -> None:
    assert 'kind = "icount"' in suites()["exact"]


def test_the_study_of_mitigations_is_one() -> None:
    path = Path(__file__).parents[2] / "studies" / "mitigations-exact.toml"
    text, file = read_study(path)
    made = assemble(file, text, str(path))
    assert made.machine == "icount"
    assert [one.cmdline for one in made.contenders] == ["", "mitigations=off"] * 2
