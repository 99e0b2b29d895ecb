"""Real boards, driven by labgrid: power, console and boot loader are its drivers, set up in its own environment file.

A trial puts the kernel and its root where the boot loader finds them, switches the board on, has the kernel started
(kduel.machines.labgrid.loaders), and reads the console: the kernel's messages, and at the end the results as letters.
labgrid is imported only here and there; it is no requirement of KDuel's.
"""

import base64
import contextlib
import importlib.util
import os
import re
import shutil
import time
import zlib
from pathlib import Path
from typing import Any

from kduel.core.errors import HostError, NotMeasuredError
from kduel.guest import envelope
from kduel.guest.console import ConsoleLog
from kduel.guest.launch import Run
from kduel.machines import Outcome, Trial
from kduel.machines.boards import Real
from kduel.machines.boards.described import DescribedBoard
from kduel.machines.labgrid.client import INSTALL, OURS, run_client
from kduel.machines.labgrid.loaders import INITRD, KERNEL, ROOT, Fastboot, Shell

LETTERS = re.compile(rb"[A-Za-z0-9+/=]{1,200}")
READ_SECONDS = 0.5
LONGEST_LINE = 1 << 16


def check_installed() -> None:
    """Raises HostError where labgrid is not there."""
    if importlib.util.find_spec("labgrid") is None:
        raise HostError("the board is driven by labgrid, which is not installed", INSTALL)


