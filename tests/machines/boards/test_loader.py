"""A boot loader with a prompt: the commands that it is given, and what is said of one that it refuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kduel.machines.labgrid.loaders import INITRD, Shell


def loader(files: Path, statuses: list[int]) -> tuple[Shell, list[str]]:
    """A loader that answers its commands with these statuses, and what it was sent."""
    sent: list[str] = []
    left = iter(statuses)

    def run(command: str, timeout: float) -> tuple[list[str], list[str], int]:
        assert timeout == 7
        sent.append(command)
        return ["Loading"], [], next(left)

    # Without labgrid, which need not be installed.
    shell = Shell.__new__(Shell)
    commands = ["tftp kernel", "setenv bootargs @CMDLINE@ @INITRD_SIZE@", "booti"]
    shell.real = SimpleNamespace(files=str(files), commands=commands, seconds_per_command=7)  # type: ignore[assignment]
    shell.driver, shell.console = SimpleNamespace(run=run), SimpleNamespace(sendline=sent.append)
    return shell, sent


def test_the_last_command_boots(tmp_path: Path) -> None:
    (tmp_path / INITRD).write_bytes(b"x" * 0x1F)
    shell, sent = loader(tmp_path, [0, 0])
    said: list[str] = []
    assert shell.start("quiet", said.append) == ""
    assert sent == ["tftp kernel", "setenv bootargs quiet 1f", "booti"]
    assert said == ["=> tftp kernel", "Loading", "=> setenv bootargs quiet 1f", "Loading", "=> booti"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_command_that_the_loader_refuses_ends_the_boot(failing: int, tmp_path: Path) -> None:
    shell, sent = loader(tmp_path, [0] * failing + [1])
    why = shell.start("quiet", lambda _: None)
    assert why == f"the boot loader's {sent[-1]!r} ended with 1" and "booti" not in sent
