"""The gates' shell against a directory that looks like /sys/kernel/sched_ext, and what is concluded from their records.

The kernel's own behaviour is tested in test_guest.py, in a real guest.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.run.script import write_environment
from kduel.schedulers import make_setup
from kduel.schedulers.build import Tools, build_schedulers, find_scheduler
from kduel.schedulers.bundle import libraries_of, make_bundle
from kduel.schedulers.check import check_gates, parse_snapshot
from kduel.schedulers.snippets import UNDO

FAKE = """#!/bin/sh
# Does to $KDUEL_SCHED_SYS what a scheduler and the kernel do to /sys/kernel/sched_ext.
sys=$KDUEL_SCHED_SYS
[ "${1:-}" != --refuse ] || { echo "Error: Failed to load: Invalid argument (os error 22)" >&2; exit 1; }
mkdir -p "$sys/root"
echo "${FAKE_OPS:-fake_1.0_x86_64}" >"$sys/root/ops"
echo $(($(cat "$sys/enable_seq") + 1)) >"$sys/enable_seq"
echo 1 >"$sys/switch_all"
trap 'rm -r "$sys/root"; echo 0 >"$sys/switch_all"; echo disabled >"$sys/state"; sleep "${FAKE_LINGERS:-0}"; exit 0' TERM
echo enabled >"$sys/state"
while :; do sleep 0.1; done
"""


class Guest:
    """A directory in place of a guest: runs a contender's snippets as the guest script does."""

    def __init__(self, root: Path, scheduler: str) -> None:
        self.root = root
        self.sys, self.trial = root / "sys", root / "trial"
        self.sys.mkdir()
        for name, value in (("state", "disabled"), ("enable_seq", "0"), ("nr_rejected", "0"), ("switch_all", "0")):
            (self.sys / name).write_text(value + "\n")
        (self.trial / "gates").mkdir(parents=True)
        (self.trial / "setup").mkdir()
        program = root / "programs" / "sched" / "scx_fake" / "scx_fake"
        program.parent.mkdir(parents=True)
        program.write_text(FAKE)
        program.chmod(0o755)
        self.environment = os.environ | {
            "KDUEL_SCHED_DIR": str(root / "state"),
            "KDUEL_SCHED_SYS": str(self.sys),
            "KDUEL_PROGRAMS": str(root / "programs"),
        }
        # What the host bundles must be a real program; in the guest, FAKE stands in its place.
        shutil.copy("/bin/true", root / "scx_fake")
        contender = Contender(kernel="k", scheduler=f"{root}/{scheduler}")
        self.setup = make_setup(contender, [contender], cache=Cache(root / "cache"))

    def run(self, script: str, output: str) -> int:
        with (self.trial / output).open("wb") as stream:
            return subprocess.run(
                ["sh", "-c", script], env=self.environment, stdout=stream, stderr=subprocess.STDOUT, check=False
            ).returncode

    def begin(self) -> None:
        assert self.run(self.setup.before_all, "setup/stdout") == 0, "the setup itself never fails"

    def step(self, name: str, meanwhile: Callable[[], None] = lambda: None) -> int:
        status = self.run(self.setup.before_each, f"gates/{name}.before")
        meanwhile()
        self.run(self.setup.after_each, f"gates/{name}.after")
        return status

    def set(self, name: str, value: str) -> None:
        (self.sys / name).write_text(value + "\n")

    def pid(self) -> int:
        return int((self.root / "state" / "pid").read_text())

    def reason(self) -> str:
        return str(self.setup.check(self.trial) or "")


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    yield Guest(tmp_path, "scx_fake --mode 'two words'")
    # A guest ends with all that is in it; this one is a directory.
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(tmp_path).encode() in command.read_bytes() and int(command.parent.name) != os.getpid():
                os.kill(int(command.parent.name), 9)


def test_a_scheduler_that_stays_is_green_and_ends_when_told(guest: Guest) -> None:
    guest.begin()
    assert guest.step("01-a") == 0
    assert guest.step("02-b") == 0
    assert guest.reason() == ""
    pid = guest.pid()
    guest.run(guest.setup.after_all, "stopped")
    assert (guest.sys / "state").read_text() == "disabled\n"
    assert (guest.root / "state" / "ended").read_text() == "0\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nobody_else_may_write_where_the_gates_are(guest: Guest) -> None:
    os.umask(0o022)
    guest.begin()
    assert (guest.root / "state").stat().st_mode & 0o777 == 0o700
    del guest.environment["KDUEL_SCHED_DIR"]
    for script in (guest.setup.before_all, guest.setup.before_each, guest.setup.after_all, UNDO):
        assert "/run/kduel-sched" in script and "/tmp" not in script