class ConsoleResults:
    """Parts what comes over a console: messages into the log, marks and results into the stream of the envelope."""

    def __init__(self, log: ConsoleLog, inbox: envelope.Inbox) -> None:
        self.log, self.inbox = log, inbox
        self.home = False
        self._rest = b""
        self._letters: Letters | None = None

    def feed(self, data: bytes) -> None:
        """Some bytes that have just come."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line.rstrip(b"\r"))
        if len(self._rest) > LONGEST_LINE:
            self._line(self._rest)
            self._rest = b""

    def finish(self) -> None:
        """Log the rest of a last line."""
        if self._rest:
            self.log.feed(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
        if self._letters is None:
            self.log.feed(line + b"\n")
            if mark := re.search(rb"KDUEL (?:READY|DONE|BEGIN) .{0,100}", line):
                self.inbox.feed(mark[0] + b"\n")
                if begin := re.match(rb"KDUEL BEGIN ([0-9]{1,12}) ", mark[0]):
                    self._letters = Letters(self.inbox, min(int(begin[1]), envelope.LIMIT))
        elif line.strip() == b"KDUEL END":
            # Damage is left to the envelope's own checksum.
            self._letters.finish()
            self.inbox.feed(b"\nKDUEL END\n")
            self._letters, self.home = None, True
        elif LETTERS.fullmatch(line.strip()):
            self._letters.feed(line.strip())


class Letters:
    """Results as lines of base64 of a gzip, unpacked as they come and no further than announced."""

    def __init__(self, inbox: envelope.Inbox, size: int) -> None:
        self.inbox, self.left = inbox, size
        self._unpacked = zlib.decompressobj(wbits=31)
        self._letters = b""
        self._broken = False

    def feed(self, letters: bytes) -> None:
        self._letters += letters
        whole = len(self._letters) // 4 * 4
        self._take(self._letters[:whole])
        self._letters = self._letters[whole:]

    def finish(self) -> None:
        """No more lines come."""
        self._take(self._letters)

    def _take(self, letters: bytes) -> None:
        if self._broken or not self.left or not letters:
            return
        try:
            data = self._unpacked.decompress(base64.b64decode(letters, validate=False), self.left)
        except (ValueError, zlib.error):
            self._broken = True
            return
        self.left -= len(data)
        self.inbox.feed(data)


class LabgridMachine(DescribedBoard):
    """A board in a lab. One trial at a time; the place stays acquired until `close`."""

    def set_up(self, place: str) -> None:
        """Acquire the place, and take its drivers from labgrid's environment file."""
        assert self.board.labgrid is not None
        self.real: Real = self.board.labgrid
        if not Path(self.real.environment).is_file():
            raise HostError(
                f"the board {place} names no file: environment = {self.real.environment}",
                "Write labgrid's environment file there; docs/boards.md has an example.",
            )
        Path(self.real.files).mkdir(parents=True, exist_ok=True)
        self.facts["labgrid"] = {
            "place": self.real.place,
            "commands": self.real.commands,
            "fastboot": self.real.fastboot,
        }
        self._acquired = False
        if self.real.place:
            self._acquired = self._client("acquire", OURS)
        try:
            self.target, self.power, self.console, self.loader = self._drivers()
        except BaseException:
            self.close()
            raise

    def _client(self, verb: str, harmless: str = "\0") -> bool:
        """labgrid's own program for places. Gives False where it refuses for a harmless reason; raises HostError, with
        its words, for any other."""
        done = run_client("-c", self.real.environment, "-p", self.real.place, verb)
        if harmless in done.stderr + done.stdout:
            return False
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            what = "cannot be had" if verb == "acquire" else "stays acquired"
            raise HostError(
                f"the place {self.real.place} {what}: {said[0] if said else 'labgrid-client gives no reason'}",
                f"See who has it: labgrid-client -p {self.real.place} show.",
            )
        return True

    def _drivers(self) -> tuple[Any, Any, Any, Shell | Fastboot]:
        """The target with its power, console and boot loader. Raises HostError naming what its environment lacks."""
        from labgrid import Environment
        from labgrid.protocol import ConsoleProtocol, PowerProtocol

        kind = Shell if self.real.fastboot is None else Fastboot
        if self.real.place:
            # An environment file that serves several places names its own as !template $LG_PLACE.
            os.environ["LG_PLACE"] = self.real.place
        try:
            target = Environment(self.real.environment).get_target(self.real.target)
            if target is None:
                raise HostError(
                    f"{self.real.environment} has no target {self.real.target!r}", "Name one: target = ..."
                )
            power = target.get_driver(PowerProtocol, activate=False)
            console = target.get_driver(ConsoleProtocol, activate=False)
            loader = kind(target, console, self.real)
        except HostError:
            raise
        except Exception as error:
            raise HostError(
                f"labgrid cannot set up {self.real.environment}: {error}",
                f"The target needs a driver of power, one of the console, and one of {kind.wanted}.",
            ) from error
        return target, power, console, loader

    def boot(self, trial: Trial) -> Outcome:
        started = time.monotonic()
        files = Path(self.real.files)
        for name in (KERNEL, INITRD, ROOT):
            (files / name).unlink(missing_ok=True)
        shutil.copyfile(self.images[trial.arm.kernel.sha256], files / KERNEL)
        if carried := self.boot_files(trial):
            (files / (INITRD if self.board.root == "ram" else ROOT)).write_bytes(carried)
        log = ConsoleLog(trial.into / "console.log", started)
        inbox = envelope.Inbox(trial.into / envelope.RAW)
        results = ConsoleResults(log, inbox)
        timings: dict[str, float] = {}
        try:
            ended, trouble = self._carry_out(trial, results, timings, started)
        finally:
            results.finish()
            log.close()
            inbox.close()
            self._off()
        if log.first is not None:
            timings["kernel"] = log.first
        timings["off"] = time.monotonic() - started
        done = Run(results=inbox.path, ended=ended, exit_status=0, stderr=trouble, timings=timings)
        return self.judge(trial, done)

    def _carry_out(
        self, trial: Trial, results: ConsoleResults, timings: dict[str, float], started: float
    ) -> tuple[str, str]:
        """Start the board and read it to the end; how it ended, and labgrid's message where it did not begin."""
        try:
            self.target.activate(self.power)
            self.power.cycle()
            self.target.activate(self.console)
            self.target.activate(self.loader.driver)
            timings["launched"] = time.monotonic() - started
            if trouble := self.loader.start(self.cmdline(trial.arm), lambda line: results.feed(f"{line}\n".encode())):
                return "off", trouble
        except HostError:
            raise
        except Exception as error:  # noqa: BLE001 - labgrid's own, of many kinds
            return "off", f"labgrid: {type(error).__name__}: {error}"
        while not results.home:
            now = time.monotonic() - started
            limit = trial.deadline if "ready" in timings else min(trial.deadline, self.settings.boot_deadline)
            if now > limit:
                return "deadline" if "ready" in timings else "boot-deadline", ""
            try:
                results.feed(present_output(self.console))
            except OSError as error:
                return "off", f"the console was lost: {error}"
            for name in ("ready", "done"):
                if name not in timings and results.inbox.has(name.upper()):
                    timings[name] = time.monotonic() - started
        timings["home"] = time.monotonic() - started
        return "off", ""

    def _off(self) -> None:
        """Switch the board off, for the next trial to begin from nothing. Raises NotMeasuredError where it stays on."""
        try:
            self.target.deactivate(self.loader.driver)
            self.power.off()
            self.target.deactivate(self.console)
            self.target.deactivate(self.power)
        except Exception as error:
            raise NotMeasuredError(
                f"the board does not switch off: labgrid: {error}",
                "Check its power driver (QEMUDriver needs -no-shutdown in extra_args: it is gone with a guest that switches "
                "itself off); then resume the run.",
            ) from error

    def close(self) -> None:
        """Give back the place, and what other machines hold."""
        super().close()
        if self._acquired:
            self._acquired = False
            # A coordinator that is away ends no run, whose trials are whole; a later run uses a place that is ours, and leaves it so.
            try:
                self._client("release")
            except HostError as error:
                place = self.real.place
                self.cache.progress.warn(
                    f"{error.message}; to give the place back: labgrid-client -p {place} release"
                )


def present_output(console: Any) -> bytes:
    """The present output of labgrid's console driver. A driver of serial lines waits for as many bytes as it is asked for,
    and lines are to have the time that they come: so one, and then what is there."""
    from pexpect import TIMEOUT

    data = b""
    with contextlib.suppress(TIMEOUT):
        data = console.read(size=1, timeout=READ_SECONDS)
        data += console.read(size=4096, timeout=0)
    return data
