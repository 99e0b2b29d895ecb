"""kbench beside a sleeping thread: what threads share takes other paths in the kernel."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from kduel.benchmarks.kbench import PLUGIN, KbenchParameters
from kduel.core.cache import Cache
from kduel.guest import programs


def test_a_threaded_step_says_so_in_label_words_and_command() -> None:
    plain = KbenchParameters(operation="poll-100", mode="exact")
    threaded = KbenchParameters(operation="poll-100", mode="exact", threaded=True)
    assert (PLUGIN.label(threaded), PLUGIN.label(plain)) == ("poll-100-threaded", "poll-100")
    assert "--threaded" in PLUGIN.script(threaded).split() and "--threaded" not in PLUGIN.script(plain)
    assert all("beside a sleeping thread" in metric.words for metric in PLUGIN.metrics(threaded))
    assert not any("thread" in metric.words for metric in PLUGIN.metrics(plain))


def most_threads(pid: int, seconds: float) -> int:
    """Most threads that the process or a child of it was seen to have."""
    most, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            most = max(most, *(len(list(Path(f"/proc/{one}/task").iterdir())) for one in (str(pid), *children)))
        except OSError:
            pass
        time.sleep(0.002)
    return most


@pytest.mark.parametrize("mode", [["--time", "3"], ["--exact", "--conditions", "2", "--count", "500"]])
@pytest.mark.parametrize(("words", "threads"), [([], 1), (["--threaded"], 2)])
def test_there_is_a_second_thread_while_it_measures(
    mode: list[str], words: list[str], threads: int, tmp_path: Path
) -> None:
    """Under conditions, too, where each is a process of its own, which has to be told."""
    program = programs.build("kbench", cache=Cache())
    with subprocess.Popen([program, *words, *mode, "fork-exec"], stdout=subprocess.DEVNULL, cwd=tmp_path) as process:
        assert most_threads(process.pid, 2) == threads
        process.kill()
