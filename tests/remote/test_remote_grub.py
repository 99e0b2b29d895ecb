"""GRUB's menu, in the words of Debian's update-grub: the entry of a kernel, and whether a choice holds only once."""

from __future__ import annotations

import pytest

from kduel.errors import HostError
from kduel.remote.grub import check_once, entries, entry_of

CONFIG = """\
### BEGIN /etc/grub.d/00_header ###
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
    save_env saved_entry
  fi
}
### BEGIN /etc/grub.d/10_linux ###
function gfxmode {
\tset gfxpayload="${1}"
}
menuentry 'Debian GNU/Linux' --class debian --class gnu-linux $menuentry_id_option 'gnulinux-simple-1b2c' {
\tload_video
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\tlinux\t/boot/vmlinuz-6.12.9+deb12-amd64 root=UUID=1b2c ro  quiet
\tinitrd\t/boot/initrd.img-6.12.9+deb12-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1b2c' {
\tmenuentry 'Debian GNU/Linux, with Linux 6.12.9+deb12-amd64' --class debian $menuentry_id_option 'gnulinux-6.12.9-advanced-1b2c' {
\t\tlinux\t/boot/vmlinuz-6.12.9+deb12-amd64 root=UUID=1b2c ro  quiet
\t}
\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-50-amd64 (recovery mode)' $menuentry_id_option 'gnulinux-6.1.0-50-recovery-1b2c' {
\t\tlinux\t/boot/vmlinuz-6.1.0-50-amd64 root=UUID=1b2c ro single
\t}
\tmenuentry "Debian GNU/Linux, with Linux 6.1.0-50-amd64" $menuentry_id_option 'gnulinux-6.1.0-50-advanced-1b2c' {
\t\tif [ x = y ]; then
\t\t  insmod x
\t\tfi
\t\tlinux\t/vmlinuz-6.1.0-50-amd64 root=UUID=1b2c ro  quiet
\t}
}
"""


def test_entries_are_found_with_their_submenu() -> None:
    assert entry_of(CONFIG, "6.12.9+deb12-amd64").path == "gnulinux-simple-1b2c"
    other = entry_of(CONFIG, "6.1.0-50-amd64")
    assert other.path == "gnulinux-advanced-1b2c>gnulinux-6.1.0-50-advanced-1b2c"
    assert other.cmdline == "root=UUID=1b2c ro  quiet"
    assert len(entries(CONFIG)) == 4


def test_a_kernel_without_an_entry_is_told_with_those_there_are() -> None:
    with pytest.raises(HostError, match=r"boots 5\.10; it has 6\.12\.9\+deb12-amd64, 6\.1\.0-50-amd64"):
        entry_of(CONFIG, "5.10")


def test_a_choice_that_would_last_is_refused() -> None:
    check_once(CONFIG)
    with pytest.raises(HostError, match="chosen for ever"):
        check_once(CONFIG.replace("save_env next_entry", ""))
