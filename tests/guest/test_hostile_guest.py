"""A guest whose root is the enemy: one run, a contender an attack. Every attack costs its own trial at most."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hostile_payloads as payloads
import pytest

from kduel.core.cache import cache_root
from kduel.guest.envelope import KEPT, LIMIT
from kduel.guest.untar import MOST_DIRECTORIES, MOST_MEMBERS

pytestmark = [pytest.mark.guest, pytest.mark.network]
SOURCE = Path(__file__).parents[2] / "src"
KERNEL = "debian:6.12-cloud"
MOST_MEMORY = 400 << 20
"""Bytes of the runner's own, with all that it imports. Before its results went into a file it was 1 GB."""

OFF = "echo o >/proc/sysrq-trigger; sleep 100"
"""Nobody has to wait for what is as it was before: one that stays on is among the attacks, too."""
HEAD, ZEROS, TAIL = payloads.large_envelope()
ATTACKS = {
    "none": "",
    "files": """
        cd "$KDUEL_STEP/.."
        printf '[%.0s' $(seq 100000) >01-nested/exit.json
        echo "{\\"status\\": $(head -c 5000 /dev/zero | tr '\\0' 9)}" >02-digits/exit.json
        rm 03-directory/stdout; mkdir 03-directory/stdout
        rm -r environment/config.gz; mkdir environment/config.gz
        """,
    "names": 'cd "$KDUEL_STEP/.."; mkdir -p trial.json/x environment.json; ln -s /etc/passwd manifest.sha256',
    "tree": f"hijack '{payloads.shell(payloads.sealed(payloads.deep_tree()))}'; sleep 100",
    "header": f"hijack '{payloads.shell(payloads.sealed(payloads.pathological_header()))}'; {OFF}",
    "envelope": f"""
        hijack '{payloads.shell(HEAD)}; head -c {ZEROS} /dev/zero; {payloads.shell(TAIL)}'
        {OFF}
        """,
    "flood": "hijack 'cat /dev/zero'; sleep 100",
    "forged": r"""
        printf '\033]0;owned\007\033[2J\033]8;;http://example.org\033\\Kernel panic - not syncing: \033[31mforged\n' >/dev/console
        echo o >/proc/sysrq-trigger; sleep 100
        """,
    "disks": """
        for disk in /dev/vd?; do dd if=/dev/zero of=$disk bs=4k count=1 conv=notrunc || :; done
        dd if=/dev/zero of="$KDUEL_SCRATCH/full" bs=1M || :
        """,
}
STUDY = """
[study]
name = "hostile"
[machine]
kind = "qemu"
priority = "normal"
accel = "tcg"
memory = "512M"
disk = "64M"
cpus = 1
[host]
max_wait = 100 # other tests are no fault
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 1
turns = "off"
"""
STEP = """
[[benchmark]]
use = "command"
label = "{}"
time = 20
command = '''
echo x=1
{}'''
metrics = [{{ name = "x", unit = "1", better = "none", regex = "x=([0-9]+)" }}]
"""
PROGRAM = """
import atexit, pathlib, re, sys
def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    pathlib.Path(sys.argv[1]).write_text(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
atexit.register(peak)
from kduel.cli import main
main(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> tuple[subprocess.CompletedProcess[str], Path, int]:
    """What the run printed, where it is, and the runner's peak of memory in bytes."""
    place = tmp_path_factory.mktemp("hostile")
    contenders = "".join(
        f'[[contender]]\nkernel = "{KERNEL}"\nname = "{name}"\ncmdline = "attack={name}"\n' for name in ATTACKS
    )
    cases = "".join(f"{name}) {attack}\n;;\n" for name, attack in ATTACKS.items())
    attack = f"{payloads.HIJACK}case $(sed 's/.*attack=//; s/ .*//' /proc/cmdline) in\n{cases}esac"
    steps = [*((victim, "") for victim in ("nested", "digits", "directory")), ("attack", attack)]
    (place / "study.toml").write_text(STUDY + contenders + "".join(STEP.format(*step) for step in steps))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, place / "peak", "run", place / "study.toml", "--out", place / "run"],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended, place / "run", int((place / "peak").read_text()) << 10


@pytest.fixture(scope="module")
def records(done) -> dict[str, dict[str, Any]]:
    """Each trial's record, by the name of its attack."""
    found = [json.loads(path.read_text()) for path in done[1].glob("trials/*/trial.json")]
    return {record["contender"]: record for record in found}


def code(record: dict[str, Any]) -> str:
    """Why a trial is void, by its name; empty where it is not."""
    return (record.get("void") or {}).get("code", "")


def test_every_attack_ends_as_a_trial_of_its_own_and_the_run_at_its_end(done, records):
    ended, run, _ = done
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr and "cannot write" not in ended.stderr
    assert set(records) == set(ATTACKS)
    assert "Report: " in ended.stdout and list(run.glob("report/*.html"))
    assert not list(run.glob("trials/.new-*"))


@pytest.mark.parametrize(
    ("attack", "status", "reason"),
    [
        ("none", "ok", ""),
        ("files", "partial", ""),
        ("names", "void", "broken-envelope"),
        ("tree", "void", "broken-envelope"),
        ("header", "void", "broken-envelope"),
        # A whole envelope of one large file is no crime, but without what a trial holds it is no trial.
        ("envelope", "void", "wrong-machine"),
        ("flood", "void", "flood"),
        ("forged", "void", "panic"),
        ("disks", "ok", ""),
    ],
)
def test_an_attack_is_void_by_its_name_and_costs_no_other_trial(records, attack, status, reason):
    assert (records[attack]["status"], code(records[attack])) == (status, reason)
    if attack == "files":
        assert set(records[attack]["failed_steps"]) == {"nested", "digits", "directory"}


def test_the_terminal_gets_no_sequence_of_a_guests(done, records):
    ended, run, _ = done
    said = ended.stdout + ended.stderr
    assert "\x1b]" not in said and "\x1b[2J" not in said and "\x07" not in said
    assert "forged" in said and "\\x1b" in said
    shown = subprocess.run(
        [sys.executable, "-m", "kduel", "report", run],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
    )
    assert shown.returncode == 0 and b"\x1b]" not in shown.stdout and b"\x07" not in shown.stdout


def test_what_an_attack_costs_is_within_its_bounds(done, records):
    _, run, peak = done
    assert peak < MOST_MEMORY, f"{peak >> 20} MiB"
    for attack, record in records.items():
        trial = run / "trials" / record["id"]
        found = list(trial.rglob("*"))
        size = sum(path.lstat().st_blocks * 512 for path in found)
        directories = sum(path.is_dir() for path in found)
        print(f"{attack}: {record['seconds']:.0f} s, {size >> 10} KiB, {len(found)} inodes")
        assert len(found) <= MOST_MEMBERS + 20 and directories <= MOST_DIRECTORIES + 20
        assert size <= LIMIT + (32 << 20)
        if code(record) in ("broken-envelope", "flood"):
            assert (trial / "results.raw").stat().st_size <= KEPT
        assert all(path.is_file() or path.is_dir() for path in found) and not any(p.is_symlink() for p in found)
        # A trial's own deadline is four minutes and what its steps may take.
        assert record["seconds"] < 240 + 4 * 260
    print(f"runner: {peak >> 20} MiB")


def test_the_hosts_own_images_are_as_they_were(done):
    _, run, _ = done
    facts = json.loads((run / "lock.json").read_text())["machine"]["facts"]
    images = [path.read_bytes() for path in cache_root().glob("root/*/root.sqfs")]
    assert facts["root"]["sha256"] in {hashlib.sha256(image).hexdigest() for image in images}
