"""What else happens to a run: its terminal, its guest, its power, its directories, its clock, and another runner."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import random
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Place, Reference, ends_well, kept, names, no_traceback, place, trials
from waiting import wait_for

pytestmark = [pytest.mark.guest, pytest.mark.network]

ROUNDS = max(1, int(os.environ.get("KDUEL_TEST_KILLS", "8")) // 20)
SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN, of the kernel's fs/ext4/ext4.h: the file system ends as in a power cut."""
WITHOUT_FLUSH = struct.pack("I", 2)
"""Not even the journal's open transaction is written."""


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    with place() as own:
        yield Reference.of(own)


def guest_of(own: Place, process: subprocess.Popen[str]) -> int | None:
    """The process of the machine that is running now."""
    mine = str(own.program).encode()
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            words = Path(f"/proc/{child}/cmdline").read_bytes()
            if mine in words and b"-kernel" in words:
                return int(child)
    return None


def test_a_run_that_is_stopped_for_a_while_goes_on(reference: Reference) -> None:
    with place() as own:
        process = own.start(*own.words())
        wait_for(lambda: names(own.run), "trial")
        for pause in (0.3, 2.0):
            process.send_signal(signal.SIGSTOP)
            time.sleep(pause)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.4)
        _, said = process.communicate(timeout=900)
        assert process.returncode == 0, said
        ends_well(own, {}, reference, "stopped and continued")


def test_a_terminal_that_is_closed_ends_the_run_with_everything_kept(reference: Reference) -> None:
    chance = random.Random(3)
    for number in range(ROUNDS):
        with place() as own:
            ours, theirs = pty.openpty()
            process = own.start(
                *own.words(), stdin=theirs, stdout=theirs, stderr=theirs,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )  # fmt: skip
            os.close(theirs)
            if number:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(chance.uniform(0, 10))
            else:
                wait_for(lambda run=own.run: len(names(run)) > 1, "second trial")
            os.close(ours)
            # A terminal that nobody empties holds little; the run must not wait for it either.
            process.wait(600)
            before = kept(own, {}, reference, "the terminal closed")
            ends_well(own, before, reference, "the terminal closed")


def test_a_machine_that_is_killed_makes_its_trial_void_and_no_other(reference: Reference) -> None:
    with place(seconds=2.0) as own:
        process = own.start(*own.words())
        wait_for(lambda: len(names(own.run)) >= 3, "third trial")
        # Its console has a line: it runs.
        wait_for(lambda: any(log.stat().st_size for log in own.run.glob("trials/.new-*/console.log")), "console")
        os.kill(wait_for(lambda: guest_of(own, process), "machine"), signal.SIGKILL)
        _, said = process.communicate(timeout=900)
        no_traceback("QEMU killed", said)
        assert process.returncode == 0, said
        status = {
            entry.name: json.loads((entry / "trial.json").read_bytes()) for entry in (own.run / "trials").iterdir()
        }
        void = [record for record in status.values() if record["status"] != "ok"]
        assert [record["void"]["code"] for record in void] == ["qemu-killed"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system takes root")
def test_a_power_cut_loses_no_finished_trial(reference: Reference, tmp_path: Path) -> None:
    chance = random.Random(4)
    image = tmp_path / "disk.img"
    for number in range(ROUNDS):
        with place() as own:
            with image.open("wb") as stream:
                stream.truncate(64 << 20)
            subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", image], check=True)
            disk = own.base / "disk"
            disk.mkdir()
            subprocess.run(["mount", "-o", "loop", image, disk], check=True)
            try:
                own.put_run(disk / "run")
                process = own.start(*own.words())
                said_kept: dict[str, str] = {}
                if number:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(chance.uniform(0, 10))
                else:
                    wait_for(lambda run=own.run: len(names(run)) > 4, "fifth trial")
                process.send_signal(signal.SIGSTOP)
                # Of the last trial the directory may be renamed and not synced yet: that one may be lost.
                said_kept = dict(sorted(trials(own.run).items())[:-1])
                handle = os.open(disk, os.O_RDONLY)
                fcntl.ioctl(handle, SHUTDOWN, WITHOUT_FLUSH)
                os.close(handle)
                process.kill()
                process.communicate()
                subprocess.run(["umount", disk], check=True)
                subprocess.run(["mount", "-o", "loop", image, disk], check=True)
                before = kept(own, said_kept, reference, f"power cut {number}")
                ends_well(own, before, reference, f"power cut {number}")
            finally:
                subprocess.run(["umount", disk], check=True)


def test_two_runners_of_one_run_do_not_mix(reference: Reference) -> None:
    with place() as own:
        words = own.words()
        both = [own.start(*words) for _ in range(2)]
        said = [process.communicate(timeout=900)[1] for process in both]
        status = sorted(process.returncode for process in both)
        assert status[0] == 0 and status[1] in (0, 2), said
        for text in said:
            no_traceback("two runners", text)
        loser = next((text for process, text in zip(both, said, strict=True) if process.returncode), "")
        assert not loser or "another kduel" in loser or "is there already" in loser, loser
        ends_well(own, {}, reference, "two runners")


@pytest.mark.parametrize("which", ["the run", "the cache", "TMPDIR"])
def test_a_directory_that_disappears_is_named(reference: Reference, which: str) -> None:
    with place(seconds=0.5) as own:
        if which == "the cache":
            own.copy_cache()
        process = own.start(*own.words())
        wait_for(lambda: len(names(own.run)) > 1, "second trial")
        gone = {"the run": own.run, "the cache": own.cache, "TMPDIR": own.temporary}[which]
        gone.rename(own.base / "gone")
        _, said = process.communicate(timeout=600)
        no_traceback(f"{which} disappears", said)
        if which == "TMPDIR" and process.returncode == 0:
            return  # nothing is kept there in the middle of a run
        assert process.returncode == 3, said
        named = said[said.index("kduel: ") :]
        assert str(gone) in named, named
        if which != "the run":
            assert f"cannot write to {own.run}" not in named, named
        if gone.exists():  # It was made again, for the next file; only empty directories may be there.
            assert not [path for path in gone.rglob("*") if not path.is_dir()]
            shutil.rmtree(gone)
        (own.base / "gone").rename(gone)
        ends_well(own, kept(own, {}, reference, which), reference, f"{which} disappears")


def test_a_clock_that_jumps_changes_nothing(reference: Reference, need: Callable[..., str], tmp_path: Path) -> None:
    library, source = tmp_path / "clock.so", Path(__file__).with_name("clock.c")
    subprocess.run([need("gcc"), "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    library.chmod(0o755)
    with place() as own:
        shift = own.base / "shift"
        shift.write_text("0")
        own.environment |= {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift)}
        process = own.start(*own.words())
        for count, days in ((2, 40), (4, -400), (6, 0)):
            wait_for(lambda count=count: len(names(own.run)) >= count, f"{count} trials")
            shift.write_text(str(days * 86_400))
        _, said = process.communicate(timeout=900)
        assert process.returncode == 0, said
        stamps = {json.loads(path.read_bytes())["started"][:10] for path in own.run.glob("trials/*/trial.json")}
        assert len(stamps) > 2, "the clock did not jump"
        ends_well(own, {}, reference, "the clock jumps")
