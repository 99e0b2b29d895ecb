"""One trial on a real machine, step by step: reboot, verify, run the script apart from the connection, bring its files home."""

import io
import re
import shlex
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from kduel.core.untrusted import read_end
from kduel.guest import envelope
from kduel.guest.conditions import OUT_OF_BAND
from kduel.guest.conditions import script as conditions_script
from kduel.guest.diagnosis import findings_in
from kduel.guest.environment import environments_in, read_environment
from kduel.guest.gates import gate
from kduel.guest.link import VOIDS, loss_of_peer
from kduel.machines import Outcome, Trial
from kduel.machines.remote.connection import CommandResult, Connection, ConnectionLost, TrialRefused, last_line
from kduel.machines.remote.grub import MenuEntry
from kduel.machines.remote.settings import RealSettings
from kduel.schedulers.snippets import UNDO

T = TypeVar("T")

LOOK = "cat /proc/sys/kernel/random/boot_id; uname -r; uname -m; cut -d' ' -f1 /proc/uptime; date +%s.%N; cat /proc/cmdline"
RETRY = 3.0
LEAST_FREE = 256
"""KiB: with less the disk counts as full."""
OWN_WORDS = "   "
"""Stands before a contender's own words: kernels ignore it, and a later run tells them from the machine's."""
RESTORE = "/var/lib/kduel-restore.sh"
"""What a crash leaves behind there, for the next trial, or a person, to run."""
END = Path(__file__).with_suffix(".sh").read_text("utf-8")


class Observation(Struct, frozen=True):
    """The machine at one moment."""

    boot_id: str
    release: str
    architecture: str
    uptime: float
    date: float
    cmdline: str
    at: float
    """This host's monotonic clock."""


