from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.kernels.apt.versions import upstream, version_key

real = ["6.1.192-2", "6.1.180-1~deb11u1", "6.12.117-1", "6.12.117-1~deb12u1", "7.3~rc7-1~exp1", "7.3.4-1~bpo13+1"]
version = st.one_of(
    st.sampled_from(real),
    st.from_regex(
        r"[0-9]{1,2}(\.[0-9]{1,3}){0,3}([~+.]?[a-z]{0,3}[0-9]{0,2})?(-[0-9]{1,2}([~+.][a-z0-9]{1,4})?)?",
        fullmatch=True,
    ),
    st.from_regex(r"([0-9]:)?[0-9][0-9a-zA-Z.+~]{0,6}(-[0-9a-zA-Z.+~]{1,4})?", fullmatch=True),
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(version, version)
def test_versions_sort_as_dpkg_does(one: str, other: str) -> None:
    def dpkg(relation: str) -> bool:
        return subprocess.run(["dpkg", "--compare-versions", one, relation, other], check=False).returncode == 0

    assert (version_key(one) < version_key(other)) == dpkg("lt")
    assert (version_key(one) == version_key(other)) == dpkg("eq")


def test_newest_kernel() -> None:
    assert sorted(real, key=version_key) == [
        "6.1.180-1~deb11u1",
        "6.1.192-2",
        "6.12.117-1~deb12u1",
        "6.12.117-1",
        "7.3~rc7-1~exp1",
        "7.3.4-1~bpo13+1",
    ]


def test_upstream_part() -> None:
    assert [upstream(v) for v in real[:2] + real[4:]] == ["6.1.192", "6.1.180", "7.3~rc7", "7.3.4"]
    assert upstream("1:6.1-3-4") == "6.1-3"


def test_a_number_of_any_length_has_a_place() -> None:
    """Python makes no number of 5,000 digits, nor of a digit such as a raised 2."""
    versions = ["6.1-1", "6.2-1", f"6.{'9' * 5000}-1", "7-1", f"7.00{'0' * 5000}1-1"]
    assert sorted(versions, key=version_key) == versions
    assert version_key("7.1") == version_key("7.01") == version_key("\u00b2:7.1")


def test_letters_sort_before_all_other_characters_but_the_tilde() -> None:
    """Of Debian's policy manual, 5.6.12; in ASCII most of the others are smaller."""
    ordered = ["1.0~rc1", "1.0", "1.0a", "1.0z", "1.0+b1", "1.0.1"]
    assert sorted(ordered, key=version_key) == ordered
