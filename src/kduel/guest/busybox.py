"""A static busybox for the architecture of a board: all that a guest whose root is its initial RAM disk runs on."""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kduel.core.cache import GO_ONLINE, Cache
from kduel.core.errors import HostError, InputError
from kduel.core.host_packages import install_command
from kduel.core.progress import Progress
from kduel.core.supervised_process import run_text
from kduel.guest.root import BUNDLE, Root, run_for_guest, sources
from kduel.kernels.apt.mirror import debian_mirror, keyring

DEBIAN = {
    "x86_64": ("amd64", "bookworm"), "i686": ("i386", "bookworm"), "aarch64": ("arm64", "bookworm"),
    "armv7l": ("armhf", "bookworm"), "ppc64le": ("ppc64el", "bookworm"), "riscv64": ("riscv64", "trixie"),
}  # fmt: skip
"""Debian's name of an architecture, and the oldest release that has it next to the others here."""


BUILT = {"ppc": ("powerpc-linux-gnu", "gcc-powerpc-linux-gnu libc6-dev-powerpc-cross")}
"""Architectures that Debian has a compiler for, but no packages any more: the compiler's name and its packages."""
SOURCE = "pool/main/b/busybox/busybox_1.35.0.orig.tar.bz2"
SOURCE_SHA256 = "faeeb244c35a348a334f4a59e44626ee870fb07b6884d68c10ae8bc19f83a694"
LEFT_OUT = ("TC", "FEATURE_UTMP", "FEATURE_WTMP", "INETD", "NSLOOKUP", "HTTPD", "UDHCPD", "UDHCPC", "UDHCPC6")
"""Applets that a guest without network does without, some of which newer headers do not know."""


class Busybox(Struct, frozen=True, kw_only=True):
    file: Path
    sha256: str
    version: str

    @property
    def root(self) -> Root:
        """The root of a guest that has nothing else: by the version of Debian's package where it is Debian's."""
        package = re.search(r"\(Debian (\S+)\)", self.version)
        packages = {"busybox-static": package[1] if package else self.version}
        return Root(image=self.file, busybox=self.file, sha256=self.sha256, suite="", packages=packages)


def busybox(
    architecture: str, given: str = "", *, cache: Cache, progress: Progress, offline: bool = False
) -> Busybox:
    """The file `given`, else Debian's busybox-static, cached. Raises InputError (none), HostError (not fetched)."""
    if given:
        path = Path(given).expanduser()
        if not path.is_file():
            raise InputError(f"busybox = {given!r} is no file", "Name a static busybox of the board's architecture.")
        return describe_busybox(path)
    if architecture not in DEBIAN | BUILT:
        raise InputError(
            f"Debian has no busybox-static for {architecture}",
            "Build one and name it in the board's description: busybox = PATH.",
        )
    debian, suite = DEBIAN.get(architecture, (architecture, "built"))
    key = f"{suite}-{debian}"
    if offline and not cache.has("busybox", key):
        raise HostError(f"busybox for {architecture} is not in the cache {cache.root}", GO_ONLINE)

    def fetch(directory: Path) -> None:
        with progress.task(f"getting a busybox for {architecture}"):
            if architecture in BUILT:
                _build(directory, *BUILT[architecture])
            else:
                _fetch(directory, debian, suite)

    return describe_busybox(cache.entry("busybox", key, fetch) / "busybox")


def describe_busybox(path: Path) -> Busybox:
    """A busybox that is there; its version is read from its own words, as it may not run here."""
    data = path.read_bytes()
    version = re.search(rb"BusyBox v([\w.+~: ()-]{1,60})", data)
    return Busybox(
        file=path,
        sha256=hashlib.sha256(data).hexdigest(),
        version=version[1].decode().replace("()", "").strip() if version else "unknown",
    )


def _build(directory: Path, toolchain: str, packages: str) -> None:
    """From Debian's source of busybox, by Debian's cross compiler."""
    if shutil.which(f"{toolchain}-gcc") is None or not Path(f"/usr/{toolchain}/include/stdio.h").is_file():
        raise HostError(
            f"the cross compiler {toolchain}-gcc, with its C library, is not installed; it builds busybox",
            f"Install it: {install_command(toolchain, packages)}.",
        )
    for program in ("gcc", "make", "bzip2"):
        if shutil.which(program) is None:
            raise HostError(
                f"{program} is not installed; it builds busybox", f"Install it: {install_command(program)}."
            )
    archive, tree = directory / "source.tar.bz2", directory / "tree"
    address = f"{debian_mirror()}/{SOURCE}"
    _run(["/usr/lib/apt/apt-helper", "download-file", address, str(archive), f"SHA256:{SOURCE_SHA256}"], os.environ)
    tree.mkdir()
    _run(["tar", "-xf", str(archive), "--strip-components=1", "-C", str(tree)])
    make = ["make", "-C", str(tree), "ARCH=powerpc", f"CROSS_COMPILE={toolchain}-", "SKIP_STRIP=n"]
    _run([*make, "defconfig"])
    config = (tree / ".config").read_text()
    # As Debian's static one: the shell finds every applet in itself.
    wanted = dict.fromkeys(("STATIC", "FEATURE_PREFER_APPLETS", "FEATURE_SH_STANDALONE"), "y")
    for name, value in {**wanted, **dict.fromkeys(LEFT_OUT, "n")}.items():
        config = re.sub(rf"^(# )?CONFIG_{name}\b.*$", f"CONFIG_{name}={value}", config, flags=re.MULTILINE)
    (tree / ".config").write_text(config)
    _run([*make, "oldconfig"])
    _run([*make, f"-j{os.cpu_count() or 1}", "busybox"])
    shutil.copyfile(tree / "busybox", directory / "busybox")
    (directory / "busybox").chmod(0o755)
    shutil.rmtree(tree)
    archive.unlink()


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a step of the build, by default without the caller's variables: CFLAGS, CPATH and their kin change the program."""
    kept = environment or {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    done = run_text(
        command,
        stdin=subprocess.DEVNULL,
        env={**kept, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": "0", "KCONFIG_NOTIMESTAMP": "1"},
    )
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line or line.startswith("E:")]
        said = " / ".join(lines[:4]) or (done.stdout + done.stderr)[-300:]
        raise HostError(f"busybox cannot be built: {said}", "Name one of your own: busybox = PATH in a board's file.")


def _fetch(directory: Path, architecture: str, suite: str) -> None:
    """By mmdebstrap, which checks signatures and hashes, and in this variant runs nothing of the foreign system's."""
    if shutil.which("mmdebstrap") is None:
        raise HostError("mmdebstrap is not installed", f"Install it: {install_command('mmdebstrap')}. {BUNDLE}")
    tar = directory / "root.tar"
    command = [
        *("mmdebstrap", "--variant=extract", "--mode=auto", f"--architectures={architecture}"),
        *("--include=busybox-static", f"--keyring={keyring()}", suite, str(tar)),
        *sources(suite),
    ]
    run_for_guest(command, f"busybox for {architecture} cannot be fetched", directory)
    with tarfile.open(tar) as archive:
        for name in ("./usr/bin/busybox", "./bin/busybox"):
            if name in archive.getnames() and (member := archive.extractfile(name)):
                (directory / "busybox").write_bytes(member.read())
                (directory / "busybox").chmod(0o755)
                break
        else:
            raise HostError(
                f"Debian's busybox-static for {architecture} holds no busybox", "Report the package's version."
            )
    tar.unlink()
