"""A Slurm cluster on loopback (scripts/slurm-loopback), for as long as a test file needs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "slurm-loopback"


NODE_STUDY = """
[study]
name = "nodes"
delta = 1.0
[[contender]]
kernel = "installed:{old}"
[[contender]]
kernel = "installed:{new}"
[machine]
kind = "slurm-node"
boot_deadline = {deadline}
{machine}
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = {blocks}
[[benchmark]]
use = "command"
{benchmark}
"""
"""Two kernels on nodes that Slurm reboots."""


class Cluster:
    """A cluster on loopback."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def script(self, *words: str) -> None:
        subprocess.run([SCRIPT, words[0], self.directory, *words[1:]], check=True, timeout=600)

    def pid(self, name: str) -> int:
        return int((self.directory / "run" / f"{name}.pid").read_text())

    @property
    def saved(self) -> int:
        """When the controller last saved its jobs. It does so every five seconds, and forgets what came after if it
        is killed: it then gives the same job ids again, and drains the nodes that still know the old ones."""
        return (self.directory / "state" / "job_state").stat().st_mtime_ns

    def ask(self, *words: str) -> str:
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout

    def await_no_job(self) -> None:
        """Wait until the last job has ended: the end of one takes its time, even where nothing waits for it."""
        end = time.monotonic() + 600
        while left := self.ask("squeue", "-h"):
            assert time.monotonic() < end, f"{left}\n{self.log('slurmctld')[-3000:]}"
            time.sleep(0.5)

    def log(self, name: str) -> str:
        return (self.directory / "log" / f"{name}.log").read_text(errors="replace")

    def logs(self) -> str:
        """The ends of all logs, for a test that fails."""
        files = sorted((self.directory / "log").glob("*.log"))
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-4000:]}" for file in files)


@contextmanager
def started(nodes: int, furnish: Callable[[Path], None] = lambda _: None) -> Iterator[Cluster]:
    """The cluster, with SLURM_CONF set; `furnish` puts files into its directory before it starts."""
    # Below /tmp itself: munged wants a short socket path, and a way that nobody else can write to.
    own = Cluster(Path(tempfile.mkdtemp(prefix="slurm-")))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(own.directory / "slurm.conf")
    try:
        furnish(own.directory)
        own.script("start", str(nodes))
        yield own
    finally:
        own.script("stop")
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before
        shutil.rmtree(own.directory, ignore_errors=True)
