"""The machine icount without a guest: how it tells that two trials differ, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.guest.processor import MASKED, cpu_model, known_features, plugin_api
from kduel.kernels import Kernel
from kduel.machines import Arm, Needs, machine_kind
from kduel.study.file import read_study, suites
from kduel.study.load import assemble


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
        kind.read_settings({"cpus": 17})


def test_no_entropy_and_no_fast_strings_where_qemu_knows_them() -> None:
    known = known_features()
    assert {"rdrand", "rdseed", "erms", "la57"} <= known
    words = cpu_model(known).split(",")
    assert {"-rdrand", "-rdseed", "-erms"} <= set(words)
    assert {word.removeprefix("-") for word in words if word.startswith("-")} == known & set(MASKED)


def test_a_newer_qemus_features_are_left_out_where_it_has_them() -> None:
    older, newer = cpu_model({"erms", "sse"}), cpu_model({"erms", "fsrs", "fzrm", "fsrc", "sse"})
    assert newer.replace(",-fsrs,-fzrm,-fsrc", "") == older


def test_the_suite_is_there() -> None:
    assert 'kind = "icount"' in suites()["exact"]


def test_the_study_of_mitigations_is_one() -> None:
    path = Path(__file__).parents[2] / "studies" / "mitigations-exact.toml"
    text, file = read_study(path)
    made = assemble(file, text, str(path))
    assert made.machine == "icount"
    assert [one.cmdline for one in made.contenders] == ["", "mitigations=off"] * 2


def test_several_cpus_count_shared_lines_only_and_one_never() -> None:
    never = machine_kind("icount").never
    assert never({}, "sharing") and never({"cpus": 2}, "kbench") and never({"cpus": 2}, "boot-instructions")
    assert not never({"cpus": 2}, "sharing") and not never({}, "kbench") and not never({}, "boot-instructions")
