"""GRUB's menu, in the words of Debian's update-grub: the entry of a kernel, and whether a choice holds only once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kduel.core.errors import HostError
from kduel.machines.remote import sdboot
from kduel.machines.remote.grub import check_custom, check_once, custom_script, entries, entry_of, own_entry

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


def test_an_entry_for_repairs_is_not_booted_whatever_its_title() -> None:
    release = "6.1.0-50-amd64"
    renamed = CONFIG.replace(" (recovery mode)", " (in single user mode)")
    assert entry_of(renamed, release).cmdline == "root=UUID=1b2c ro  quiet"
    titled = CONFIG.replace(" ro single", " ro nomodeset")
    assert entry_of(titled, release).cmdline == "root=UUID=1b2c ro  quiet"
    alone = renamed.replace(
        f"vmlinuz-{release} root=UUID=1b2c ro  quiet", f"vmlinuz-{release} root=UUID=1b2c ro single"
    )
    with pytest.raises(HostError, match="has no entry that boots"):
        entry_of(alone, release)


def test_a_kernel_without_an_entry_is_told_with_those_there_are() -> None:
    with pytest.raises(HostError, match=r"boots 5\.10; it has 6\.12\.9\+deb12-amd64, 6\.1\.0-50-amd64"):
        entry_of(CONFIG, "5.10")


def test_a_choice_that_would_last_is_refused() -> None:
    check_once(CONFIG)
    with pytest.raises(HostError, match="chosen at every boot"):
        check_once(CONFIG.replace("save_env next_entry", ""))


CUSTOM_SOURCED = CONFIG + "if [ -f  $prefix/custom.cfg ]; then\n  source $prefix/custom.cfg\nfi\n"


def test_an_entry_of_our_own_is_like_the_machines() -> None:
    like = entry_of(CONFIG, "6.1.0-50-amd64")
    assert like.body[0].startswith("if [ x = y ]") and not any("recovery" in line for line in like.body)
    made, text = own_entry(like, "kduel-2", "6.1.0-50-amd64", "preempt=full nosmt")
    assert made.path == "kduel-2"
    assert "linux\t/vmlinuz-6.1.0-50-amd64 root=UUID=1b2c ro  quiet preempt=full nosmt\n" in text
    (found,) = entries(text)
    assert (found.path, found.image, found.cmdline) == (
        "kduel-2", "/vmlinuz-6.1.0-50-amd64", "root=UUID=1b2c ro  quiet preempt=full nosmt"
    )  # fmt: skip


def test_an_entry_for_a_kernel_that_was_brought() -> None:
    like = entry_of(CONFIG, "6.12.9+deb12-amd64")
    _, text = own_entry(like, "kduel-1", "7.0.0-mine", "")
    assert "linux\t/boot/vmlinuz-7.0.0-mine root=UUID=1b2c ro  quiet\n" in text
    assert "initrd\t/boot/initrd.img-7.0.0-mine\n" in text
    assert "6.12.9" not in text


def test_a_menu_that_does_not_take_them_up_is_told() -> None:
    check_custom(CUSTOM_SOURCED)
    with pytest.raises(HostError, match="does not include"):
        check_custom(CONFIG)


def test_entries_are_put_beside_the_users_own_and_taken_away(tmp_path: Path) -> None:
    """The shell itself, on a directory in place of /boot/grub."""

    def run(texts: list[str]) -> str:
        script = custom_script(texts).replace("/boot/grub", str(tmp_path))
        subprocess.run(["sh", "-c", script], check=True)
        return (tmp_path / "custom.cfg").read_text() if (tmp_path / "custom.cfg").exists() else ""

    theirs = "menuentry 'mine' {\n  echo it\\'s \"mine\"\n}\n"
    (tmp_path / "custom.cfg").write_text(theirs)
    _, first = own_entry(entry_of(CONFIG, "6.1.0-50-amd64"), "kduel-1", "6.1.0-50-amd64", "a='b'")
    _, second = own_entry(entry_of(CONFIG, "6.1.0-50-amd64"), "kduel-2", "6.1.0-50-amd64", "c")
    assert [entry.path for entry in entries(run([first, second]))] == ["kduel-1", "kduel-2"]
    assert run([first]).startswith(theirs) and "kduel-2" not in run([first])
    assert run([]) == theirs
    (tmp_path / "custom.cfg").unlink()
    assert "kduel-1" in run([first])
    assert run([]) == ""


FIXTURE_TREE = {
    "debian-6.1.0-50-amd64.conf": "title Debian\nversion 6.1.0-50-amd64\nmachine-id 1b2c\nsort-key debian\noptions root=UUID=1b2c ro\n"
    "options quiet\nlinux /debian/6.1.0-50-amd64/linux\ninitrd /debian/6.1.0-50-amd64/initrd.img\n",
    "arch.conf": "title   Arch Linux\nlinux   /vmlinuz-linux-zen\ninitrd  /initramfs-linux-zen.img\noptions root=LABEL=arch rw\n",
    "auto-windows.conf": "title Windows\nefi /EFI/Microsoft/Boot/bootmgfw.efi\n",
}
"""loader/entries of a fixture tree: what kernel-install and a user write. On a machine with UEFI: test_remote_uefi.py."""


def test_systemd_boots_entries_on_a_fixture_tree(tmp_path: Path) -> None:
    """Its own commands are a stub here, which knows one option; the entries' shell runs as it is."""
    place = tmp_path / "loader" / "entries"
    place.mkdir(parents=True)
    for name, text in FIXTURE_TREE.items():
        (place / name).write_text(text)
    stub = tmp_path / "bin" / "bootctl"
    stub.parent.mkdir()
    stub.write_text(f'#!/bin/sh\n[ "$1" = -x ] && echo {tmp_path}\n')
    stub.chmod(0o755)
    environment = {"PATH": f"{stub.parent}:/usr/bin:/bin"}

    def shell(script: str) -> str:
        return subprocess.run(
            ["sh", "-c", script], env=environment, check=True, capture_output=True, text=True
        ).stdout

    listing = shell(sdboot.LIST)
    assert [(e.path, e.release, e.cmdline) for e in sdboot.entries(listing)] == [
        ("arch.conf", "linux-zen", "root=LABEL=arch rw"),
        ("debian-6.1.0-50-amd64.conf", "6.1.0-50-amd64", "root=UUID=1b2c ro quiet"),
    ]
    with pytest.raises(HostError, match=r"no entry that boots 5\.10; it has linux-zen, 6\.1\.0-50-amd64"):
        sdboot.entry_of(listing, "5.10")
    like = sdboot.entry_of(listing, "6.1.0-50-amd64")
    entry, script = sdboot.own_entry(like, 1, 'nosmt a="b c"')
    shell(script)
    assert sdboot.entry_of(shell(sdboot.LIST), "6.1.0-50-amd64") == like, "ours is like none, whatever its name"
    (made,) = sdboot.entries("entry:x" + (place / entry.path).read_text().join("\n\n"))
    assert made.cmdline == 'root=UUID=1b2c ro quiet nosmt a="b c"' == entry.cmdline
    assert made.release == "6.1.0-50-amd64" and made.title == entry.path
    shell(sdboot.FORGET)
    assert sorted(path.name for path in place.iterdir()) == sorted(FIXTURE_TREE)


@pytest.mark.parametrize("other", ["arch.conf", "0a1b2c-6.12.0.conf", "auto.conf"])
def test_an_entry_of_our_own_never_becomes_the_default(other: str) -> None:
    """The default is the first entry in order of sort keys; then, the other way round, of names as systemd compares them."""
    like = sdboot.BootEntry("x.conf", "x", "/linux", "", text="title x\nsort-key debian\nlinux /linux\n")
    entry, _ = sdboot.own_entry(like, 1, "word")
    assert isinstance(entry, sdboot.BootEntry) and "sort-key" not in entry.text
    compared = ["systemd-analyze", "compare-versions", "--", entry.path, "lt", other]
    assert subprocess.run(compared, check=False).returncode == 0
