"""A kernel of ours on another machine: image and modules brought for a run, noted before in NOTED, and taken away."""

import io
import shlex
import tarfile

from kduel.core.errors import HostError, InputError
from kduel.kernels import Kernel
from kduel.machines.remote.connection import REMEDIES, Connection, ConnectionLost, TrialRefused, last_line

NOTED = "/var/lib/kduel-kernels"
OCCUPIED, FULL = 17, 28
REMOVE = (
    f"if [ -e {NOTED} ]; then while read -r r; do case $r in ''|*[!0-9A-Za-z.+~_-]*) continue ;; esac; "
    'rm -rf "/boot/vmlinuz-$r" "/boot/config-$r" "/boot/initrd.img-$r" "/lib/modules/$r"; '
    f"done <{NOTED}; rm -f {NOTED}; sync; fi"
)
"""Shell that takes away all that was brought."""


def bring(connection: Connection, kernel: Kernel, directory: str) -> None:
    """Install the kernel, with an initramfs if the machine's own has one. Raises InputError, HostError."""
    release, place = shlex.quote(kernel.release), shlex.quote(f"{directory.rstrip('/')}/kduel-kernel")
    packed = kernel_archive(kernel)
    script = f"""
if [ -e /boot/vmlinuz-{release} ] && ! grep -qxF {release} {NOTED} 2>/dev/null; then exit {OCCUPIED}; fi
room() {{ [ "$(df -Pk "$1" | awk 'END {{print $4}}')" -gt "$2" ] || {{ echo "$1 has too little room" >&2; exit {FULL}; }}; }}
room {shlex.quote(directory)} {len(packed) >> 10}
room /lib/modules {len(packed) >> 10}
room /boot {(kernel.image.stat().st_size >> 10) + 65536}
set -e
grep -qxF {release} {NOTED} 2>/dev/null || {{ echo {release} >>{NOTED}; sync {NOTED}; }}
rm -rf {place} /lib/modules/{release}; mkdir {place}
trap 'rm -rf {place}' EXIT
tar -C {place} -xf -
mkdir -p /lib/modules
[ ! -d {place}/modules ] || mv {place}/modules /lib/modules/{release}
mv {place}/boot/* /boot/
command -v depmod >/dev/null && depmod {release}
if [ -e /boot/initrd.img-"$(uname -r)" ]; then
    if command -v update-initramfs >/dev/null; then update-initramfs -c -k {release}
    elif command -v dracut >/dev/null; then dracut --force /boot/initrd.img-{release} {release}
    else echo "it boots with an initramfs, and has neither update-initramfs nor dracut" >&2; exit 1; fi
fi >&2
sync
"""
    try:
        done = connection.run(script, stdin=packed, timeout=1200)
    except (ConnectionLost, TrialRefused) as error:
        raise HostError(f"the kernel cannot be copied there: {error}", REMEDIES["unreachable"]) from error
    if done.status == OCCUPIED:
        raise InputError(
            f"{connection.place} has a kernel {kernel.release} of its own, which KDuel will not overwrite",
            f'Write kernel = "installed:{kernel.release}" if it is the one, or build yours with another LOCALVERSION.',
        )
    if done.status:
        raise HostError(
            f"{connection.place} cannot take the kernel {kernel.release}: {last_line(done.stderr)}",
            f"The copied files are listed there in {NOTED}; the next run removes them.",
        )


def kernel_archive(kernel: Kernel) -> bytes:
    """A tar with boot/vmlinuz-RELEASE, boot/config-RELEASE and modules/."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", dereference=False) as tar:
        tar.add(kernel.image.resolve(), f"boot/vmlinuz-{kernel.release}")
        if kernel.config is not None:
            tar.add(kernel.config.resolve(), f"boot/config-{kernel.release}")
        if kernel.modules is not None:
            # `build` and `source` lead to trees that are here, not there.
            tar.add(
                kernel.modules,
                "modules",
                filter=lambda member: (
                    None if member.name in ("modules/build", "modules/source") else give_to_root(member)
                ),
            )
    return packed.getvalue()


def give_to_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Root's there, whoever built it here."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
