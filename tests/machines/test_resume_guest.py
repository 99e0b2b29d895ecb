"""A run that was interrupted is continued, with what users type, on the machines that boot guests here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cut_runs import cut_run

from kduel.core.cache import Cache, cache_root
from kduel.core.progress import Progress
from kduel.kernels import Kernel, resolve

pytestmark = [pytest.mark.guest, pytest.mark.network]
SOURCE = Path(__file__).parents[2] / "src"
TYPED = ("debian:6.1-cloud", "debian:6.12-cloud")
LONGEST = 1800
"""Seconds until the first trial of a run, on a busy host."""

STUDY = """
[study]
name = "short"
{contenders}
[machine]
boot_deadline = 900
{machine}
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 1
turns = "off"
[[benchmark]]
use = "kbench"
operation = "null-call"
{step}
"""


class Shell:
    """Runs `kduel` in a directory, with the cache under a path of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.use_cache("cache")

    def use_cache(self, name: str) -> None:
        """Reach the shared cache by another path, as if it had been moved."""
        for old in self.place.glob("cache*"):
            old.unlink()
        Cache().root.mkdir(parents=True, exist_ok=True)
        (self.place / name).symlink_to(cache_root().resolve())
        self.environment = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "KDUEL_CACHE": str(self.place / name),
            "NO_COLOR": "1",
        }

    def start(self, *words: object, cwd: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kduel", *map(str, words)]
        return subprocess.Popen(
            command, cwd=cwd, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def interrupted(self, *words: object, run: Path, cwd: Path) -> str:
        """Interrupt a run, as Ctrl-C does, once a trial is there."""
        with self.start(*words, cwd=cwd) as process:
            end = time.monotonic() + LONGEST
            while not trials(run) and process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=600)
        assert process.returncode == 130, said
        assert len(trials(run)) == 1, said
        return said

    def done(self, *words: object, cwd: Path) -> None:
        """A command that must succeed."""
        with self.start(*words, cwd=cwd) as process:
            said, _ = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, said


def trials(run: Path) -> list[str]:
    found = run / "trials"
    return sorted(path.name for path in found.glob("[0-9]*")) if found.is_dir() else []


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "elsewhere").mkdir()
    return Shell(tmp_path)


def study(place: Path, kernels: tuple[str, ...], machine: str, *, step: str = "time = 0.05", more: str = "") -> Path:
    contenders = "".join(f'[[contender]]\nkernel = "{kernel}"\n{more}\n' for kernel in kernels)
    path = place / "study.toml"
    path.write_text(STUDY.format(contenders=contenders, machine=machine, step=step))
    return path


def tree(kernel: Kernel, into: Path) -> None:
    """What `tree:` needs of a kernel tree in which Debian's kernel was built."""
    assert kernel.config is not None and kernel.modules is not None
    for name, source in ((".config", kernel.config), ("arch/x86/boot/bzImage", kernel.image)):
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, into / name)
    (into / "include/config").mkdir(parents=True)
    (into / "include/config/kernel.release").write_text(f"{kernel.release}\n")
    (into / "modules").symlink_to(kernel.modules)


@pytest.mark.essential
def test_kernels_of_debian_after_the_cache_was_moved(shell: Shell) -> None:
    """The same command, and `resume`; lock.json holds no path of the cache."""
    run, cwd = shell.place / "run", shell.place
    machine = 'kind = "qemu"\npriority = "normal"\nmemory = "512M"\naccel = "tcg"'
    machine += "\n[host]\nmax_wait = 100 # other tests are no fault"
    words = ("run", study(cwd, TYPED, machine).name, "--out", "run", "--seed", "7")
    shell.interrupted(*words, run=run, cwd=cwd)
    arguments = json.loads((run / "lock.json").read_text())["machine"]["facts"]["argv"]
    assert sorted(arguments) == ["debian-6.1-cloud", "debian-6.12-cloud"]
    assert str(cwd) not in (run / "lock.json").read_text().replace(f'"directory": "{cwd}"', "")
    shell.use_cache("cache-elsewhere")
    shell.done("resume", run, cwd=shell.place / "elsewhere")
    assert len(trials(run)) == 2
    cut_run(run, [trials(run)[1]])
    shell.use_cache("cache")
    shell.done(*words, cwd=cwd)
    assert len(trials(run)) == 2


@pytest.mark.parametrize(
    ("machine", "step"),
    [
        ('kind = "icount"\nmemory = "256M"\nworkers = 1', 'mode = "exact"\ncount = 5\nprimary = ["instructions"]'),
        ('kind = "board"\nplace = "x86_64-q35"', "time = 0.05"),
    ],
    ids=["icount", "board"],
)
def test_a_tree_and_an_image_by_relative_paths_from_another_directory(shell: Shell, machine: str, step: str) -> None:
    cache = Cache()
    old, new = (resolve(spec, cache=cache, progress=Progress()) for spec in TYPED)
    place = shell.place / "work"
    tree(old, place / "linux")
    shutil.copyfile(new.image, place / "bzImage")
    assert new.modules is not None
    (place / "modules").symlink_to(new.modules)
    # Calibrating the timer of the local APIC takes half of a boot's time where instructions are counted.
    more = 'cmdline = "noapictimer"' if "icount" in machine else ""
    path = study(place, ("tree:linux", "./bzImage"), machine, step=step, more=more)
    text = path.read_text()
    for kernel, modules in (("tree:linux", "linux/modules"), ("./bzImage", "modules")):
        text = text.replace(f'kernel = "{kernel}"\n', f'kernel = "{kernel}"\nmodules = "{modules}"\n')
    path.write_text(text)
    run = place / "run"
    shell.interrupted("run", "study.toml", "--out", "run", "--seed", "7", run=run, cwd=place)
    shell.use_cache("cache-elsewhere")
    shell.done("resume", "../work/run", cwd=shell.place / "elsewhere")
    assert len(trials(run)) == 2
