"""studies/desktop.toml is a study, and bad settings of the machine ssh are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.guest.conditions import check
from kduel.kernels import Kernel, resolve
from kduel.machines import Arm, Needs, machine_kind
from kduel.study.file import read_study
from kduel.study.load import Study, assemble

DESKTOP = Path(__file__).parents[3] / "studies" / "desktop.toml"


def desktop() -> Study:
    text, file = read_study(DESKTOP)
    return assemble(file, text, str(DESKTOP))


def test_the_study_can_be_planned() -> None:
    study = desktop()
    assert study.machine == "ssh"
    labels = [step.label for step in study.steps]
    assert len(labels) == 12 and {"device-read", "page-cache-read", "boot-time", "system"} <= set(labels)
    settings = machine_kind("ssh").read_settings(study.machine_settings)
    check(settings.conditions)
    assert settings.conditions.temperature_below == 60
    assert settings.conditions.set == ("governor", "turbo")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"place": "x", "boot": "magic"}, "magic"),
        ({}, "place"),
        ({"place": "x", "conditions": {"governor": "performance; reboot"}}, "conditions"),
        ({"place": "x", "conditions": {"cooldown": 5}}, "cooldown"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        machine_kind("ssh").read_settings(settings)


def test_a_release_must_be_named() -> None:
    with pytest.raises(InputError, match="names no release"):
        resolve("installed:", cache=Cache(), progress=Progress())


def kernel(release: str, sha256: str, spec: str = "./vmlinuz") -> Arm:
    """A kernel that would be brought."""
    found = Kernel(spec=spec, release=release, image=Path(__file__), sha256=sha256)
    return Arm(Contender(kernel=spec, name=sha256), found)


@pytest.mark.parametrize(
    ("settings", "arms", "says"),
    [
        ({}, [kernel("6.1.0", "a"), kernel("6.1.0", "b")], "two different kernels call themselves 6.1.0"),
        ({"boot": "bootctl"}, [kernel("6.1.0", "a")], "kernels must be installed there"),
    ],
)
def test_contenders_that_such_a_machine_cannot_be_are_refused(
    settings: dict[str, str], arms: list[Arm], says: str
) -> None:
    kind = machine_kind("ssh")
    with pytest.raises(InputError, match=says):
        kind.prepare(
            kind.read_settings({"place": "x", **settings}), arms, Needs(), cache=Cache(), progress=Progress()
        )
