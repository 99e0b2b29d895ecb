"""A guest started by a root that has only what podman and docker give to a container."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONTAINER = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid"),
    *("setuid", "setpcap", "net_bind_service", "sys_chroot", "setfcap"),
)
"""The capabilities of a container without --cap-add (containers.conf(5), default_capabilities)."""
BOOT = """
import os, pathlib, sys
import tiny_kernels as tiny
from kduel.guest.launch import Launch, run
from kduel.guest.vm import VirtualMachine

place = pathlib.Path(sys.argv[1])
cpu = max(os.sched_getaffinity(0))
(place / "initrd").write_bytes(b"x")
machine = VirtualMachine(
    accelerator="tcg", cpus=1, memory_mib=64, kernel=tiny.kernel(place / "kernel", tiny.POWER_OFF),
    initrd=place / "initrd", cmdline="",
)
try:
    os.sched_setaffinity(1, os.sched_getaffinity(1))
except PermissionError:
    print("without SYS_NICE")
done = run(machine, place / "console.log", Launch(boot_deadline=60, deadline=60, pin=[cpu]))
print(done.ended, done.pinned == [cpu])
"""


@pytest.mark.guest
@pytest.mark.skipif(
    os.geteuid() != 0, reason="Only root runs QEMU as another user, whose threads it may then not pin."
)
def test_the_root_of_a_container_pins_its_guests(tmp_path: Path) -> None:
    bounds = ",".join(["-all", *(f"+{name}" for name in CONTAINER)])
    tmp_path.chmod(0o755)
    done = subprocess.run(
        ["setpriv", f"--bounding-set={bounds}", "--inh-caps=-all", sys.executable, "-P", "-c", BOOT, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["without SYS_NICE", "off True"], done.stdout + done.stderr
