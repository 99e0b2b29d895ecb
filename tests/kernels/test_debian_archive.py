"""`debian:` from end to end: the real apt and dpkg-deb, against a small signed archive on loopback."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from heard import Heard
from made_kernels import Mirror, bzimage, deb, kernel_files, module
from waiting import wait_for

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.kernels import OTHER_WAYS, resolve
from kduel.kernels.apt import mirror as mirrors
from kduel.kernels.apt.archive import Archive
from kduel.kernels.debian import PLUGIN


def got(spec: str, cache: Cache, progress: Heard, *, offline: bool = False) -> str:
    """The version that a specification comes to."""
    version: str = resolve(spec, cache=cache, progress=progress, offline=offline).provenance["version"]
    return version


def make_old(cache: Cache) -> None:
    """Let the list of kernels be of the day before yesterday."""
    path = cache.root / "archive/amd64/index.json"
    text = path.read_text()
    made = text.split('"made":')[1].split(",")[0]
    path.write_text(text.replace(made, str(float(made) - 2 * 86400)))


@pytest.fixture
def stocked(mirror: Mirror) -> Mirror:
    mirror.add_kernel("bookworm", "6.1.170-1", "6.1.0-47")
    mirror.add_kernel("bookworm", "6.10.3-1", "6.10.3+deb12", meta="linux-image-6.10-amd64")
    mirror.add_kernel("bookworm-security", "6.1.192-2", "6.1.0-56")
    mirror.add_kernel("bookworm-security", "6.12.95-1~deb12u1", "6.12.95+deb12", meta="linux-image-6.12-amd64")
    mirror.add_kernel("trixie", "6.12.95-1", "6.12.95+deb13")
    mirror.add_kernel("trixie", "6.12.95-1", "6.12.95+deb13", "cloud-amd64")
    mirror.add_kernel("trixie-backports", "7.2.9-1~bpo13+1", "7.2.9+deb13", "cloud-amd64")
    mirror.add_kernel("experimental", "7.3~rc7-1~exp1", "7.3-rc7", "cloud-amd64")
    mirror.publish()
    return mirror


@pytest.mark.slow
def test_the_newest_that_is_meant(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    assert got("debian:6.1", cache, progress) == "6.1.192-2"
    assert got("debian:6.10", cache, progress) == "6.10.3-1"
    assert got("debian:6.12", cache, progress) == "6.12.95-1"
    assert got("debian:6", cache, progress) == "6.12.95-1"
    assert got("debian:6.12-cloud", cache, progress) == "6.12.95-1"
    assert got("debian:6.1.170-1", cache, progress) == "6.1.170-1"
    assert got("debian:6.1.0-47-amd64", cache, progress) == "6.1.170-1"
    assert got("debian:7-cloud", cache, progress) == "7.2.9-1~bpo13+1", (
        "not the release candidate, though it is newer"
    )
    assert got("debian:latest-cloud", cache, progress) == "7.2.9-1~bpo13+1"
    assert got("debian:7.3-cloud", cache, progress) == "7.3~rc7-1~exp1"
    assert got("debian:experimental-cloud", cache, progress) == "7.3~rc7-1~exp1"
    assert stocked.fetched("/bookworm/InRelease") == 1, "one look at the archive serves all"


@pytest.mark.slow
def test_a_suite_is_what_its_metapackage_installs(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    assert got("debian:bookworm", cache, progress) == "6.1.192-2"
    assert got("debian:trixie-cloud", cache, progress) == "6.12.95-1"
    with pytest.raises(InputError, match="has no rt kernel trixie"):
        got("debian:trixie-rt", cache, progress)


@pytest.mark.slow
def test_a_kernel_whole(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    kernel = resolve("debian:6.1", cache=cache, progress=progress)
    assert (kernel.release, kernel.architecture, kernel.spec) == ("6.1.0-56-amd64", "x86_64", "debian:6.1")
    assert kernel.sha256 == hashlib.sha256(kernel.image.read_bytes()).hexdigest()
    assert kernel.config is not None and kernel.config.read_text() == "CONFIG_PVH=y\n"
    assert kernel.modules is not None and kernel.modules.name == kernel.release
    assert sorted(p.name for p in kernel.modules.rglob("*") if p.is_file()) == ["modules.builtin", "virtio_blk.ko"]
    assert kernel.provenance["suites"] == ["bookworm-security"]
    assert kernel.provenance["exact"] == "debian:6.1.192-2-generic-amd64"
    assert got(kernel.provenance["exact"], cache, progress) == "6.1.192-2"
    (package,) = kernel.provenance["packages"]
    assert package["name"] == "linux-image-6.1.0-56-amd64" and len(package["sha256"]) == 64
    left = {p.name for p in kernel.image.parent.iterdir()}
    assert left == {"vmlinuz", "config", "lib", "kernel.json"}, "the package itself is not kept"


@pytest.mark.slow
def test_offline_uses_what_is_there(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    with pytest.raises(HostError, match=r"debian:6.1 is not in the cache.*has: none"):
        got("debian:6.1", cache, progress, offline=True)
    got("debian:6.1.170-1", cache, progress)
    asked = len(stocked.asked)
    assert got("debian:6.1", cache, progress, offline=True) == "6.1.170-1"
    assert "the newest in the cache" in progress.said[-1]
    got("debian:6.1.170-1", cache, progress, offline=True)
    assert progress.said[-1] == "debian:6.1.170-1: 6.1.0-47-amd64, in the cache", "as a lock names it"
    assert got("debian:bookworm", cache, progress, offline=True) == "6.1.170-1"
    with pytest.raises(HostError, match=r"debian:6.12 is not in the cache.*has: 6.1.0-47-amd64"):
        got("debian:6.12", cache, progress, offline=True)
    with pytest.raises(HostError, match="offline"):
        Archive(cache, progress, offline=True).fetch("linux-image-6.1.0-56-amd64")
    assert len(stocked.asked) == asked, "nothing was fetched"


@pytest.mark.slow
def test_an_unknown_version_tells_what_is_near(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    with pytest.raises(InputError) as caught:
        got("debian:6.1.128-1", cache, progress)
    assert caught.value.message == "Debian's archive has no generic kernel 6.1.128-1 for amd64"
    assert caught.value.remedy == "Of that series it has: 6.1.192-2, 6.1.170-1."
    with pytest.raises(InputError) as caught:
        got("debian:4.19", cache, progress)
    assert caught.value.remedy == f"It has: 6.12.95-1, 6.10.3-1, 6.1.192-2. {OTHER_WAYS}"
    assert all(way in OTHER_WAYS for way in ("ubuntu:bionic-4.15", "./vmlinuz,modules=DIR", "source:", "git:"))
    with pytest.raises(InputError, match="brings its own modules"):
        resolve("debian:6.1", cache=cache, progress=progress, modules="/lib/modules")


def split_kernel(mirror: Mirror, suite: str, version: str, abi: str, *, leave_out: str = "") -> None:
    release = f"{abi}-cloud-amd64"
    place = f"usr/lib/modules/{release}"
    parts = {
        "base": {f"{place}/config": b"CONFIG_X=y\n", f"{place}/modules.builtin": b""},
        "binary": {f"{place}/vmlinuz": bzimage(release)},
        "modules": {f"{place}/kernel/fs/ext4.ko": module(release)},
    }
    needs = ", ".join(f"linux-{part}-{release} (= {version})" for part in parts)
    for part, files in parts.items():
        if part != leave_out:
            mirror.add(suite, deb(mirror.built, f"linux-{part}-{release}", version, files))
    mirror.add(suite, deb(mirror.built, f"linux-image-{release}", version, {}, f"dracut | initramfs-tools, {needs}"))


def test_split_packages(mirror: Mirror, cache: Cache, progress: Heard) -> None:
    split_kernel(mirror, "trixie-backports", "7.2.8-1~bpo13+1", "7.2.8+deb13")
    split_kernel(mirror, "trixie-backports", "7.3.1-1~bpo13+1", "7.3.1+deb13", leave_out="modules")
    mirror.publish()
    kernel = resolve("debian:7-cloud", cache=cache, progress=progress)
    assert kernel.release == "7.2.8+deb13-cloud-amd64"
    assert kernel.config is not None and kernel.modules is not None
    assert [p.name for p in (kernel.modules / "kernel").rglob("*.ko")] == ["ext4.ko"]
    assert len(kernel.provenance["packages"]) == 3
    assert any("skipped" in said and "7.3.1-1~bpo13+1" in said for said in progress.said)
    with pytest.raises(InputError, match=r"without linux-modules-7.3.1\+deb13-cloud-amd64, so it cannot be booted"):
        got("debian:7.3-cloud", cache, progress)


def test_an_undivided_kernel_may_lack_a_package_that_holds_nothing(
    mirror: Mirror, cache: Cache, progress: Heard
) -> None:
    release = "6.18.1+deb13-amd64"
    needs = f"kmod, linux-base-{release} (= 6.18.1-1~bpo13+1)"
    mirror.add(
        "trixie-backports",
        deb(mirror.built, f"linux-image-{release}", "6.18.1-1~bpo13+1", kernel_files(release), needs),
    )
    mirror.publish()
    assert got("debian:6.18", cache, progress) == "6.18.1-1~bpo13+1"


@pytest.mark.slow
def test_the_archive_moves_on(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    got("debian:6.12", cache, progress)
    stocked.stanzas["bookworm-security"].clear()
    stocked.add_kernel("bookworm-security", "6.1.194-1", "6.1.0-57")
    stocked.publish()
    for old in (stocked.root / "debian/pool").glob("*6.1.192*"):
        old.unlink()
    assert got("debian:6.1", cache, progress) == "6.1.194-1", "the list is a minute old, but what it names is gone"
    with pytest.raises(InputError, match=r"has no generic kernel 6.1.192-2"):
        got("debian:6.1.192-2", cache, progress)


@pytest.mark.slow
def test_a_kernel_that_rotated_out_stays_ours(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    first = resolve("debian:6.1.192-2", cache=cache, progress=progress)
    stocked.stanzas["bookworm-security"].clear()
    stocked.publish()
    make_old(cache)
    assert got("debian:6.1", cache, progress) == "6.1.170-1"
    assert resolve("debian:6.1.192-2", cache=cache, progress=progress).sha256 == first.sha256


@pytest.mark.slow
def test_an_old_list_is_read_anew_or_told_of(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    got("debian:6.1", cache, progress)
    make_old(cache)
    got("debian:6.1", cache, progress)
    assert stocked.fetched("/bookworm/InRelease") == 2
    make_old(cache)
    stocked.server.shutdown()
    stocked.server.server_close()
    assert got("debian:6.1", cache, progress) == "6.1.192-2"
    assert any("does not answer" in said and "2 days ago" in said for said in progress.warned)


def test_no_archive_at_all(mirror: Mirror, cache: Cache, progress: Heard) -> None:
    mirror.server.shutdown()
    mirror.server.server_close()
    with pytest.raises(HostError, match="Debian's archive does not answer") as caught:
        got("debian:6.1", cache, progress)
    assert "KDUEL_DEBIAN_MIRROR" in caught.value.remedy
    assert not (cache.root / "archive/amd64/index.json").exists()


@pytest.mark.slow
def test_a_suite_without_signature_is_not_believed(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    signed = stocked.root / "debian/dists/trixie/InRelease"
    signed.write_text(signed.read_text().replace("Origin: Debian", "Origin: Nobody"))
    with pytest.raises(HostError, match=r"could not be read or verified \(trixie: .*BADSIG"):
        got("debian:6.12-cloud", cache, progress)
    with pytest.raises(HostError, match=r"the others have: .*6\.1\.192-2"):
        got("debian:61", cache, progress)
    assert any("trixie" in said and "signature" in said.lower() for said in progress.warned)
    assert got("debian:6.1", cache, progress) == "6.1.192-2", "what the other suites have can be had"
    stocked.publish()
    assert got("debian:6.12-cloud", cache, progress) == "6.12.95-1", "a list that lacks a suite is not kept for a day"


@pytest.mark.slow
def test_a_captive_portal_poisons_nothing(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    for path in [*stocked.root.rglob("InRelease"), *stocked.root.rglob("Packages*")]:
        path.write_text("<html>Please log in.</html>")
    with pytest.raises(HostError, match=r"does not answer: .*NOSPLIT"):
        got("debian:6.12-cloud", cache, progress)
    assert not (cache.root / "archive/amd64/index.json").exists()
    stocked.publish()
    assert got("debian:6.12-cloud", cache, progress) == "6.12.95-1"


@pytest.mark.slow
def test_a_list_that_is_cut_on_the_way_is_not_kept(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    for path in (stocked.root / "debian/dists/trixie").rglob("Packages*"):
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(HostError, match=r"trixie: File has unexpected size"):
        got("debian:6.12", cache, progress) and got("debian:6.12-cloud", cache, progress)
    stocked.publish()
    assert got("debian:6.12-cloud", cache, progress) == "6.12.95-1"


def test_a_mirror_without_kernels_is_not_kept(mirror: Mirror, cache: Cache, progress: Heard) -> None:
    mirror.add("trixie", deb(mirror.built, "hello", "1.0", {}))
    mirror.publish()
    with pytest.raises(HostError, match="serves no kernels"):
        got("debian:6.12", cache, progress)
    mirror.add_kernel("trixie", "6.12.95-1", "6.12.95+deb13")
    mirror.publish()
    assert got("debian:6.12", cache, progress) == "6.12.95-1"


def test_an_unsigned_archive_is_no_archive(mirror: Mirror, cache: Cache, progress: Heard) -> None:
    mirror.add_kernel("bookworm", "6.1.170-1", "6.1.0-47")
    mirror.publish(signed=False)
    with pytest.raises(HostError, match="does not answer"):
        got("debian:6.1", cache, progress)


@pytest.mark.slow
def test_a_package_that_was_tampered_with(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    for file in (stocked.root / "debian/pool").glob("linux-image-6.1.0-56-amd64_*"):
        data = bytearray(file.read_bytes())
        data[-500] ^= 1
        file.write_bytes(data)
    with pytest.raises(HostError, match=r"6.1.192-2 could not be downloaded: .*(Hash Sum mismatch|hash)"):
        got("debian:6.1", cache, progress)
    assert not list((cache.root / "kernels").glob("*")), "nothing half-made stays"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
def test_a_disk_that_is_full_at_any_step_of_a_download_is_told(
    stocked: Mirror, tmp_path: Path, progress: Heard
) -> None:
    """apt's own files, its lists, the package and what is in it, on ever larger disks."""
    small, failed = tmp_path / "small", set[str]()
    small.mkdir()
    for kilobytes in (8, 16, 24, 32, 40, 56, 72, 96):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "small", small], check=True)
        try:
            with pytest.raises(HostError) as caught:
                got("debian:6.1", Cache(small / "cache"), progress)
            assert "ree some space" in caught.value.remedy, (kilobytes, str(caught.value))
            assert str(small) in str(caught.value), (kilobytes, str(caught.value))
            failed.add(re.sub(r"\W*(/|\d).*", "", caught.value.message))
            subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
            assert got("debian:6.1", Cache(small / "cache"), progress) == "6.1.192-2"
        finally:
            subprocess.run(["umount", small], check=True)
    assert len(failed) > 2


