from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_kernels import Mirror

from kduel.cli.list_ import kernels as command
from kduel.core.errors import InputError
from kduel.core.plugins import plugins


@pytest.fixture
def stocked(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    mirror.add_kernel("bookworm", "6.1.170-1", "6.1.0-47")
    mirror.add_kernel("trixie", "6.12.95-1", "6.12.95+deb13")
    mirror.add_kernel("trixie", "6.12.95-1", "6.12.95+deb13", "cloud-amd64")
    mirror.publish()
    return mirror


def test_table(stocked: Mirror) -> None:
    done = CliRunner().invoke(command, [])
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("KERNEL", "debian:"))]
    assert lines == [
        ["KERNEL", "VERSION", "FROM"],
        ["debian:6.12-cloud", "6.12.95-1", "trixie"],
        ["debian:6.12", "6.12.95-1", "trixie"],
        ["debian:6.1", "6.1.170-1", "bookworm"],
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["6.1"], ["debian:6.1"]),
        (["6.12", "cloud"], ["debian:6.12-cloud"]),
        (["trixie"], ["debian:6.12-cloud", "debian:6.12"]),
    ],
)
def test_words_choose(words: list[str], found: list[str], stocked: Mirror) -> None:
    done = CliRunner().invoke(command, ["--format", "json", *words])
    told = json.loads(done.stdout)
    assert told["schema"] == 1
    kernels = [entry for entry in told["kernels"] if entry["spec"] != "host"]
    assert [entry["spec"] for entry in kernels] == found
    assert all(set(entry) == {"spec", "version", "where", "cached"} for entry in kernels)


def test_offline_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path))
    done = CliRunner().invoke(command, ["--offline", "debian"])
    assert isinstance(done.exception, InputError) and "in the cache" in done.exception.message


def test_a_word_that_no_kernel_has_is_an_error(stocked: Mirror) -> None:
    for form in ("text", "json"):
        done = CliRunner().invoke(command, ["--format", form, "9.9"])
        assert isinstance(done.exception, InputError) and not done.stdout


@pytest.mark.parametrize("word", ["ubuntu:bionic", "fedora:42"])
def test_a_kernel_that_only_its_archive_knows_is_not_denied(stocked: Mirror, word: str) -> None:
    """It said that no kernel has ubuntu:bionic, which `kduel run` takes."""
    told = CliRunner().invoke(command, [word]).exception
    assert isinstance(told, InputError) and told.message.startswith(f"{word} is a kernel that `kduel run` takes")
    assert f"kduel run {word}" in told.remedy
    for other in ("ubuntu:", "debian:9.9", "nosuch:1"):
        told = CliRunner().invoke(command, [other]).exception
        assert isinstance(told, InputError) and told.message == f"no kernel has {other}"


def test_help_names_every_way_to_give_a_kernel() -> None:
    told = CliRunner().invoke(command, ["--help"]).output
    forms = [source.summary.partition(": ")[0] for source in plugins("kernels").values()]
    assert "tree:DIR" in forms
    for word in ("debian:6.12", "-cloud", "-rt", "-generic", "KDUEL_DEBIAN_MIRROR", *forms):
        assert word in told


def test_import_costs_nothing() -> None:
    program = "import sys, kduel.cli.list_; print([m for m in sys.modules if m in ('rich', 'numpy', 'msgspec')])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "[]"
