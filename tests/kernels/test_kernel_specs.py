from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.plugins import plugins
from kduel.core.progress import Progress
from kduel.kernels import find_source
from kduel.kernels.debian import ARCHITECTURES, FLAVOURS, matches_version, parse_spec

number = st.integers(0, 30)
series = st.builds("{}.{}".format, number, number)


@settings(deadline=None, max_examples=60)
@given(series, st.sampled_from(["", *FLAVOURS]), st.sampled_from(["", *ARCHITECTURES]))
def test_version_flavour_architecture(version: str, flavour: str, architecture: str) -> None:
    spec = "debian:" + "-".join(part for part in (version, flavour, architecture) if part)
    wanted = parse_spec(spec)
    assert wanted.version == version
    assert wanted.flavour == (flavour or "generic")
    assert wanted.architecture == (architecture or "amd64")


@settings(deadline=None, max_examples=60)
@given(series, series, number, st.integers(1, 9))
def test_a_series_means_itself_alone(wanted: str, other: str, patch: int, revision: int) -> None:
    version = f"{other}.{patch}-{revision}"
    assert matches_version(wanted, version, f"{other}.0-{revision}") == (wanted == other)


@settings(deadline=None, max_examples=60)
@given(number, number, number)
def test_a_major_version_means_all_its_series(major: int, other: int, minor: int) -> None:
    assert matches_version(str(major), f"{other}.{minor}.1-1", "x") == (major == other)


def test_610_is_not_61() -> None:
    assert not matches_version("6.1", "6.10.3-1", "6.10.3-1")
    assert not matches_version("6.10", "6.1.0-1", "6.1.0-1")
    assert matches_version("6.1", "6.1~rc3-1~exp1", "6.1-rc3")
    assert matches_version("6.1-rc3", "6.1~rc3-1~exp1", "x")


def test_exact_names() -> None:
    assert matches_version("6.1.192-2", "6.1.192-2", "6.1.0-56")
    assert matches_version("6.1.192", "6.1.192-2", "6.1.0-56")
    assert matches_version("6.1.0-56", "6.1.192-2", "6.1.0-56")
    assert not matches_version("6.1.19", "6.1.192-2", "6.1.0-56")
    assert not matches_version("6.1.192-1", "6.1.192-2", "6.1.0-56")


def test_as_uname_says() -> None:
    wanted = parse_spec("debian:6.12.117+deb13-cloud-amd64")
    assert (wanted.version, wanted.flavour, wanted.architecture) == ("6.12.117+deb13", "cloud", "amd64")
    assert parse_spec("debian:7-cloud").suffix == "cloud-amd64"
    assert parse_spec("debian:6.12-arm64").suffix == "arm64"


@pytest.mark.parametrize("spec", ["debian:6.12-clod", "debian:6.12-clod-amd64"])
def test_a_misspelt_flavour_is_no_fault_of_the_network(spec: str) -> None:
    with pytest.raises(InputError, match="no flavour 'clod'") as told:
        parse_spec(spec)
    assert told.value.remedy.startswith("Did you mean cloud? Give one of generic, cloud, rt")
    assert parse_spec("debian:6.13-rc1").version == "6.13-rc1"
    with pytest.raises(InputError, match="no flavour 'Cloud'") as told:
        parse_spec("debian:6.12-Cloud")
    assert told.value.remedy.startswith("Did you mean cloud?")
    with pytest.raises(InputError, match="no flavour ''"):
        parse_spec("debian:6.12-")


@pytest.mark.parametrize("spec", ["debian: 6.12", "debian:6.12 "])
def test_blanks_around_a_version_that_kept_studies_have_are_taken(spec: str) -> None:
    assert (parse_spec(spec).version, parse_spec(spec).spec) == ("6.12", spec)


@pytest.mark.parametrize("spec", ["debian:", "debian:-rt", "debian:6.1/../x", "debian: ", "debian:6.1 rt"])
def test_nonsense_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match="names no version"):
        parse_spec(spec)


@pytest.mark.parametrize("spec", ["6.1", "v6.1", "debain:6.1", "Debian:6.1", "debian:v6.1"])
def test_a_misspelt_kernel_is_answered_by_the_one_that_it_is_like(spec: str) -> None:
    with pytest.raises(InputError) as told:
        find_source(spec)
    assert told.value.remedy.startswith("Did you mean debian:6.1?")
    with pytest.raises(InputError) as told:
        find_source("nosuch:{6}")
    assert told.value.remedy.startswith("Give arch:")


def test_a_setting_that_there_is_not_is_answered_by_those_that_there_are() -> None:
    with pytest.raises(InputError) as caught:
        parse_spec("debian:6.1,cmd=quiet")
    assert "cmdline=" in caught.value.remedy


@pytest.mark.parametrize(
    ("spec", "source"),
    [
        ("debian:6.1", "debian"),
        ("host", "host"),
        ("tree:linux", "tree"),
        ("./vmlinuz", "file"),
        ("/boot/vmlinuz-6.1", "file"),
        ("a.deb", "deb"),
        ("dir/a.deb,b.deb", "deb"),
        ("source:linux-6.1.tar.xz", None),
        ("git:some/dir#v6.1", None),
        ("6.1", None),
        ("", None),
    ],
)
def test_who_takes_what(spec: str, source: str | None) -> None:
    own = {"debian", "deb", "file", "host", "tree"}
    takers = (name for name, plugin in plugins("kernels").items() if name in own and plugin.accepts(spec))
    assert next(takers, None) == source


def test_without_its_image_the_running_kernel_is_named_as_the_machine_local_takes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kduel.kernels.host.image_paths", lambda release: [tmp_path / f"vmlinuz-{release}"])
    with pytest.raises(HostError) as caught:
        plugins("kernels")["host"].resolve("host", cache=Cache(tmp_path), progress=Progress())
    assert f"installed:{os.uname().release}" in caught.value.remedy and "--machine local" in caught.value.remedy
