"""Steps of a trial over SSH, in this machine's own shell: what each says where the machine does not do its part."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from kduel.core.experiment import Contender
from kduel.guest.link import HUNG
from kduel.kernels import Kernel
from kduel.machines import Arm, Trial
from kduel.machines.remote.connection import Connection, ConnectionLost, TrialRefused
from kduel.machines.remote.grub import MenuEntry
from kduel.machines.remote.settings import SshSettings
from kduel.machines.remote.ssh_trial import LEAST_FREE, Journey, Observation, look

RELEASE = "6.1.0-50-amd64"
SEEN = Observation("boot", RELEASE, "x86_64", 1.0, 1.0, "quiet nosmt=force", 1.0)


class Here(Connection):
    """This machine's own shell in place of ssh's."""

    def __init__(self) -> None:
        super().__init__("here")
        self.argv = ["sh", "-c"]


@pytest.fixture
def journey(tmp_path: Path) -> Callable[..., Journey]:
    def made(boot: str = "grub-reboot", cmdline: str = "", **settings: object) -> Journey:
        contender = Contender(kernel=f"installed:{RELEASE}", cmdline=cmdline)
        arm = Arm(contender, Kernel(spec="x", release=RELEASE, image=tmp_path, sha256=""))
        into = tmp_path / "trial"
        into.mkdir()
        return Journey(
            SshSettings(place="here", directory=str(tmp_path), **settings),  # type: ignore[arg-type]
            Here(), Trial(id="1", arm=arm, script="", deadline=1.0, into=into), boot=boot,
            entries={contender.name: MenuEntry("menu>entry", "entry", "", "")}, cmdline="quiet", programs={},
        )  # fmt: skip

    return made


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program of that name before all others."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")

    def put(name: str, line: str) -> None:
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)

    return put


@pytest.mark.parametrize(
    ("boot", "chooses"), [("grub-reboot", "grub-reboot"), ("bootctl", "bootctl"), ("kexec", "kexec")]
)
@pytest.mark.parametrize("status", [0, 1])
def test_a_kernel_that_cannot_be_chosen_is_not_rebooted_into(
    tmp_path: Path,
    journey: Callable[..., Journey],
    program: Callable[[str, str], None],
    boot: str,
    chooses: str,
    status: int,
) -> None:
    gone = tmp_path / "gone"
    program(chooses, f"echo no such entry >&2; exit {status}")
    # What comes first when the machine is let go, and what would take it down.
    program("sync", f"touch {gone}")
    program("setsid", "exit 0")
    if status:
        said = f"{RELEASE} cannot be chosen for the next boot: no such entry"
        with pytest.raises(TrialRefused, match=said) as caught:
            journey(boot).reboot(SEEN)
        assert caught.value.void == "boot-refused"
        assert not gone.exists()
    else:
        journey(boot).reboot(SEEN)
        assert gone.exists()


def test_a_machine_in_its_old_boot_has_not_come_back(journey: Callable[..., Journey]) -> None:
    own = journey(boot_deadline=1.0)
    now = look(own.connection)
    with pytest.raises(ConnectionLost, match="it has not shut down yet"):
        own.come_back(now)
    assert own.come_back(structs.replace(now, boot_id="another")).boot_id == now.boot_id


@pytest.mark.parametrize(
    ("cmdline", "release", "void"),
    [
        ("", "6.1.0-49-amd64", "fell-back"),
        ("nosmt", RELEASE, "wrong-machine"),
        ("quiet loud", RELEASE, "wrong-machine"),
    ],
)
def test_another_kernel_or_a_word_that_its_command_line_lacks_is_no_trial(
    journey: Callable[..., Journey], cmdline: str, release: str, void: str
) -> None:
    assert journey(cmdline=cmdline).measure(structs.replace(SEEN, release=release)).void == void


def test_a_boot_that_ended_in_mid_trial_is_void(
    journey: Callable[..., Journey], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = journey()
    monkeypatch.setattr(own, "begin", lambda: None)
    monkeypatch.setattr(own, "bring_home", lambda _: pytest.fail("there is nothing to bring home"))
    monkeypatch.setattr(own, "attend", lambda began: structs.replace(began, boot_id="another"))
    outcome = own.measure(SEEN)
    assert outcome.void == "rebooted" and "rebooted in mid-trial" in outcome.message


@pytest.mark.parametrize(
    ("said", "void"),
    [("tar: guest.sh: Cannot write: No space left on device", "disk-full"), ("tar: not an archive", "setup-failed")],
)
def test_a_script_that_cannot_be_copied_there_is_told_with_the_reason(
    journey: Callable[..., Journey], program: Callable[[str, str], None], said: str, void: str
) -> None:
    program("tar", f"echo '{said}' >&2; exit 2")
    with pytest.raises(TrialRefused, match=re.escape(said)) as caught:
        journey(free_mib=0).begin()
    assert caught.value.void == void


def test_what_must_be_free_is_looked_at_before_anything_is_copied(
    journey: Callable[..., Journey], program: Callable[[str, str], None], tmp_path: Path
) -> None:
    program("df", f"echo fs 1 1 {100 * 1024 - 1} 1% /")
    with pytest.raises(TrialRefused, match="only 102399 KiB are free") as caught:
        journey(free_mib=100).begin()
    assert caught.value.void == "disk-full" and not (tmp_path / "kduel-1").exists()


@pytest.mark.parametrize(("free", "void"), [(LEAST_FREE - 1, "disk-full"), (LEAST_FREE, "wrong-machine")])
def test_results_from_a_disk_that_was_full_do_not_count(
    journey: Callable[..., Journey], program: Callable[[str, str], None], tmp_path: Path, free: int, void: str
) -> None:
    """With room enough the trial goes on to the next check: nothing was recorded of its environment."""
    own = journey()
    (tmp_path / "kduel-1/out").mkdir(parents=True)
    (tmp_path / "kduel-1/status").write_text("000")
    program("df", f"echo fs 1 1 {free} 1% /")
    assert own.bring_home(SEEN).void == void
    assert not (tmp_path / "kduel-1").exists()


@pytest.mark.parametrize(
    ("date", "boot", "jump"), [(104.5, "a", 3.5), (98.0, "a", -3.0), (102.9, "a", None), (104.5, "b", None)]
)
def test_a_clock_that_was_set_during_a_trial_is_told(date: float, boot: str, jump: float | None) -> None:
    def seen(date: float, at: float, boot: str) -> Observation:
        return Observation(
            boot_id=boot, release="6.1", architecture="x86_64", uptime=9.0, date=date, cmdline="", at=at
        )

    journey = object.__new__(Journey)
    journey.facts, journey.log = {}, []
    journey.compare_clocks(seen(100.0, 0.0, "a"), seen(date, 1.0, boot))
    assert journey.facts == ({} if jump is None else {"clock_jump_seconds": jump})


def test_a_peer_that_did_not_answer_is_named_with_what_was_said(
    journey: Callable[..., Journey], tmp_path: Path
) -> None:
    own = journey()
    out = tmp_path / "kduel-1/out"
    for file, text in {"environment/peer.error": "no route to host\n", "02-netperf/exit.json": "{}"}.items():
        (out / file).parent.mkdir(parents=True)
        (out / file).write_text(text)
    (tmp_path / "kduel-1/status").write_text(f"{HUNG:03d}")
    outcome = own.bring_home(SEEN)
    assert outcome.void == "peer-hung"
    assert "did not answer any more in or after the step 02-netperf: no route to host." in outcome.message
    assert "[machine.peer] shell" in outcome.message


@pytest.mark.parametrize(
    ("root", "status", "refused"), [(True, 0, False), (True, 1, True), (True, 3, False), (False, 1, False)]
)
def test_what_sudo_says_is_a_refusal_only_where_it_refused(
    program: Callable[[str, str], None], root: bool, status: int, refused: bool
) -> None:
    """It warns of a host name that it cannot resolve, too, and the command then runs."""
    program("sudo", f'echo "sudo: unable to resolve host x" >&2; exit {status}')
    here = Here()
    here.sudo = True
    line = f'echo "sudo: quoted" >&2; exit {status}'
    if refused:
        with pytest.raises(TrialRefused) as caught:
            here.run(line, root=root)
        assert caught.value.void == "no-sudo"
    else:
        assert here.run(line, root=root).status == status
