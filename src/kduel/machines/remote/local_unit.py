"""The systemd unit that continues a run after each reboot of the machine that KDuel itself runs on. The user installs
it (`kduel local install RUN`) and removes it (`kduel local remove`), with what trials left behind."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from kduel import core
from kduel.core.cache import cache_root
from kduel.core.errors import HostError, InputError
from kduel.core.supervised_process import run_text
from kduel.core.this_host import text_of
from kduel.machines.remote import grub, sdboot
from kduel.machines.remote.ssh_trial import RESTORE

NAME = "kduel-resume.service"
UNIT = Path("etc/systemd/system", NAME)
STATE = Path("var/lib/kduel-local.json")
RUN_MARK = "# RUN="
ROOT = Path("/")


def unit_text(run: Path) -> str:
    """The unit. Type=exec: a oneshot would keep systemd's own boot from ever being finished, and be in its times."""
    environment = {
        "KDUEL_CACHE": str(cache_root().absolute()),
        "HOME": os.environ.get("HOME", "/root"),
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(Path(core.__file__).resolve().parents[2]),
    }
    lines = "\n".join(f"Environment={quote_word(f'{key}={value}')}" for key, value in environment.items())
    command = " ".join(quote_word(word) for word in (sys.executable, "-P", "-m", "kduel", "resume", str(run)))
    return f"""{RUN_MARK}{run}
# Installed by `kduel local install`; `kduel local remove` removes it.
[Unit]
Description=KDuel continues {percent(str(run))} after each of its reboots
ConditionPathExists={percent(str(run / "lock.json"))}
After=network-online.target time-sync.target

[Service]
Type=exec
{lines}
WorkingDirectory=/
ExecStart={command}
Restart=no

[Install]
WantedBy=multi-user.target
"""


def percent(text: str) -> str:
    """systemd would read its specifiers otherwise."""
    return text.replace("%", "%%")


def quote_word(word: str) -> str:
    """A word as systemd reads it."""
    return '"' + percent(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$") + '"'


def installed_for(root: Path = ROOT) -> Path | None:
    """The run that the unit goes on with, or None where there is no unit."""
    first = text_of(root / UNIT).split("\n", 1)[0]
    return Path(first.removeprefix(RUN_MARK)) if first.startswith(RUN_MARK) else None


def install(run: Path, root: Path = ROOT) -> Path:
    """Install and enable the unit for a run; its file. Raises InputError, HostError."""
    run = run.absolute()
    if "\n" in str(run):
        raise InputError(f"{run!r} cannot be written into a systemd unit", "Give a path without a line break.")
    other = installed_for(root)
    if other not in (None, run):
        raise InputError(f"the unit is installed already, for {other}", "Remove it first: kduel local remove")
    check_systemd()
    path = root / UNIT
    text = unit_text(run).encode()
    try:
        path.write_bytes(text)
    except OSError as error:
        raise HostError(
            f"{path} cannot be written: {error.strerror}", "Only root may: sudo kduel local install RUN"
        ) from error
    systemctl(root, "enable", NAME)
    return path


def remove(root: Path = ROOT) -> list[str]:
    """Take the unit away and put everything back; what was done, in words. Raises HostError."""
    check_systemd()
    said = []
    path = root / UNIT
    if path.exists():
        systemctl(root, "disable", *(["--now"] if running(root) else []), NAME)
        path.unlink()
        said.append(f"removed {path}")
        if running(root):
            systemctl(root, "daemon-reload")
    restore = root / RESTORE.lstrip("/")
    if restore.exists():
        done = run_text(["sh", str(restore)], timeout=120)
        if done.returncode:
            raise HostError(
                f"{restore} did not restore everything: {done.stderr.strip()[-300:]}",
                f"See what it does, and do it by hand: {shlex.quote(str(restore))}",
            )
        restore.unlink()
        Path(f"{restore}.new").unlink(missing_ok=True)
        said.append("restored the settings that a trial had changed")
    state = root / STATE
    if state.exists():
        state.unlink()
        said.append("discarded the unfinished trial; `kduel resume` repeats it")
    custom = root / grub.CUSTOM.lstrip("/")
    if custom.exists() and grub.BEGIN in custom.read_text("utf-8", errors="replace"):
        script = grub.custom_script([]).replace(grub.CUSTOM, shlex.quote(str(custom)))
        subprocess.run(["sh", "-c", script], timeout=60, check=False)
        said.append(f"removed KDuel's entries from {custom}")
    if root == ROOT and shutil.which("bootctl"):
        done = run_text(["sh", "-c", sdboot.REMOVE], timeout=60)
        if done.returncode == 0:
            said.append("took back the entries for systemd-boot, and the choice of one for the next boot")
    environment = root / "boot/grub/grubenv"
    chosen = (
        re.search(r"^next_entry=.", environment.read_text("utf-8", "replace"), re.M) if environment.exists() else None
    )
    if chosen and shutil.which("grub-editenv"):
        subprocess.run(["grub-editenv", str(environment), "unset", "next_entry"], timeout=60, check=False)
        said.append("took back the choice of a kernel for the next boot")
    return said


def running(root: Path) -> bool:
    """True if systemd runs there now."""
    return root == ROOT and Path("/run/systemd/system").is_dir()


def check_systemd() -> None:
    """Raises HostError without systemd."""
    if shutil.which("systemctl") is None:
        raise HostError(
            "this machine has no systemd, whose unit would go on with the run after a reboot",
            "Measure it from another machine: --machine ssh:root@HOST",
        )


def systemctl(root: Path, *words: str) -> None:
    """Raises HostError where it fails."""
    where = [] if root == ROOT else [f"--root={root}"]
    done = run_text(["systemctl", *where, *words], timeout=120)
    if done.returncode:
        raise HostError(
            f"systemctl {' '.join(words)} failed: {done.stderr.strip()[-300:]}", "Repair what it reports."
        )
