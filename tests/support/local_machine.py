"""The machine `local` in namespaces of its own: the host's name stands for any sysctl, /var/lib and /boot are empty, and a
"reboot" is another boot id and the end of all that KDuel started there.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
RELEASE = platform.release()
GRUB = f"""if [ "${{next_entry}}" ] ; then
  set default="${{next_entry}}"
  set next_entry=
  save_env next_entry
fi
if [ -f $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
menuentry 'Debian' --id 'the-entry' {{
  linux /boot/vmlinuz-{RELEASE} root=/dev/sda1
}}
"""
PREPARE = r"""
set -e
mount -t tmpfs none /var/lib
mount -t tmpfs none /boot
mkdir /boot/grub
cp "$T/grub.cfg" /boot/grub/
echo image >"/boot/vmlinuz-$(uname -r)"
[ -e "$T/boot_id" ] || echo 00000000-0000-0000-0000-000000000000 >"$T/boot_id"
mount --bind "$T/units" /etc/systemd/system
mount --bind "$T/cmdline" /proc/cmdline
mount --bind "$T/boot_id" /proc/sys/kernel/random/boot_id
[ ! -e "$T/var" ] || cp -a "$T/var/." /var/lib/
mkdir -p /run/kduel-sched /tmp/kduel-sched
mount --bind "$T/sched" /run/kduel-sched
mount --bind "$T/planted" /tmp/kduel-sched
cat "$T/domainname" >/proc/sys/kernel/domainname
sh -c 'echo $$ >"$T/pid"; exec "$@"' sh "$@" && s=0 || s=$?
cat /proc/sys/kernel/domainname >"$T/domainname"
rm -rf "$T/var"
cp -a /var/lib "$T/var"
exit $s
"""
STUBS = {
    "grub-reboot": 'echo "$1" >>"$T/chosen"',
    "systemctl": """[ "$1" = reboot ] || exit 0
date +%s%N >"$T/boot_id"
entry=$(tail -n 1 "$T/chosen")
sed -n "/^menuentry '$entry'/,/^}/s/^ *linux *//p" /boot/grub/custom.cfg 2>/dev/null >"$T/cmdline.new"
[ -s "$T/cmdline.new" ] || echo root=/dev/sda1 >"$T/cmdline.new"
cat "$T/cmdline.new" >"$T/cmdline"
kill -TERM "$(cat "$T/pid")"
""",
}
"""What a reboot is, as far as KDuel can see: another boot id, the command line of the chosen entry, and its own end."""


class LocalMachine:
    """A directory for the namespaces' contents, and KDuel run inside of them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "bin").mkdir()
        (place / "work").mkdir()
        (place / "units").mkdir()
        (place / "sched").mkdir()
        (place / "planted").mkdir()
        (place / "domainname").write_text("before\n")
        (place / "cmdline").write_text("root=/dev/sda1\n")
        (place / "grub.cfg").write_text(GRUB)
        for name, text in STUBS.items():
            path = place / "bin" / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        self.run = place / "run"

    def study(self, command: str = "cat /proc/sys/kernel/domainname", boot: str = "no", unit: str = "load") -> Path:
        contenders = "".join(
            f'[[contender]]\nkernel = "installed:{RELEASE}"\nname = "{name}"\nsysctl = {{"kernel.domainname" = "{name}"}}\n'
            for name in ("one", "two2")
        )
        path = self.place / "study.toml"
        path.write_text(
            f'[study]\nname = "local"\n{contenders}[machine]\nkind = "local"\nboot = "{boot}"\nboot_deadline = 300\n'
            f'free_mib = 1\ndirectory = "{self.place}/work"\n[settle]\nmode = "fixed"\nseconds = 0\n'
            f'[blocks]\nfixed = 1\nunit = "{unit}"\n[[benchmark]]\nuse = "command"\nlabel = "name"\n'
            f'command = "({command}) | wc -c"\nmetrics = [{{name="length", unit="B", better="none", regex="(\\\\d+)"}}]\n'
            'primary = ["length"]\n'
        )
        return path

    def kduel(self, *words: str, wait: bool = True, timeout: float = 120) -> subprocess.Popen[str]:
        environment = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "NO_COLOR": "1",
            "T": str(self.place),
            "PATH": f"{self.place}/bin:{os.environ['PATH']}",
        }
        process = subprocess.Popen(
            ["unshare", "--uts", "--mount", "sh", "-c", PREPARE, "sh", sys.executable, "-m", "kduel", *words],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if wait:
            self.said = process.communicate(timeout=timeout)[0]
        return process

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.run.glob("trials/*/trial.json"))]

    def stdout(self) -> dict[str, str]:
        return {
            str(record["contender"]): (self.run / "trials" / str(record["id"]) / "01-name" / "stdout").read_text()
            for record in self.records()
        }
