"""A command that is supervised, and an interruption that falls into its start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kduel.core.supervised_process import supervised_process


def test_what_an_interruption_keeps_from_being_known_never_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Popen waits for the new process's word: Ctrl-C that falls there leaves a process that no variable holds."""
    started: list[subprocess.Popen[bytes]] = []

    class InterruptedStart(subprocess.Popen[bytes]):
        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, **options)  # type: ignore[call-overload]
            started.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", InterruptedStart)
    command = ["touch", str(tmp_path / "touched")]
    with (
        pytest.raises(KeyboardInterrupt),
        supervised_process(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, environment={"PATH": "/bin"}
        ),
    ):
        raise AssertionError("the start was interrupted")
    assert started[0].wait(timeout=60) == 1
    assert not (tmp_path / "touched").exists()
