"""The cache is not believed, and temporary directories do not stay behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kduel.core import manifest
from kduel.core.cache import Cache, disk_remedy
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory
from kduel.store.whole_files import as_disk_error


class Heard(Progress):
    def __init__(self) -> None:
        self.warned: list[str] = []

    def warn(self, text: str) -> None:
        self.warned.append(text)


def build(into: Path) -> None:
    """As what boots is kept: large and small files, a sparse one, a program, a link."""
    (into / "vmlinuz").write_bytes(os.urandom(3 << 20))
    (into / "lib").mkdir()
    (into / "lib" / "small.ko").write_bytes(b"\x7fELF module")
    (into / "busybox").write_bytes(b"#!/bin/sh\n")
    (into / "busybox").chmod(0o755)
    with (into / "scratch").open("wb") as stream:
        stream.truncate(1 << 40)
        stream.seek(5 << 20)
        stream.write(b"a journal")
    (into / "link").symlink_to("vmlinuz")
    (into / "empty").touch()


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)
        stream.seek(at)
        stream.write(bytes([byte[0] ^ 1]))


def keep_times(change: Callable[[Path], object]) -> Callable[[Path], object]:
    """The change, with the file's times as they were before."""

    def hidden(entry: Path) -> None:
        before = {path: path.stat() for path in entry.rglob("*") if path.is_file()}
        change(entry)
        for path, facts in before.items():
            if path.exists():
                os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    return hidden


def replaced(entry: Path) -> None:
    """By another file of the same size."""
    size = (entry / "vmlinuz").stat().st_size
    (entry / "new").write_bytes(os.urandom(size))
    (entry / "new").replace(entry / "vmlinuz")


