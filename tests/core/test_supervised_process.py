"""A command that is supervised, and an interruption that falls into its start."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kduel.core.supervised_process import ask_session, session_processes, supervised_process


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
    assert started[0].wait(timeout=600) == 1
    assert not (tmp_path / "touched").exists()


@contextmanager
def run_script(script: str, there: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a shell in a session of its own, and wait until it has made that file."""
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        while not there.exists():
            assert process.poll() is None
            time.sleep(0.01)
        yield process


def test_processes_of_a_session_come_with_their_parents_first(tmp_path: Path):
    """A script that is asked after its child finds that the child has ended, and goes on or ends without cleaning up."""
    script = f"for child in $(seq 40); do sleep 600 & done; touch {tmp_path}/there; wait"
    with run_script(script, tmp_path / "there") as process:
        found = session_processes(process.pid)
        ask_session(process.pid, 60)
    assert list(found.values()) == [found[process.pid], *[process.pid] * 40]
    assert next(iter(found)) == process.pid
    # Numbers are given in order, but begin again at the highest: no machine of tests starts so many.
    assert list(found) == sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cleaning", "patience"),
    [
        pytest.param("sleep 1 && touch", 60, id="is_not_asked_to_end"),
        pytest.param("sleep 600; touch", 6, id="has_half_of_the_time"),
    ],
)
def test_what_a_program_starts_in_order_to_clean_up(tmp_path: Path, cleaning: str, patience: float):
    script = f"trap '{cleaning} {tmp_path}/cleaned' TERM; touch {tmp_path}/there; sleep 600; wait"
    with run_script(script, tmp_path / "there") as process:
        ask_session(process.pid, patience)
        assert session_processes(process.pid) == {}
    assert (tmp_path / "cleaned").exists()
