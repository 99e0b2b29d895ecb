"""Work in a thread beside other work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from waiting import wait_for

from kduel.core import background_task
from kduel.core.background_task import BackgroundTask, run_program
from kduel.core.errors import HostError
from kduel.core.progress import Progress


class Heard(Progress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)


def test_what_it_raises_is_raised_where_it_is_waited_for():
    def work(_: Progress) -> None:
        raise HostError("no room")

    with BackgroundTask(work, Progress()) as failing, pytest.raises(HostError, match="no room"):
        failing.wait()


def test_it_says_what_it_does_and_that_it_is_not_alone():
    heard = Heard()

    def work(progress: Progress) -> None:
        with progress.task("making the root"):
            pass

    with BackgroundTask(work, heard) as making:
        making.wait()
    assert heard.lines == ["making the root, in the background"] and not making.doing


def test_an_exception_ends_its_programs_with_their_children(tmp_path, monkeypatch):
    """As mmdebstrap: it does not end by itself when asked, but when its children have. They are asked after half of the time."""
    monkeypatch.setattr(background_task, "PATIENCE", 30.0)
    ended: list[int] = []
    script = f"trap 'touch {tmp_path}/cleaned' TERM; sleep 600 & touch {tmp_path}/there; wait; wait; exit 7"

    def work(_: Progress) -> None:
        ended.extend(run_program(["sh", "-c", script], environment=os.environ)[0] for _ in range(2))

    with pytest.raises(KeyboardInterrupt), BackgroundTask(work, Progress()):
        wait_for((tmp_path / "there").exists, "file")
        raise KeyboardInterrupt
    assert (tmp_path / "cleaned").exists() and ended == [7, -9]


def test_what_does_not_end_when_asked_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(background_task, "PATIENCE", 0.1)
    ended: list[int] = []
    script = f"trap '' TERM; touch {tmp_path}/there; while :; do sleep 600; done"

    def work(_: Progress) -> None:
        ended.append(run_program(["sh", "-c", script], environment=os.environ)[0])

    with pytest.raises(KeyboardInterrupt), BackgroundTask(work, Progress()):
        wait_for((tmp_path / "there").exists, "file")
        raise KeyboardInterrupt
    assert ended == [-9]


def test_a_kduel_that_was_killed_leaves_its_programs_time_to_clean_up(tmp_path):
    """As mmdebstrap again, which also says what it does while it cleans up, though nobody reads it any more."""
    script = f"trap 'echo cleaning >&2; touch {tmp_path}/cleaned' TERM; touch {tmp_path}/there; sleep 600; wait"
    program = (
        "import os, sys\nfrom kduel.core import background_task\nbackground_task.PATIENCE = 30.0\n"
        "background_task.run_program(['sh', '-c', sys.argv[1]], environment=os.environ)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", program, script], env=environment)
    wait_for((tmp_path / "there").exists, "file")
    process.kill()
    process.wait()
    wait_for((tmp_path / "cleaned").exists, "file")


def test_a_signal_during_the_waiting_leaves_no_program(tmp_path):
    """Python 3.11 takes a thread for ended when a signal's exception interrupts join()."""
    program = (
        "import os, signal, sys\n"
        "from kduel.core.background_task import BackgroundTask, run_program\n"
        "from kduel.core.progress import Progress\n"
        f"script = 'touch {tmp_path}/there; sleep 600; touch {tmp_path}/left'\n"
        "with BackgroundTask(lambda _: run_program(['sh', '-c', script], environment=os.environ), Progress()) as beside:\n"
        "    beside.wait()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, env=environment)
    wait_for((tmp_path / "there").exists, "file")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in said
    assert not (tmp_path / "left").exists()


def test_the_output_is_what_the_program_says():
    assert run_program(["sh", "-c", "echo no room >&2; exit 3"], environment=os.environ) == (3, "no room\n")


def test_its_programs_have_the_lowest_priority_until_they_are_waited_for(tmp_path):
    """The guest root was made at full priority beside the first verdict."""
    nice = tmp_path / "nice"
    script = (
        f"for i in 1 2 3 4 5 6 7 8 9 10; do nice >>{nice}.part; sleep 0.1; done; mv {nice}.part {nice}; sleep 600"
    )

    def work(_: Progress) -> None:
        run_program(["sh", "-c", script], environment=os.environ)

    with pytest.raises(KeyboardInterrupt), BackgroundTask(work, Progress()):
        wait_for(nice.exists, "file")
        raise KeyboardInterrupt
    assert nice.read_text().split()[-1] == "19"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority")
def test_its_programs_have_their_own_priority_when_they_are_waited_for(tmp_path):
    script = f"touch {tmp_path}/there; until [ $(nice) = 0 ]; do sleep 0.1; done"
    done: list[int] = []

    def work(_: Progress) -> None:
        done.append(run_program(["sh", "-c", script], environment=os.environ)[0])

    with BackgroundTask(work, Progress()) as made:
        wait_for((tmp_path / "there").exists, "file")
        made.wait()
    assert done == [0]
