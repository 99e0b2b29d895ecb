"""Places of labgrid's real coordinator, on loopback: found by their tags, acquired and released."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from heard import Heard

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.fleets import check_members
from kduel.fleets.labgrid import PLUGIN, client, places
from kduel.machines.board import at_place
from kduel.machines.boards import Board, Real
from kduel.machines.labgrid.board import LabgridMachine

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    place = tmp_path_factory.mktemp("lab")
    with (
        (place / "log").open("wb") as log,
        subprocess.Popen([BIN / "labgrid-coordinator", "-l", address], cwd=place, stdout=log, stderr=log) as process,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", str(BIN), prepend=":")
        try:
            for _ in range(240):
                asked = subprocess.run(
                    [BIN / "labgrid-client", "-x", address, "places"], capture_output=True, check=False
                )
                if asked.returncode == 0:
                    break
                time.sleep(0.25)
            settings = PLUGIN.read_settings({"coordinator": address})
            for name, tags in (("b2", ["board=imx8"]), ("b1", ["board=imx8", "lab=2"]), ("c1", ["board=rpi4"])):
                client(settings, "-p", name, "create")
                client(settings, "-p", name, "set-tags", *tags)
            yield address
        finally:
            process.terminate()
            process.wait()


def opened(coordinator: str, known: tuple[str, ...] = (), machine: str = "board", **table: object):
    settings = PLUGIN.read_settings({"coordinator": coordinator} | table)
    return PLUGIN.open(settings, machine=machine, run="run", known=known, progress=Progress())


@pytest.mark.slow
def test_places_are_found_by_tags_acquired_and_released(coordinator: str):
    fleet = opened(coordinator, tags="board=imx8")
    assert [(one.name, one.settings) for one in fleet.members] == [
        ("b1", {"lab_place": "b1"}),
        ("b2", {"lab_place": "b2"}),
    ]
    assert [one.name for one in opened(coordinator, tags="board=imx8+lab=2").members] == ["b1"]
    fleet.lease("b1")
    fleet.lease("b1")
    with pytest.raises(HostError, match=r"1 place\(s\) with the tags board=imx8 are free; 2 are requested"):
        opened(coordinator, tags="board=imx8")
    assert [one.name for one in opened(coordinator, tags="board=imx8", count=1).members] == ["b2"]
    # A controller that was killed had it: its successor has the same user, and the places of the run.
    again = opened(coordinator, known=("b1", "b2"), tags="board=imx8")
    again.lease("b1")
    again.give_back("b1")
    settings = PLUGIN.read_settings({"coordinator": coordinator})
    assert all(place.free for place in places(client(settings, "-v", "places")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"tags": "board=none"}, "no place has the tags board=none"),
        ({}, "needs tags="),
        ({"places": ["b9"]}, "labgrid has no place 'b9'"),
    ],
)
def test_what_the_lab_does_not_have_is_refused(coordinator: str, table: dict[str, object], said: str):
    with pytest.raises(InputError, match=said):
        opened(coordinator, **table)


@pytest.mark.slow
def test_only_boards_are_driven_and_a_coordinator_that_is_away_is_named(coordinator: str):
    with pytest.raises(InputError, match="drives boards"):
        opened(coordinator, machine="qemu", tags="board=imx8")
    with pytest.raises(HostError, match="labgrid-client"):
        opened("127.0.0.1:1", tags="board=imx8")


def lying(place: Path, patch: pytest.MonkeyPatch, script: str) -> None:
    """A coordinator that says what a shell script prints."""
    place.joinpath("labgrid-client").write_text(f"#!/bin/sh\n{script}\n")
    place.joinpath("labgrid-client").chmod(0o755)
    patch.setenv("PATH", str(place), prepend=":")


@pytest.mark.parametrize("name", ["../../x", "-c", ".new", "b\x1b[2J", "a" * 5000, "b1\tx"])
def test_a_place_whose_name_is_no_directory_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "said").write_text(f"Place '{name}':\n  tags: board=imx8\n  acquired: None\n")
    lying(tmp_path, monkeypatch, f"cat {tmp_path}/said")
    with pytest.raises(InputError, match="cannot be the name of a machine"):
        check_members(opened("lab", tags="board=imx8").members, "fleet labgrid")


def test_a_coordinator_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lying(tmp_path, monkeypatch, "exec sleep 100")
    monkeypatch.setattr("kduel.machines.labgrid.client.ANSWER", 0.3)
    with pytest.raises(HostError, match="does not answer"):
        opened("lab", tags="board=imx8")
    board = LabgridMachine.__new__(LabgridMachine)
    board.real = Real(environment="env.yaml", files="files", commands=["boot"], place="b1")
    with pytest.raises(HostError, match="does not answer"):
        board._client("acquire")


def test_a_place_that_cannot_be_given_back_is_told_and_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lying(tmp_path, monkeypatch, "echo coordinator is away >&2; exit 1")
    board, heard = LabgridMachine.__new__(LabgridMachine), Heard()
    board.real = Real(environment="env.yaml", files="files", commands=["boot"], place="b1")
    board._offered, board._acquired, board.cache = None, True, Cache(tmp_path / "cache", heard)
    board.close()
    board.close()
    (told,) = heard.warned
    assert "coordinator is away" in told and "labgrid-client -p b1 release" in told


def test_a_board_of_a_lab_is_described_once_for_all_places():
    real = Real(environment="/lab/env.yaml", files="/srv/tftp/@PLACE@", commands=["tftp @PLACE@/kernel"], place="b0")
    described = Board(summary="", architecture="aarch64", console="ttyAMA0", memory="1G", labgrid=real)
    own = at_place(described, "b7").labgrid
    assert own is not None and (own.place, own.files, own.commands) == ("b7", "/srv/tftp/b7", ["tftp b7/kernel"])
    assert at_place(described, "") is described
    with pytest.raises(InputError, match="no table"):
        at_place(Board(summary="", architecture="aarch64", console="ttyAMA0", memory="1G"), "b7")
