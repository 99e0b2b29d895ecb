"""A real machine for tests, as far as KDuel can tell: Debian with systemd, sshd, GRUB and two kernels on a disk.

Built once, into the cache: disk.img, and the keys `id` (the user's) and `host.pub` (the machine's own). GRUB has an
entry that is broken on purpose: its kernel panics on boot, and the machine falls back to its default.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import struct
import subprocess
from pathlib import Path

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import Kernel, resolve
from kduel.kernels.apt.mirror import debian_mirror, keyring

RECIPE = 5
"""To be raised whenever `build` does something else."""
KERNELS = ("debian:6.1-cloud", "debian:6.12-cloud")
PACKAGES = (
    "dosfstools", "fdisk", "gpgv", "grub-common", "grub2-common", "grub-pc-bin", "iproute2", "kexec-tools", "kmod", "mount",
    "openssh-server", "procps", "python3", "sudo", "sysbench", "systemd-boot", "systemd-sysv",
)  # fmt: skip
DISK, FIRST_SECTOR = 2 << 30, 2048
GRUB_MODULES = "biosdisk part_msdos ext2 normal linux loadenv test echo configfile search ls boot reboot serial sleep"
COMMAND_LINE = (
    "root=/dev/nvme0n1p1 rw console=ttyS0 clocksource=tsc tsc=reliable no_timer_check rootwait panic=5 quiet"
)
"""On a busy host too few emulated ticks come in time for the kernel's check of its timer: without `no_timer_check` it
panics, and the machine boots its default."""
NETWORK = """[Unit]
Description=The test machine's network
DefaultDependencies=no
After=systemd-modules-load.service
Before=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'modprobe virtio_net; for i in 1 2 3 4 5 6 7 8 9; do [ -e /sys/class/net/eth0 ] && break; sleep 1; done; ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2'
[Install]
WantedBy=multi-user.target
"""
# What no test needs and an emulator takes seconds for, each.
MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer",
    "dpkg-db-backup.timer", "getty@tty1.service", "serial-getty@ttyS0.service", "systemd-timesyncd.service",
    "kexec-load.service", "modprobe@.service", "dev-hugepages.mount", "dev-mqueue.mount", "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount", "systemd-network-generator.service", "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service", "systemd-journal-flush.service", "systemd-journal-catalog-update.service",
    "systemd-pstore.service", "ldconfig.service", "systemd-sysusers.service", "systemd-update-done.service",
    "systemd-machine-id-commit.service", "systemd-networkd.service", "systemd-networkd.socket", "getty-static.service",
    "getty.target", "systemd-binfmt.service", "systemd-sysext.service", "systemd-hwdb-update.service", "systemd-firstboot.service", "systemd-random-seed.service",
)  # fmt: skip


def grub_config(kernels: list[Kernel]) -> str:
    """As update-grub would write it, in short: the first kernel is the default, an entry chosen once goes first."""
    entries = [
        f"menuentry 'Debian, with Linux {kernel.release}' --id 'gnulinux-{kernel.release}' {{\n"
        f"  linux /boot/vmlinuz-{kernel.release} {COMMAND_LINE}\n}}\n"
        for kernel in kernels
    ]
    broken = COMMAND_LINE.replace("nvme0n1p1", "nowhere").replace(" rootwait", "")
    entries.append(
        "menuentry 'Debian, with Linux 9.9.9-broken' --id 'gnulinux-9.9.9-broken' {\n"
        f"  linux /boot/vmlinuz-9.9.9-broken {broken}\n}}\n"
    )
    return (
        'load_env\nset timeout=0\nset default="0"\n'
        'if [ "${next_entry}" ] ; then\n  set default="${next_entry}"\n  set next_entry=\n  save_env next_entry\nfi\n'
        + "".join(entries)
        + "if [ -f $prefix/custom.cfg ]; then\n  source $prefix/custom.cfg\nfi\n"
    )


def machine(cache: Cache, progress: Progress, packages: tuple[str, ...] = ()) -> Path:
    """The directory with disk.img, id, id.pub and host.pub; with further packages, where a test needs them."""
    kernels = [resolve(spec, cache=cache, progress=progress) for spec in KERNELS]
    packages = PACKAGES + packages
    told = [RECIPE, packages, NETWORK, MASKED, grub_config(kernels), [kernel.sha256 for kernel in kernels]]
    key = hashlib.sha256(repr(told).encode()).hexdigest()[:24]
    return cache.entry("test-machine", key, lambda directory: build(directory, kernels, packages))


def build(directory: Path, kernels: list[Kernel], packages: tuple[str, ...]) -> None:
    """Fill the cache's entry. Needs what KDuel's own guest roots need, and nothing of the host's boot loader."""
    (directory / "network.service").write_text(NETWORK)
    (directory / "grub.cfg").write_text(grub_config(kernels))
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "kduel-test", "-f", str(directory / "id")], check=True
    )
    tree = directory / "tree"
    tree.mkdir()
    lines = [
        'install -m 644 "$D/network.service" "$1/etc/systemd/system/kduel-test-network.service"',
        'chroot "$1" systemctl -q enable kduel-test-network.service ssh.service',
        *(f'ln -sfn /dev/null "$1/etc/systemd/system/{unit}"' for unit in MASKED),
        'chroot "$1" systemctl -q set-default multi-user.target',
        'echo tester >"$1/etc/hostname"; : >"$1/etc/machine-id"; echo uninitialized >"$1/etc/machine-id"',
        'for user in tuner plain; do chroot "$1" useradd -m -s /bin/sh -p "*" $user; done',
        "echo 'tuner ALL=(ALL) NOPASSWD: ALL' >\"$1/etc/sudoers.d/tuner\"",
        'for home in root home/tuner home/plain; do mkdir -p -m 700 "$1/$home/.ssh"; '
        'install -m 600 "$D/id.pub" "$1/$home/.ssh/authorized_keys"; done',
        'for user in tuner plain; do chroot "$1" chown -R $user: /home/$user; done',
        "printf 'UseDNS no\\nUsePAM no\\nPasswordAuthentication yes\\n' >\"$1/etc/ssh/sshd_config.d/test.conf\"",
        'cp "$1/etc/ssh/ssh_host_ed25519_key.pub" "$D/host.pub"',
        'mkdir "$1/mnt/small"; echo "tmpfs /mnt/small tmpfs size=24m,mode=1777 0 0" >>"$1/etc/fstab"',
        'mkdir -p "$1/boot/grub"; cp "$D/grub.cfg" "$1/boot/grub/grub.cfg"',
        'chroot "$1" grub-editenv /boot/grub/grubenv create',
        f"chroot \"$1\" grub-mkimage -O i386-pc -o /core.img -p '(hd0,msdos1)/boot/grub' {GRUB_MODULES}",
        'cp "$1/core.img" "$1/usr/lib/grub/i386-pc/boot.img" "$D/"',
    ]
    for kernel in kernels:
        lines += [
            f'cp {shlex.quote(str(kernel.image))} "$1/boot/vmlinuz-{kernel.release}"',
            f'mkdir -p "$1/lib/modules" && cp -r {shlex.quote(str(kernel.modules))} "$1/lib/modules/{kernel.release}"',
            f'chroot "$1" depmod {kernel.release}',
        ]
        if kernel.config:
            lines.append(f'cp {shlex.quote(str(kernel.config))} "$1/boot/config-{kernel.release}"')
    lines.append(f'cp {shlex.quote(str(kernels[0].image))} "$1/boot/vmlinuz-9.9.9-broken"')
    # mmdebstrap has /proc, /sys and devices mounted here.
    lines.append(
        f'rm -rf "$1"/usr/share/doc "$1"/usr/share/locale "$1"/var/lib/apt/lists/* "$1"/core.img; chmod 755 "$1"\n'
        'tar --one-file-system --exclude="./dev/*" --exclude="./proc/*" --exclude="./sys/*" -C "$1" -cf - . '
        '| tar -C "$D/tree" -xpf -\n'
        f'truncate -s {DISK - FIRST_SECTOR * 512} "$D/part.img"\n'
        '/usr/sbin/mkfs.ext4 -q -F -E lazy_itable_init=0 -d "$D/tree" "$D/part.img"; rm -rf "$D/tree"'
    )
    script = directory / "customize.sh"
    script.write_text(f"set -eu\nD={shlex.quote(str(directory))}\n" + "\n".join(lines) + "\n")
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1735689600", "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=minbase", "--mode=auto", "--format=null"),
            f"--include={','.join(packages)}",
            '--aptopt=Apt::Install-Recommends "false"',
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            f"--customize-hook=sh {script} \"$1\"",
            f"--keyring={keyring()}",
            *("bookworm", "/dev/null", f"deb {debian_mirror()} bookworm main"),
        ],
        env=environment, check=True,
    )  # fmt: skip
    assemble(directory)


def assemble(directory: Path) -> None:
    """The disk: GRUB's boot sector with a table of one partition, its core behind it, the partition."""
    disk = directory / "disk.img"
    boot, core = (directory / "boot.img").read_bytes(), (directory / "core.img").read_bytes()
    assert len(core) <= (FIRST_SECTOR - 1) * 512
    partition = struct.pack(
        "<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", FIRST_SECTOR, DISK // 512 - FIRST_SECTOR
    )
    with disk.open("wb") as stream:
        stream.truncate(DISK)
        stream.write(boot[:440].ljust(446, b"\0") + partition.ljust(64, b"\0") + b"\x55\xaa")
        stream.write(core)
    subprocess.run(
        ["dd", f"if={directory / 'part.img'}", f"of={disk}", "bs=1M", "seek=1", "conv=sparse,notrunc", "status=none"],
        check=True,
    )
    (directory / "part.img").unlink()


if __name__ == "__main__":
    print(machine(Cache(), Progress()))