class Journey:
    """One trial on the machine, step by step; what happened goes to its log."""

    or_else: ClassVar[str] = ""
    """What else can have brought the default kernel up, for the message."""

    def __init__(
        self,
        settings: RealSettings,
        connection: Connection,
        trial: Trial,
        *,
        boot: str,
        entries: Mapping[str, MenuEntry],
        cmdline: str,
        programs: Mapping[str, bytes],
    ) -> None:
        self.settings, self.connection, self.trial, self.boot = settings, connection, trial, boot
        self.entries, self.default, self.programs = entries, cmdline, programs
        self.start = time.monotonic()
        self.log: list[str] = []
        self.timings: dict[str, float] = {}
        self.facts: dict[str, Any] = {}
        self.directory = f"{self.settings.directory.rstrip('/')}/kduel-{trial.id}"

    def tell(self, text: str) -> None:
        """A line with this host's time."""
        self.log.append(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} kduel: {text}\n")

    def mark(self, name: str) -> None:
        """Seconds since the start."""
        self.timings[name] = round(time.monotonic() - self.start, 3)

    def go(self) -> Outcome:
        """The whole way. Raises ConnectionLost and TrialRefused where the connection is lost."""
        before = self.patiently(lambda: look(self.connection), 120.0)
        self.reboot(before)
        self.mark("launched")
        try:
            now = self.come_back(before)
        except ConnectionLost as error:
            self.tell(f"it did not come back: {error}")
            return Outcome(
                void="no-return",
                message=f"After the reboot into {self.trial.arm.kernel.release} the machine did not answer within "
                f"{self.settings.boot_deadline:.0f} s ({error}). Power-cycle it: it will boot its default kernel.",
            )
        self.mark("kernel")
        return self.measure(now)

    def measure(self, now: Observation) -> Outcome:
        """In the boot that is there: verify it, run the script, bring its files home. Raises ConnectionLost and TrialRefused."""
        self.facts["boot_id"] = now.boot_id
        wanted = self.trial.arm.kernel.release
        if now.release != wanted:
            self.tell(self.last_words())
            return Outcome(
                void="fell-back",
                message=f"{wanted} was requested, and the machine booted {now.release}: {wanted} did not boot, and "
                f"the boot loader fell back to its default{self.or_else}.",
            )
        if missing := [word for word in self.trial.arm.contender.cmdline.split() if word not in now.cmdline.split()]:
            return Outcome(void="wrong-machine", message=f"The command line lacks {' '.join(missing)}: {now.cmdline}")
        try:
            self.begin()
            self.mark("ready")
            after = self.attend(now)
        except KeyboardInterrupt:
            # Nobody waits for the script any more, and the machine is its user's again.
            with suppress(ConnectionLost, TrialRefused):
                self.end_scripts()
            raise
        self.mark("done")
        self.compare_clocks(now, after)
        if after.boot_id != now.boot_id:
            return self.end_dead_trial()
        return self.bring_home(after)

    def end_scripts(self) -> None:
        """End what trials left at work there, and put back what they set. Raises ConnectionLost and TrialRefused."""
        self.connection.run(f"place={shlex.quote(self.settings.directory.rstrip('/'))}\n{END}")

    def end_dead_trial(self) -> Outcome:
        """Keep a dead machine's messages, remove the trial's files there. Raises ConnectionLost, TrialRefused."""
        self.tell(self.last_words())
        place = shlex.quote(self.directory)
        clear = f"cd {place} && [ -O . ] || exit 0; sh conditions.sh restore >&2; s=$?; rm -rf {place}; exit $s"
        done = self.patiently(lambda: self.connection.run(clear), 60.0)
        if done.status:
            self.tell(f"what the trial had changed is not restored yet: {last_line(done.stderr)}")
        return Outcome(
            void="rebooted",
            message="The machine rebooted in mid-trial (a panic, a power failure): its log is in console.log.",
        )

    def patiently(self, what: Callable[[], T], seconds: float) -> T:
        """The result of `what`, tried again until the time is up. Raises the last ConnectionLost, or TrialRefused at once."""
        end = time.monotonic() + seconds
        while True:
            try:
                return what()
            except ConnectionLost as error:
                if time.monotonic() + RETRY > end:
                    raise
                self.tell(f"trying again: {error}")
                time.sleep(RETRY)

    def reboot(self, before: Observation) -> None:
        """Choose the kernel for one boot, and go. Raises TrialRefused where it cannot be chosen."""
        release = self.trial.arm.kernel.release
        if self.boot != "kexec":
            command = {"grub-reboot": "grub-reboot", "bootctl": "bootctl set-oneshot --"}[self.boot]
            choose = f"{command} {shlex.quote(self.entries[self.trial.arm.contender.name].path)}"
            leave = "systemctl reboot"
        else:
            own = OWN_WORDS.join(filter(None, (self.default, self.trial.arm.contender.cmdline)))
            initrd = f"i=/boot/initrd.img-{release}; [ -e $i ] && set -- --initrd=$i"
            choose = f'set --; {initrd}; kexec -l /boot/vmlinuz-{release} --command-line={shlex.quote(own)} "$@"'
            leave = "systemctl kexec"
        self.tell(f"rebooting from {before.release} into {release} ({self.boot})")
        done = self.connection.run(f"set -e; {choose} >&2; {going(leave)}")
        if done.status:
            raise TrialRefused(
                "boot-refused", f"{release} cannot be chosen for the next boot: {last_line(done.stderr)}"
            )

    def come_back(self, before: Observation) -> Observation:
        """The machine in its new boot. Raises ConnectionLost when the deadline passes."""

        def new_boot() -> Observation:
            found = look(self.connection)
            if found.boot_id == before.boot_id:
                raise ConnectionLost("it has not shut down yet")
            return found

        found = self.patiently(new_boot, self.settings.boot_deadline)
        self.tell(f"back with {found.release}, up {found.uptime:.1f} s")
        return found

    def begin(self) -> None:
        """Bring the script, and start it apart from this connection."""
        place = shlex.quote(self.directory)
        room = f"free=$(df -Pk {shlex.quote(self.settings.directory)} | awk 'END {{print $4}}')"
        enough = (
            f'[ "$free" -ge {self.settings.free_mib * 1024} ] || {{ echo "only $free KiB are free" >&2; exit 28; }}'
        )
        fill = f"rm -rf {place}; umask 077; mkdir {place} && cd {place} && tar -xf - && mkdir -p scratch programs && printf 999 >status.room"
        done = self.connection.run(f"{room}; {enough}; {fill}", stdin=self.input_archive(), timeout=300)
        if done.status == 28 or "No space left" in done.stderr:
            raise TrialRefused(
                "disk-full", f"{self.settings.directory} has too little room: {last_line(done.stderr)}"
            )
        if done.status:
            raise TrialRefused(
                "setup-failed", f"the script cannot be copied to {self.directory}: {last_line(done.stderr)}"
            )
        # Not `&&`: whatever was set is put back, however the script ended.
        run = (
            "echo $$ >session; mkdir -p out/environment; sh conditions.sh begin out/environment/conditions >conditions.log 2>&1; s=$?; "
            "if [ $s = 0 ]; then KDUEL_SCRATCH=$PWD/scratch KDUEL_PROGRAMS=$PWD/programs sh guest.sh out >script.log 2>&1; s=$?; "
            f"sh conditions.sh end >>conditions.log 2>&1 || s={OUT_OF_BAND}; "
            "else sh conditions.sh restore; fi; "
            # In the room that was taken before: the disk may be full by now.
            "printf %03d $s | dd of=status.room conv=notrunc 2>/dev/null; mv status.room status"
        )
        script = f"cd {place} && if [ ! -e conditions.log ]; then {self.detach_command(run)} fi"
        self.patiently(lambda: self.connection.run(script), 60.0)
        self.tell("the script runs")

    def detach_command(self, run: str) -> str:
        """Shell that starts a script apart from the connection."""
        return f"setsid nohup sh -c {shlex.quote(run)} >/dev/null 2>&1 </dev/null &"

    def input_archive(self) -> bytes:
        """A tar with guest.sh, conditions.sh and programs/."""
        files = {
            "guest.sh": self.trial.script.encode(),
            "conditions.sh": conditions_script(self.settings.conditions, RESTORE, UNDO).encode(),
        } | {f"programs/{name}": data for name, data in self.programs.items()}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(data), 0o755
                tar.addfile(member, io.BytesIO(data))
        return packed.getvalue()

    def attend(self, began: Observation) -> Observation:
        """Wait for the script's end, with few connections, as these disturb. Raises ConnectionLost (deadline)."""
        end = self.start + self.settings.boot_deadline + self.settings.conditions.wait + self.trial.deadline
        cuts = 0
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise TrialRefused("deadline", "the script did not end in time")
            turns = max(1, int(min(left, 600) / 2))
            place = shlex.quote(self.directory)
            same = f'read b </proc/sys/kernel/random/boot_id; [ "$b" = {shlex.quote(began.boot_id)} ]'
            turn = f"[ ! -e {place}/status ] && [ $i -lt {turns} ]"
            wait = f"i=0; {same} && while {turn}; do sleep 2; i=$((i+1)); done; "
            try:
                done = self.connection.run(
                    f"{wait}{LOOK}; [ -e {place}/status ] && echo ended", timeout=min(left, 600) + 60
                )
            except ConnectionLost as error:
                cuts += 1
                self.facts["connection_cuts"] = cuts
                self.tell(f"connection cut in mid-trial: {error}")
                time.sleep(RETRY)
                continue
            found = read_look(done.text)
            if done.text.splitlines()[-1] == "ended" or found.boot_id != began.boot_id:
                return found

    def compare_clocks(self, began: Observation, ended: Observation) -> None:
        """Keep as a fact that a clock was set meanwhile; durations are of uptime, which is not affected."""
        jump = (ended.date - began.date) - (ended.at - began.at)
        if abs(jump) > 2 + 0.01 * (ended.at - began.at) and ended.boot_id == began.boot_id:
            self.facts["clock_jump_seconds"] = round(jump, 1)
            self.tell(f"its clock jumped by {jump:.1f} s during the trial")

    def bring_home(self, now: Observation) -> Outcome:
        """The script's files into the trial's directory, and the verdict on the boot."""
        place = shlex.quote(self.directory)
        # Read twice in place of once written: the disk there may be full.
        pack = (
            f"cd {place} && mv script.log conditions.log out/ 2>/dev/null; df -Pk . | awk 'END {{print \"free\", $4}}' >&2; "
            'printf \'KDUEL DONE 0.0 %s\\nKDUEL BEGIN %s %s\\n\' "$(cat status)" "$(tar -C out -cf - . | wc -c)" '
            "\"$(tar -C out -cf - . | sha256sum | cut -d' ' -f1)\" && tar -C out -cf - . && printf '\\nKDUEL END\\n'"
        )
        stream = self.trial.into / envelope.RAW

        def fetch() -> CommandResult:
            with stream.open("wb") as out:
                return self.connection.run(pack, timeout=600, out=out)

        done = self.patiently(fetch, 120.0)
        try:
            marks = envelope.bring_in(stream, self.trial.into).marks
        except envelope.BrokenEnvelope as error:
            return Outcome(void="broken-envelope", message=f"The results did not arrive completely: {error}.")
        # Where trials share a boot, its log reports the others' troubles, too.
        if self.boot != "no" and (trouble := findings_in(self.trial.into)):
            self.facts["console_findings"] = trouble
        self.patiently(lambda: self.connection.run(f"rm -rf {place}"), 60.0)
        self.mark("off")
        status = marks.get("DONE", (0.0, None))[1]
        free = re.search(r"^free ([0-9]{1,18})$", done.stderr, re.MULTILINE)
        if free and int(free[1]) < LEAST_FREE:
            return Outcome(
                void="disk-full",
                message=f"{self.settings.directory} there was full when the script ended ({free[1]} KiB free): what it wrote "
                "last may be cut.",
            )
        if status == OUT_OF_BAND:
            said = read_end(self.trial.into / "conditions.log", 1000) or "without an error message"
            return Outcome(void="conditions", message=f"Conditions were outside the configured limits: {said}.")
        if status in VOIDS:
            lost = loss_of_peer(status, self.trial.into)
            remedy = "See that it is up, and that the [machine.peer] shell of the study reaches it from here."
            return Outcome(void=lost.code, message=f"{lost.message} {remedy}")
        if status != 0:
            return Outcome(void="setup-failed", message=f"The setup lines failed; the script ended with {status}.")
        expected = {"release": self.trial.arm.kernel.release, "architecture": now.architecture}
        if self.settings.clocksource:
            expected |= dict.fromkeys(("clocksource", "clocksource_end"), self.settings.clocksource)
        captured = environments_in(self.trial.into)
        told = self.trial.into / "environment" / "conditions"
        for path in captured:
            # Of several contenders in one boot each has an environment of its own; the conditions are the boot's.
            if told.is_file() and path != told.parent and not (path / "conditions").is_dir():
                shutil.copyfile(told, path / "conditions")
        reasons = [gate(read_environment(path), expected) for path in captured] or [
            "it recorded nothing of its environment"
        ]
        if wrong := next((reason for reason in reasons if reason), ""):
            return Outcome(void="wrong-machine", message=f"The machine is not what was planned: {wrong}.")
        return Outcome()

    def last_words(self) -> str:
        """The last console lines of the previous boot, where the machine keeps them."""
        script = (
            "journalctl -q -k -b -1 -n 60 --no-pager 2>/dev/null; cat /sys/fs/pstore/* 2>/dev/null | tail -c 20000"
        )
        try:
            done = self.connection.run(script)
        except (ConnectionLost, TrialRefused):
            return "the log of the previous boot cannot be read"
        return f"last lines of the previous boot:\n{done.text[-20000:] or '(the machine keeps no log of it)'}"


def default_cmdline(now: Observation) -> str:
    """Command line that the machine boots with by itself: without what its boot loader, or KDuel for a contender, added."""
    return " ".join(w for w in now.cmdline.split(OWN_WORDS)[0].split() if not w.startswith("BOOT_IMAGE="))


def going(leave: str) -> str:
    """Shell that lets the machine go a second later: it must answer before its connection is cut."""
    return f"sync; setsid sh -c 'sleep 1; {leave}' >/dev/null 2>&1 </dev/null &"


def look(connection: Connection) -> Observation:
    """The machine now. Raises ConnectionLost and TrialRefused."""
    return read_look(connection.run(LOOK).text)


def read_look(text: str) -> Observation:
    """Observation that LOOK printed. Raises ConnectionLost where it is cut."""
    lines = text.splitlines()
    try:
        return Observation(lines[0], lines[1], lines[2], float(lines[3]), float(lines[4]), lines[5], time.monotonic())
    except (IndexError, ValueError) as error:
        raise ConnectionLost(f"it answered {text[:100]!r}") from error