@pytest.mark.slow
def test_a_process_that_outlives_its_scheduler_does_not_end_the_next_one(guest: Guest) -> None:
    guest.environment["FAKE_LINGERS"] = "2"
    guest.begin()
    assert guest.step("01-a") == 0
    guest.run(guest.setup.after_all, "stopped")
    guest.begin()
    time.sleep(2.5)
    assert guest.step("01-a") == 0
    assert guest.reason() == ""
    guest.run(guest.setup.after_all, "stopped")


def test_a_killed_scheduler_voids_the_trial_and_the_signal_is_told(guest: Guest) -> None:
    guest.begin()

    def kill() -> None:
        os.kill(guest.pid(), 9)
        guest.set("state", "disabled")
        time.sleep(0.3)

    guest.step("01-a", kill)
    assert guest.reason().startswith("scheduler-ejected: after 01-a: sched_ext is disabled, its process was killed")
    assert "by signal 9" in guest.reason()


def test_a_scheduler_that_restarted_is_not_the_same(guest: Guest) -> None:
    guest.begin()
    guest.step("01-a")
    guest.step("02-b", lambda: guest.set("enable_seq", "2"))
    assert guest.reason() == "scheduler-changed: after 02-b: enable_seq was 1 and is 2"


def test_rejected_tasks_void_the_trial(guest: Guest) -> None:
    guest.begin()
    guest.step("01-a", lambda: guest.set("nr_rejected", "3"))
    assert guest.reason() == "scheduler-changed: after 01-a: nr_rejected was 0 and is 3"


def test_a_partial_scheduler_voids_the_trial(guest: Guest) -> None:
    guest.begin()
    guest.step("01-a", lambda: guest.set("switch_all", "0"))
    assert guest.reason().startswith("not-all-tasks: after 01-a")


def test_wrong_ops_void_the_trial(guest: Guest) -> None:
    guest.environment["FAKE_OPS"] = "other_1.0"
    guest.begin()
    guest.step("01-a")
    assert guest.reason() == "wrong-scheduler: before 01-a: the kernel runs other_1.0, not fake"


def test_a_scheduler_that_is_refused_keeps_every_step_from_running(tmp_path: Path) -> None:
    guest = Guest(tmp_path, "scx_fake --refuse")
    guest.begin()
    assert guest.step("01-a") == 1
    assert guest.step("02-b") == 1
    assert guest.reason().startswith("scheduler-not-started: ")
    assert "ended with status 1 before it was at work" in guest.reason()
    assert "Invalid argument" in guest.reason(), "the scheduler's own words"


def test_another_scheduler_in_the_way_is_told(guest: Guest) -> None:
    guest.set("state", "enabled")
    guest.begin()
    assert guest.step("01-a") == 1
    assert guest.reason().startswith("scheduler-in-the-way")


def test_a_kernel_without_sched_ext_is_told(guest: Guest) -> None:
    shutil.rmtree(guest.sys)
    guest.begin()
    assert guest.step("01-a") == 1
    assert guest.reason().startswith("no-sched-ext")


def test_a_missing_record_is_not_green(guest: Guest) -> None:
    guest.begin()
    guest.step("01-a")
    (guest.trial / "gates" / "01-a.after").unlink()
    assert guest.reason().startswith("gates-missing")
    (guest.trial / "gates" / "01-a.after").write_text("")
    assert guest.reason().startswith("gates-missing")


