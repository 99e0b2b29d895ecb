"""QEMU for the test machine with working KVM: Debian 13's, built with one change, into the cache.

As published, its emulation of AMD's virtualisation delivers an interrupt that KVM injects, and keeps its number as that
of an exception under way. When the emulated processor is asked to stop before the guest leaves, the interrupt is
delivered a second time, though the guest has interrupts off: a guest that holds the lock of that interrupt waits for
itself for ever. (Seen in 10.0.13: Debian's 6.1 and 6.12 with two CPUs.)
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from pathlib import Path

from kduel.core.cache import Cache
from kduel.kernels.apt.mirror import debian_mirror, keyring

NEEDED = (
    "bzip2", "ca-certificates", "dpkg-dev", "gcc", "libc6-dev", "libglib2.0-dev", "libslirp-dev", "meson", "ninja-build",
    "python3-venv", "zlib1g-dev", "ipxe-qemu", "qemu-system-data", "seabios",
)  # fmt: skip
BUILD = r"""
set -eu
cd /tmp
apt-get -q source qemu
cd qemu-*/
sed -i 's/^\( *\)do_interrupt_x86_hardirq(env, vector, 1);/&\n\1cs->exception_index = -1;/' target/i386/tcg/system/svm_helper.c
grep -A1 'hardirq(env, vector, 1);' target/i386/tcg/system/svm_helper.c | grep -q 'exception_index = -1'
# Firmware is of no concern: Debian's own packages have it.
echo 'roms = []' >pc-bios/meson.build
mkdir build && cd build
../configure --target-list=x86_64-softmmu --without-default-features --enable-tcg --enable-slirp --disable-docs --disable-tools \
    --disable-download --disable-install-blobs >log || { cat log; exit 1; }
ninja --quiet qemu-system-x86_64 >log || { tail -n 50 log; exit 1; }
mkdir -p /kept/lib /kept/share
cp qemu-system-x86_64 /kept/
ldd qemu-system-x86_64 | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | xargs -I{} cp -L {} /kept/lib/
cp -L /lib64/ld-linux-x86-64.so.2 /kept/lib/
cp -L /usr/share/seabios/bios*.bin /usr/share/qemu/*.bin /usr/share/qemu/efi-virtio.rom /kept/share/
"""


def emulator(cache: Cache) -> tuple[str, ...]:
    """Words that start it here."""
    key = hashlib.sha256(repr([NEEDED, BUILD]).encode()).hexdigest()[:24]
    kept = cache.entry("test-emulator", key, build)
    return (
        *(f"{kept}/lib/ld-linux-x86-64.so.2", "--library-path", f"{kept}/lib"),
        *(f"{kept}/qemu-system-x86_64", "-L", f"{kept}/share"),
    )


def build(directory: Path) -> None:
    """Fill the cache's entry: six minutes on two cores."""
    script = directory / "build.sh"
    script.write_text(BUILD)
    copy = f'cp {shlex.quote(str(script))} "$1/build.sh" && chroot "$1" sh /build.sh && cp -r "$1"/kept/. {shlex.quote(str(directory))}/'
    mirror = debian_mirror()
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=apt", "--mode=auto", "--format=null"),
            f"--include={','.join(NEEDED)}",
            '--aptopt=Apt::Install-Recommends "false"',
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            f"--customize-hook={copy}",
            f"--keyring={keyring()}",
            *("trixie", "/dev/null", f"deb {mirror} trixie main", f"deb-src {mirror} trixie main"),
        ],
        check=True,
    )  # fmt: skip