CORRUPTIONS: dict[str, Callable[[Path], object]] = {
    "first byte": lambda entry: flip(entry / "vmlinuz", 0),
    "last byte": lambda entry: flip(entry / "vmlinuz", (3 << 20) - 1),
    "a byte in the middle, times kept": keep_times(lambda entry: flip(entry / "vmlinuz", 1234567)),
    "cut short": lambda entry: os.truncate(entry / "vmlinuz", 1 << 20),
    "emptied": lambda entry: os.truncate(entry / "vmlinuz", 0),
    "zeros in place of its end": lambda entry: (os.truncate(entry / "vmlinuz", 9), os.truncate(entry / "vmlinuz", 3 << 20)),
    "longer": lambda entry: os.truncate(entry / "vmlinuz", (3 << 20) + 1),
    "replaced": replaced,
    "removed": lambda entry: (entry / "vmlinuz").unlink(),
    "a small file": lambda entry: flip(entry / "lib/small.ko", 3),
    "a small file emptied": lambda entry: (entry / "lib/small.ko").write_bytes(b""),
    "a directory gone": lambda entry: ((entry / "lib/small.ko").unlink(), (entry / "lib").rmdir()),
    "a program that cannot start": lambda entry: (entry / "busybox").chmod(0o644),
    "a sparse disk's content": lambda entry: flip(entry / "scratch", 5 << 20),
    "a sparse disk's hole": lambda entry: flip(entry / "scratch", 9 << 30),
    "a sparse disk of another size": lambda entry: os.truncate(entry / "scratch", 1 << 39),
    "a link to elsewhere": lambda entry: ((entry / "link").unlink(), (entry / "link").symlink_to("/etc/passwd")),
    "a file in place of a link": lambda entry: ((entry / "link").unlink(), (entry / "link").write_text("x")),
    "a link in place of a file": lambda entry: ((entry / "empty").unlink(), (entry / "empty").symlink_to("vmlinuz")),
    "a directory in place of a file": lambda entry: ((entry / "empty").unlink(), (entry / "empty").mkdir()),
    "a file more": lambda entry: (entry / "lib" / "evil.ko").write_text("x"),
    "not empty any more": lambda entry: (entry / "empty").write_text("x"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("how", CORRUPTIONS)
@pytest.mark.parametrize("many", [False, True], ids=["few files", "many files"])
def test_a_corrupt_entry_is_built_again_and_told(how: str, many: bool, tmp_path: Path, monkeypatch) -> None:
    if many:
        monkeypatch.setattr(manifest, "MANY", 1)
    heard = Heard()
    entry = Cache(tmp_path).entry("kernels", "k", build)
    assert Cache(tmp_path, heard).entry("kernels", "k", unexpected) == entry and not heard.warned
    CORRUPTIONS[how](entry)
    built: list[Path] = []
    later = Cache(tmp_path, heard)
    assert not later.has("kernels", "k"), "nor is it there for --offline"
    assert later.entry("kernels", "k", lambda into: (build(into), built.append(into))[0]) == entry
    assert len(built) == 1
    assert len(heard.warned) == 1 and str(entry) in heard.warned[0] and "damaged" in heard.warned[0]
    assert Cache(tmp_path, heard).entry("kernels", "k", unexpected) == entry and len(heard.warned) == 1
    assert [path.name for path in (tmp_path / "kernels").iterdir()] == ["k"], "nothing else is left"


def unexpected(into: Path) -> None:
    raise AssertionError("it was there")


def test_a_cache_that_was_moved_is_checked_and_used(tmp_path: Path) -> None:
    Cache(tmp_path / "old").entry("kernels", "k", build)
    subprocess.run(["cp", "-a", tmp_path / "old", tmp_path / "new"], check=True)
    heard = Heard()
    assert Cache(tmp_path / "new", heard).entry("kernels", "k", unexpected)
    assert not heard.warned


@pytest.mark.parametrize("kind", ["kernels", "root", "vmlinux", "initramfs"])
def test_an_entry_whose_manifest_was_deleted_is_made_again(kind: str, tmp_path: Path) -> None:
    """Else whoever deletes the manifest gets a changed file believed."""
    entry = Cache(tmp_path).entry(kind, "k", build)
    flip(entry / "vmlinuz", 7)
    (tmp_path / "manifests" / kind / "k.json").unlink()
    heard = Heard()
    assert not Cache(tmp_path).has(kind, "k")
    built: list[Path] = []
    Cache(tmp_path, heard).entry(kind, "k", lambda into: (build(into), built.append(into))[0])
    assert len(built) == 1
    assert len(heard.warned) == 1 and "it has no manifest" in heard.warned[0], heard.warned


def test_a_shared_cache_may_be_read_only(tmp_path: Path) -> None:
    entry = tmp_path / "kernels" / "k"
    (tmp_path / "manifests").write_text("nothing can be stored here")
    with pytest.raises(HostError):
        Cache(tmp_path).entry("kernels", "k", build)
    (tmp_path / "manifests").unlink()
    Cache(tmp_path).entry("kernels", "k", build)
    for path in [tmp_path, *tmp_path.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert Cache(tmp_path).entry("kernels", "k", unexpected) == entry
    finally:
        for path in [tmp_path, *tmp_path.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)


def test_an_entry_may_be_used_by_those_who_may_read_the_cache(tmp_path: Path) -> None:
    entry = Cache(tmp_path).entry("kernels", "k", build)
    manifest = tmp_path / "manifests" / "kernels" / "k.json"
    assert [path.stat().st_mode & 0o777 for path in (entry, manifest)] == [0o755, 0o644]


def test_the_digest_does_not_depend_on_holes(tmp_path: Path) -> None:
    (tmp_path / "full").write_bytes(bytes(4 << 20) + b"x")
    with (tmp_path / "sparse").open("wb") as stream:
        stream.seek(4 << 20)
        stream.write(b"x")
    assert manifest.digest(tmp_path / "full") == manifest.digest(tmp_path / "sparse")
    (tmp_path / "moved").write_bytes(bytes(2 << 20) + b"x" + bytes(2 << 20))
    assert manifest.digest(tmp_path / "full") != manifest.digest(tmp_path / "moved")


HOLDING = """
import sys, time
from pathlib import Path
from kduel.core.cache import Cache
from kduel.core.temporary import temporary_directory
def build(into):
    (into / "half").write_text("x")
    with temporary_directory() as place:
        (place / "big").write_bytes(bytes(1 << 20))
        print(place, flush=True)
        time.sleep(600)
Cache(Path(sys.argv[1])).entry("root", "k", build)
"""


def test_what_a_killed_kduel_leaves_is_removed_by_the_next(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path / "cache")],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        assert process.stdout
        place = Path(process.stdout.readline().strip())
        with temporary_directory() as mine:
            assert place.exists() and mine.parent == place.parent, "that of a living process stays"
        process.send_signal(signal.SIGKILL)
    assert place.exists() and list((tmp_path / "cache/root").iterdir())
    with temporary_directory():
        assert not place.exists()
    Cache(tmp_path / "cache").entry("root", "other", build)
    assert [path.name for path in (tmp_path / "cache/root").iterdir()] == ["other"]
    monkeypatch.setattr("tempfile.tempdir", None)


def test_a_full_tmpdir_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(HostError, match=str(tmp_path / "gone")) as caught, temporary_directory():
        pass
    assert "TMPDIR" in caught.value.remedy


def test_what_is_not_of_the_run_is_not_called_so(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught, as_disk_error(tmp_path / "run"):
        (tmp_path / "cache" / "initramfs.cpio").read_bytes()
    assert "cannot use" in caught.value.message and "initramfs.cpio" in caught.value.message
    assert str(tmp_path / "run") not in caught.value.message
    with (
        pytest.raises(HostError, match=f"cannot write to {tmp_path / 'run'}"),
        as_disk_error(tmp_path / "run"),
    ):
        (tmp_path / "run" / "file").write_text("")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (errno.ENOSPC, "Free some space in"),
        (errno.EDQUOT, "Free some space in"),
        (errno.EIO, "dmesg"),
        (errno.EROFS, "dmesg"),
        (errno.EAGAIN, ""),
    ],
)
def test_what_a_disk_refuses_has_the_remedy_for_it(code: int, told: str, tmp_path: Path) -> None:
    remedy = disk_remedy(f"cp: {os.strerror(code)}", tmp_path)
    assert told in remedy and bool(told) == bool(remedy)
    assert ("Free" in remedy) == told.startswith("Free")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG])