def test_knobs_are_set_read_back_and_put_back(tmp_path: Path) -> None:
    knob, features, modes = tmp_path / "knob", tmp_path / "features", tmp_path / "preempt"
    knob.write_text("750000\n")
    features.write_text("PLACE_LAG NO_NEXT_BUDDY\n")
    library = Path(__file__).parents[2] / "src/kduel/schedulers/gates.sh"

    def run(lines: str) -> subprocess.CompletedProcess[str]:
        script = f"sched_dir={tmp_path}/state\nKDUEL_SCHED_DIR={tmp_path}/state\n. {library}\n{lines}"
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)

    assert run(f"sched_knob {knob} 3000000").returncode == 0
    assert knob.read_text() == "3000000\n"
    assert run(f"sched_feature {features} NEXT_BUDDY").returncode == 0
    features.write_text("PLACE_LAG\tNEXT_BUDDY\n")
    modes.write_text("none voluntary (full)\n")
    # The kernel's file would say `none voluntary (full)` to this; a plain file keeps the word alone.
    assert run(f"sched_knob {modes} full").returncode == 0
    modes.write_text("none voluntary (full)\n")
    seen = parse_snapshot(run("sched_look").stdout)
    assert seen.knobs == {str(knob): "3000000", f"{features} NEXT_BUDDY": "NEXT_BUDDY", str(modes): "full"}
    features.write_text("PLACE_LAG NEXT_BUDDY\n")
    modes.write_text("always [madvise] never\n")
    assert run(f"sched_value {modes}").stdout == "madvise\n"
    refused = run(f"sched_feature {features} NO_NEXT_BUDDYS")
    assert refused.returncode == 1
    assert refused.stdout.startswith("failed no-such-feature")
    assert run(f"sched_knob {tmp_path}/none 1").stdout.startswith("failed no-such-knob")
    assert run("sched_knob /proc/sys/kernel/ostype 1").stdout.startswith("failed knob-refused")
    assert run("sched_stop").returncode == 0
    assert knob.read_text() == "750000\n"
    assert features.read_text() == "NO_NEXT_BUDDY\n"
    assert modes.read_text() == "full\n"


def test_a_knob_that_somebody_turned_voids_the_trial(tmp_path: Path) -> None:
    slice_ns, features = "/sys/kernel/debug/sched/base_slice_ns", "/sys/kernel/debug/sched/features"
    (tmp_path / "gates").mkdir()

    def reason(before: str, after: str) -> str:
        (tmp_path / "gates" / "01-a.before").write_text(f"state absent\n{before}\n")
        (tmp_path / "gates" / "01-a.after").write_text(f"state absent\n{after}\n")
        return str(
            check_gates(tmp_path, Contender(kernel="k", sysctl={"debug.sched.base_slice_ns": 3_000_000})) or ""
        )

    kept = f"knob {slice_ns} 3000000\nknob {features} NO_RUN_TO_PARITY"
    assert reason(kept, kept) == ""
    turned = reason(kept, kept.replace("3000000", "2800000"))
    assert turned == f"knob-changed: after 01-a: {slice_ns} was 3000000 and is 2800000"
    turned = reason(kept, kept.replace("NO_RUN", "RUN"))
    assert turned.endswith("features RUN_TO_PARITY was NO_RUN_TO_PARITY and is RUN_TO_PARITY")
    assert reason(kept, "").endswith(f"{slice_ns} was 3000000 and is not there")


def test_without_scheduler_policy_or_knob_nothing_is_added() -> None:
    plain = Contender(kernel="k")
    added = make_setup(plain, [plain, Contender(kernel="l")], cache=Cache())
    assert not any((added.before_all, added.before_each, added.after_each, added.after_all, added.files))
    assert added.wrap("true\n") == "true\n"
    assert added.check(Path("/nonexistent")) is None


def test_a_policy_is_told_or_launched() -> None:
    contender = Contender(kernel="k", policy="fifo:50")
    made = make_setup(contender, [contender], cache=Cache())
    assert made.programs == ("kpolicy",)
    assert made.wrap("echo 'a b'\n", native=True) == "export KDUEL_POLICY=fifo:50\necho 'a b'\n"
    launched = made.wrap("echo 'a b'\n").replace('"$KDUEL_PROGRAMS/kpolicy" fifo:50', "")
    assert subprocess.run(["sh", "-ec", launched], capture_output=True, text=True, check=True).stdout == "a b\n"


@given(st.text(max_size=400))
def test_whatever_a_guest_prints_is_read(text: str) -> None:
    look = parse_snapshot(text)
    assert all(len(value) <= 400 for value in look.facts.values())


