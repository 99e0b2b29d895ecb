"""The test machine with UEFI firmware and systemd-boot, which were put there as its administrator would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import build_machine
from real_machine import UP, Real, mount_unit

FIRMWARE = Path("/usr/share/OVMF")
PARTITION = mount_unit("The EFI system partition", "/dev/vda1 /efi")
INSTALL = f"""set -e
modprobe virtio_blk
echo 'type=uefi' | sfdisk -q --label gpt /dev/vda
mkfs.vfat -F 32 /dev/vda1 >&2
mkdir /efi
cat >/etc/systemd/system/kduel-test-esp.service <<'END'
{PARTITION}END
systemctl enable --now kduel-test-esp
bootctl install --no-variables --esp-path=/efi
echo {build_machine.COMMAND_LINE!r} >/etc/kernel/cmdline
for kernel in /boot/vmlinuz-*cloud*; do kernel-install add "${{kernel#/boot/vmlinuz-}}" "$kernel"; done
cp /boot/vmlinuz-9.9.9-broken /efi/
printf 'title Broken\\nversion 9.9.9-broken\\nlinux /vmlinuz-9.9.9-broken\\noptions root=/dev/nowhere console=ttyS0 panic=5\\n' \\
    >/efi/loader/entries/broken.conf
sync
umount /efi
"""


class Uefi(Real):
    """It boots by GRUB for once, to be made into one that does not."""

    cpus = 1
    """With two, OVMF 2022.11 in QEMU 7.2 once did not come back from a reset within minutes."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        with (place / "esp.img").open("wb") as stream:
            stream.truncate(256 << 20)
        shutil.copyfile(FIRMWARE / "OVMF_VARS.fd", place / "variables.fd")
        self.more = ("-drive", f"if=none,id=esp,format=raw,cache=unsafe,file={place / 'esp.img'}",
                     "-device", "virtio-blk-pci,drive=esp,bootindex=1")  # fmt: skip

    def furnish(self) -> None:
        done = subprocess.run(self.argv(INSTALL), capture_output=True, text=True, timeout=UP, check=False)
        assert done.returncode == 0, done.stderr
        self.switch_off()
        self.more += ("-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={FIRMWARE / 'OVMF_CODE.fd'}",
                      "-drive", f"if=pflash,unit=1,format=raw,cache=unsafe,file={self.place / 'variables.fd'}")  # fmt: skip
        self.switch_on()
        self.wait()