@pytest.mark.slow
def test_an_archived_release_may_be_out_of_date(mirror: Mirror, cache: Cache, progress: Heard) -> None:
    mirror.add_kernel("bullseye", "5.10.262-1", "5.10.0-46")
    mirror.add_kernel("trixie", "6.12.95-1", "6.12.95+deb13")
    mirror.publish(valid_for=timedelta(days=-3))
    assert got("debian:5.10", cache, progress) == "5.10.262-1"
    with pytest.raises(HostError, match=r"trixie: .*is expired"):
        got("debian:6.12", cache, progress)
    assert "suites of Debian's archive that have expired are left out: trixie" in progress.warned
    assert mirror.fetched("/bullseye/InRelease") == 1, "what has expired is not asked for again with each command"


@pytest.mark.slow
def test_the_systems_apt_is_untouched(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    def state() -> dict[str, tuple[int, int]]:
        places = [Path(p) for p in ("/etc/apt", "/var/lib/apt", "/var/cache/apt", "/var/lib/dpkg")]
        files = [path for place in places for path in [place, *place.rglob("*")] if path.name != "lock"]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files if path.exists()}

    before = state()
    got("debian:6.1", cache, progress)
    assert state() == before
    settings = cache.root / "archive/amd64/apt.conf"
    dump = subprocess.run(
        ["apt-config", "dump"],
        env={**os.environ, "APT_CONFIG": str(settings)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Post-Invoke" not in dump, "the host's hooks do not run"
    assert 'Acquire::AllowInsecureRepositories "1"' not in dump
    for place in ("Dir::State ", "Dir::Cache ", "Dir::Etc::sourcelist "):
        assert f'{place}"{cache.root}/' in dump


PROGRAM = """
import sys
from pathlib import Path
from kduel.core.cache import Cache
from kduel.kernels import resolve
from kduel.core.progress import Progress
print(resolve("debian:6.1", cache=Cache(Path(sys.argv[1])), progress=Progress()).image)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "held", "helper"),
    [
        (signal.SIGINT, "linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb", "apt-helper"),
        (signal.SIGKILL, "InRelease", "apt-get"),
    ],
)
def test_an_interrupt_leaves_nothing(
    stocked: Mirror, cache: Cache, ending: signal.Signals, held: str, helper: str
) -> None:
    stocked.held = held
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(cache.root)], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert stocked.holding.wait(600)
        helpers = _children(process.pid)
        assert helper in helpers.values()
        process.send_signal(ending)
        process.wait(timeout=600)
        wait_for(lambda: all(_name(pid) != helper for pid in helpers), f"end of {helper}")
        assert ending == signal.SIGKILL or "KeyboardInterrupt" in process.communicate()[1]
    finally:
        process.kill()
        stocked.let_go.set()
    assert not list((cache.root / "kernels").glob("*/kernel.json"))
    assert not list((cache.root / "kernels").glob(".new-*"))


def _children(parent: int) -> dict[int, str]:
    """Process ids and names."""
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return {int(pid): _name(int(pid)) for pid in listed.read_text().split()} if listed.exists() else {}


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.slow
def test_two_processes_fetch_once(stocked: Mirror, cache: Cache) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, str(cache.root)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    answers = {process.communicate(timeout=600)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(answers) == 1 and Path(answers.pop().strip()).is_file()
    assert stocked.fetched("/bookworm/InRelease") == 1
    assert stocked.fetched("linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb") == 1


@pytest.mark.slow
def test_a_damaged_cache_is_mended_and_told(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    kernel = resolve("debian:6.1", cache=cache, progress=progress)
    assert kernel.modules is not None
    for path in (kernel.image, *kernel.modules.rglob("*.ko"), kernel.image.parent / "kernel.json"):
        good = path.read_bytes()
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        later = Cache(cache.root, progress)
        assert resolve("debian:6.1", cache=later, progress=progress).sha256 == kernel.sha256
        assert path.read_bytes() == good
        assert f"{path.relative_to(kernel.image.parent)} has changed" in progress.warned.pop()
    kernel.image.write_bytes(b"x")
    with pytest.raises(HostError, match=r"debian:6.1 is not in the cache"):
        got("debian:6.1", Cache(cache.root, progress), progress, offline=True)
    assert "vmlinuz has 1 bytes" in progress.warned.pop()


def test_an_unusable_cache_is_told(mirror: Mirror, tmp_path: Path, progress: Heard) -> None:
    (tmp_path / "occupied").write_text("")
    for offline in (False, True):
        with pytest.raises(HostError, match="cache"):
            got("debian:6.1", Cache(tmp_path / "occupied"), progress, offline=offline)


@pytest.mark.slow
def test_what_can_be_had(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    got("debian:6.1.170-1", cache, progress)
    got("debian:6.12", cache, progress)
    lines = {line.spec: line for line in PLUGIN.available(cache=cache, progress=progress)}
    assert set(lines) == {
        *("debian:6.1", "debian:6.10", "debian:6.12", "debian:6.12-cloud", "debian:7.2-cloud", "debian:7.3-cloud"),
        "debian:6.1.170-1",
    }
    assert {spec for spec, line in lines.items() if line.cached} == {"debian:6.12", "debian:6.1.170-1"}
    assert lines["debian:6.1"].where == "bookworm-security"
    for spec in lines:
        assert got(spec, cache, progress) == lines[spec].version, "every name that is listed can be given"


@pytest.mark.slow
def test_fetch_keeps_a_package(stocked: Mirror, cache: Cache, progress: Heard) -> None:
    archive = Archive(cache, progress)
    (first,) = archive.fetch("linux-image-6.1.0-56-amd64")
    (second,) = archive.fetch("linux-image-6.1.0-56-amd64", "6.1.192-2")
    assert first == second and first.stat().st_size > 1000
    assert stocked.fetched("linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb") == 1
    with pytest.raises(InputError, match=r"no linux-image-6.1.0-56-amd64 9"):
        archive.fetch("linux-image-6.1.0-56-amd64", "9")


@pytest.mark.slow
def test_a_tmpdir_that_cannot_be_written_is_no_hindrance(
    stocked: Mirror, cache: Cache, progress: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/proc")  # Nobody, not even root, can make a file there.
    assert got("debian:6.1", cache, progress) == "6.1.192-2"
    assert not list((cache.root / "archive/amd64/state").glob("apt*"))


@pytest.mark.slow
def test_a_mirror_in_the_file_system(
    stocked: Mirror, cache: Cache, progress: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", f"file:{stocked.root}/debian/")
    (kept,) = Archive(cache, progress).fetch("linux-image-6.1.0-56-amd64")
    assert kept.is_file() and not kept.is_symlink()
    assert got("debian:6.1", cache, progress) == "6.1.192-2"


@pytest.mark.slow
def test_the_lists_of_another_mirror_are_not_read(
    stocked: Mirror, cache: Cache, progress: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stocked.root / "debian/dists/experimental/InRelease").write_text("")  # apt removes no list where a suite fails.
    assert Archive(cache, progress).candidates("*")
    monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", stocked.address.replace("127.0.0.1", "localhost"))
    for package in Archive(cache, progress).candidates("*"):
        assert len(set(package.suites)) == len(package.suites)


class TestWhereTheMirrorIs:
    def test_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", "http://mirror.example/debian/")
        assert mirrors.debian_mirror() == "http://mirror.example/debian"
        assert mirrors.security_mirror() == "http://mirror.example/debian-security"
        monkeypatch.setenv("KDUEL_DEBIAN_SECURITY_MIRROR", "http://other.example/security")
        assert mirrors.security_mirror() == "http://other.example/security"

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("sid", "default_mirror http://mirror.example/debian\n"),
            (
                "mmdebstrap",
                "my $mirror = 'http://mirror.example/debian';\n$s = 'http://mirror.example/debian-security';",
            ),
            ("Debian.info", "BaseURI: https://mirror.example/debian/\nMatchURI: debian\\.org\n"),
        ],
    )
    def test_elsewhere_than_debian(
        self, name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("KDUEL_DEBIAN_MIRROR", raising=False)
        (tmp_path / "os-release").write_text('ID=ubuntu\nVERSION_CODENAME="noble"\n')
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(mirrors, "OS_RELEASE", tmp_path / "os-release")
        monkeypatch.setattr(mirrors, "SHIPPED", (tmp_path / "absent", tmp_path / name))
        assert mirrors.debian_mirror() in ("http://mirror.example/debian", "https://mirror.example/debian")
        assert mirrors.security_mirror() == mirrors.debian_mirror() + "-security"

    def test_nowhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KDUEL_DEBIAN_MIRROR", raising=False)
        monkeypatch.setattr(mirrors, "OS_RELEASE", tmp_path / "absent")
        monkeypatch.setattr(mirrors, "SHIPPED", ())
        with pytest.raises(HostError, match="no Debian mirror") as caught:
            mirrors.debian_mirror()
        assert "KDUEL_DEBIAN_MIRROR" in caught.value.remedy

    def test_a_list_of_mirrors(self, tmp_path: Path) -> None:
        (tmp_path / "debian.list").write_text(
            "# comment\nhttps://mirror.example/debian\tpriority:1\nhttps://b.example\n"
        )
        assert (
            mirrors._first_of_mirror_list(f"mirror+file:{tmp_path}/debian.list/") == "https://mirror.example/debian"
        )
        assert mirrors._first_of_mirror_list("http://mirror.example/debian/") == "http://mirror.example/debian/"

    def test_no_keys(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("KDUEL_DEBIAN_KEYRING", raising=False)
        monkeypatch.setattr(mirrors, "KEYRINGS", (tmp_path / "none.gpg",))
        with pytest.raises(HostError, match="archive keys") as caught:
            mirrors.keyring()
        assert "debian-archive-keyring" in caught.value.remedy


def dumped(cache: Cache) -> str:
    """apt's configuration as KDuel's apt sees it."""
    environment = {**os.environ, "APT_CONFIG": str(cache.root / "archive/amd64/apt.conf")}
    return subprocess.run(["apt-config", "dump"], env=environment, capture_output=True, text=True, check=True).stdout


def test_no_check_that_the_host_switched_off_is_off(mirror: Mirror, cache: Cache, progress: Heard) -> None:
    with Path(os.environ["APT_CONFIG"]).open("a") as settings:
        settings.write(
            'Acquire::Check-Valid-Until "false"; Acquire::Check-Date "false"; Acquire::Max-FutureTime "9999999999";\n'
            'Acquire::https::Verify-Peer "false"; Acquire::https::Verify-Host::example.org "false";\n'
            'Acquire::AllowInsecureRepositories "true"; Acquire::AllowWeakRepositories "true";\n'
            'Acquire::https::Proxy "http://proxy.example:3128"; Acquire::http::Proxy::one.example "DIRECT";\n'
            'Acquire::http::Timeout "77"; Acquire::ForceIPv4 "true";\n'
        )
    mirror.add_kernel("trixie", "6.12.95-1", "6.12.95+deb13")
    mirror.publish(valid_for=timedelta(days=-3))
    with pytest.raises(HostError, match=r"trixie: .*is expired"):
        got("debian:6.12", cache, progress)
    found = dumped(cache)
    for name in ("Check-", "Verify-", "Max-FutureTime", 'Repositories "true"'):
        assert name not in found
    for line in (
        'https::Proxy "http://proxy.example:3128"',
        'http::Proxy::one.example "DIRECT"',
        'http::Timeout "77"',
        'ForceIPv4 "true"',
    ):
        assert f"Acquire::{line};" in found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Version", "9" * 5000),
        ("Version", "\u00b2:6.1.1-1"),
        ("Version", "6.1/../../../../x"),
        ("Size", "\u00b2"),
        ("Size", "9" * 5000),
        ("SHA256", "0"),
        ("Architecture", "../../amd64"),
        ("Filename", "pool/"),
    ],
)
def test_a_signed_list_may_be_wrong(mirror: Mirror, cache: Cache, progress: Heard, field: str, value: str) -> None:
    mirror.add_kernel("bookworm", "6.1.1-1", "6.1.0-1")
    stanzas = mirror.stanzas["bookworm"]
    stanzas[:] = [re.sub(rf"(?m)^{field}: .*$", f"{field}: {value}", stanza) for stanza in stanzas]
    mirror.publish()
    with pytest.raises(HostError, match=r"the list of packages of .* is damaged: the"):
        resolve("debian:6.1", cache=cache, progress=progress)