def test_a_scheduler_that_is_nowhere_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither built nor in PATH") as caught:
        find_scheduler("scx_lavd --performance", cache=Cache(tmp_path))
    assert "kduel schedulers build scx_lavd" in caught.value.remedy
    with pytest.raises(InputError, match="neither built nor in PATH"):
        find_scheduler("scx_nosuch", cache=Cache(tmp_path))


def test_missing_tools_are_named_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BPF_CLANG", raising=False)
    with pytest.raises(HostError) as caught:
        Tools().require("scx_lavd")
    for what in ("cargo", "clang", "make", "gcc", "pkg-config"):
        assert what in caught.value.message
    assert "clang-19" in caught.value.remedy


CARGO = """#!/bin/sh
[ "$1" = --version ] && echo "cargo 1.99.0 (0000000 2026-01-01)" && exit
echo "   Compiling libbpf-sys"
echo "error: failed to run custom build command for scx_flash"
exit 101
"""


def test_a_scheduler_that_does_not_build_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    said = {"cargo": CARGO, "clang-19": "#!/bin/sh\necho clang version 19.1.7\n"}
    for name in ("cargo", "clang-19", "make", "gcc", "pkg-config"):
        (tools / name).write_text(said.get(name, "#!/bin/sh\n:\n"))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.delenv("BPF_CLANG", raising=False)
    cache = Cache(tmp_path / "cache")
    with pytest.raises(HostError) as caught:
        build_schedulers(["scx_flash"], cache=cache, progress=Progress(), jobs=1)
    assert "building scx_flash 1.1.4 failed:\nerror: failed to run custom build command" in caught.value.message
    assert "cargo 1.99.0" in caught.value.remedy
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.parent.name != "locks"]
    monkeypatch.setenv("BPF_CLANG", "/bin/false")
    with pytest.raises(HostError, match="BPF_CLANG names /bin/false, which is none"):
        build_schedulers(["scx_flash"], cache=cache, progress=Progress(), jobs=1)


def test_a_bundle_runs_by_its_own_libraries(tmp_path: Path) -> None:
    make_bundle(Path("/bin/ls"), "ls", tmp_path, version="1", source="path", tools={})
    linker, libraries = libraries_of(Path("/bin/ls"))
    assert linker is not None
    assert {path.name for path in (tmp_path / "lib").iterdir()} == {linker.name, *(path.name for path in libraries)}
    done = subprocess.run([tmp_path / "ls", str(tmp_path / "bin")], capture_output=True, text=True, check=True)
    assert done.stdout == "ls\n"
    with pytest.raises(InputError, match="not a Linux program"):
        libraries_of(tmp_path / "ls")


def test_the_environment_has_the_sysctls_that_were_in_force(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "files").write_text(
        "/proc/sys/kernel/sched_autogroup_enabled:1\n/proc/sys/kernel/threads-max:7000\n"
    )
    (tmp_path / "gates").mkdir()
    knobs = "knob /proc/sys/kernel/sched_autogroup_enabled 0\nknob /sys/kernel/debug/sched/base_slice_ns 6\n"
    (tmp_path / "gates" / "01-a.before").write_text("state absent\n" + knobs)
    write_environment(tmp_path)
    found = json.loads((tmp_path / "environment.json").read_text())["sysctl"]
    assert found == {"kernel.sched_autogroup_enabled": "0", "kernel.threads-max": "7000"}


@pytest.mark.parametrize(("status", "late"), [(124, True), (137, True), (1, False)])
def test_a_setup_whose_time_was_up_is_told_as_that(tmp_path: Path, status: int, late: bool) -> None:
    (tmp_path / "setup").mkdir()
    (tmp_path / "setup" / "exit.json").write_text(f'{{"status": {status}, "seconds": 493.05, "started": 4605.95}}')
    reason = str(check_gates(tmp_path, Contender(kernel="k", scheduler="scx_fake")))
    said = f"ended with status {status}" + ": its time was up" * late
    assert reason.startswith("setup-failed: ") and reason.endswith(said)
    (tmp_path / "setup" / "exit.json").write_text("{")
    assert check_gates(tmp_path, Contender(kernel="k", scheduler="scx_fake")).code == "gates-missing"


def test_check_without_setup_record(tmp_path: Path) -> None:
    assert check_gates(tmp_path, Contender(kernel="k", scheduler="scx_fake")).code == "gates-missing"