def test_a_disk_that_refuses_without_naming_a_file_is_the_cache(code: int, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="the cache at"):
        Cache(tmp_path).entry("kind", "key", raising(code))


def test_a_process_that_cannot_be_started_is_no_fault_of_the_cache(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError):
        Cache(tmp_path).entry("kind", "key", raising(errno.EAGAIN))


def raising(code: int) -> Callable[[Path], None]:
    """What fills an entry, and meets an error that names no file."""

    def build(into: Path) -> None:
        raise OSError(code, os.strerror(code))

    return build


@pytest.mark.parametrize("damage", ["cut", "fifo"])
def test_an_entry_with_a_damaged_manifest_is_not_believed(tmp_path: Path, damage: str) -> None:
    Cache(tmp_path).entry("root", "key", lambda directory: (directory / "file").write_text("whole"))
    manifest = tmp_path / "manifests/root/key.json"
    if damage == "cut":
        manifest.write_bytes(manifest.read_bytes()[:20])
    else:
        manifest.unlink()
        os.mkfifo(manifest)
    (tmp_path / "root/key/file").write_text("garbled")
    path = Cache(tmp_path).entry("root", "key", lambda directory: (directory / "file").write_text("whole"))
    assert (path / "file").read_text() == "whole"


@pytest.mark.slow
def test_a_lost_terminal_ends_a_run_as_sigterm_does(environment, write_study, tmp_path: Path) -> None:
    run = tmp_path / "run"
    study = write_study(machine="sleep = 0.2", blocks="fixed = 200")
    process = subprocess.Popen(
        [sys.executable, "-m", "kduel", "run", str(study), "--out", str(run)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + 600
    while len(list((run / "trials").glob("[0-9]*"))) < 2:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGHUP)
    told = process.communicate(timeout=600)[1]
    assert process.returncode == 130 and f"kduel resume {run}" in told, told
    assert not list((run / "trials").glob(".new-*"))


def test_directories_made_at_the_same_time_do_not_sweep_one_another(tmp_path: Path) -> None:
    """One is made before it is locked: in that moment another thread or process may take it for abandoned."""

    def make(number: int) -> None:
        for _ in range(60):
            with temporary_directory(tmp_path, ".making-") as place:
                (place / "file").touch()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(4)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/x", ".", "..", ".hidden", "", "a\nb", "a\0b", "x" * 300])
def test_no_key_leads_out_of_the_cache(key: str, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    for use in (cache.path, cache.has, lambda kind, name: cache.entry(kind, name, build)):
        with pytest.raises(InputError, match="cannot be the name of an entry"):
            use("kernel", key)
        with pytest.raises(InputError, match="cannot be the name of an entry"):
            use(key, "kernel")
    assert [path.name for path in tmp_path.rglob("*")] == ["cache"]
