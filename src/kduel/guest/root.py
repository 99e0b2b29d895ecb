"""The guest's root: a minimal Debian, made without root rights, the same for every contender; squashfs, which is
reproducible, small, and in every Debian kernel from 5.10 on."""

import hashlib
import os
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from kduel.core.background_task import run_program
from kduel.core.cache import DISK_REFUSES, GO_ONLINE, Cache, disk_remedy
from kduel.core.errors import HostError
from kduel.core.host_packages import install_command
from kduel.core.progress import Progress
from kduel.core.supervised_process import NOTHING
from kduel.guest.namespaces import explain_refusal
from kduel.kernels.apt.mirror import debian_mirror, keyring, security_mirror

RECIPE = 6
"""To be raised whenever the making of the root changes what is in it."""
SUITE = "bookworm"
PACKAGES = (
    "busybox-static", "e2fsprogs", "fio", "kmod", "libelf1", "libseccomp2", "linux-perf", "mawk", "mount", "procps",
    "rt-tests", "stress-ng", "sysbench", "util-linux", "zlib1g",
)  # fmt: skip
"""Packages that every root has: all that the built-in benchmarks need, so that all studies share one root."""
NON_FREE = {"lmbench", "netperf"}
"""Packages that a study may ask for and that are, in some release, outside Debian's main section."""
USELESS = (
    "/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*",
    "/usr/lib/*/libLLVM*", "/usr/lib/postgresql/*/lib/bitcode/*",
)  # fmt: skip
"""Files that are left out of packages. PostgreSQL needs LLVM for nothing but its JIT compiler, which is switched off."""
EPOCH = "1735689600"
BUNDLE = "Or bring kernels and the guest's root in a bundle from another machine (docs/offline.md)."


class Root(Struct, frozen=True, kw_only=True):
    image: Path
    busybox: Path
    """The root's own static busybox, for the initial RAM disk."""
    sha256: str
    suite: str
    packages: dict[str, str]
    """Every package in it, with its exact version."""


def root_image(
    extra: Iterable[str] = (),
    *,
    cache: Cache,
    progress: Progress,
    suite: str = SUITE,
    architecture: str = "amd64",
    offline: bool = False,
) -> Root:
    """The root with PACKAGES and `extra`, cached or made. Raises HostError where it cannot be made."""
    packages, key = packages_and_key(extra, suite, architecture)
    if offline:
        check_root_kept(extra, cache=cache, suite=suite, architecture=architecture)

    def build(directory: Path) -> None:
        with progress.task(f"making the guest root ({suite})"):
            _build(directory, packages, suite, architecture)

    directory = cache.entry("root", key, build)
    return Root(
        image=directory / "root.sqfs",
        busybox=directory / "busybox",
        sha256=(directory / "sha256").read_text().strip(),
        suite=suite,
        packages=msgspec.json.decode((directory / "packages.json").read_bytes(), type=dict[str, str]),
    )


def packages_and_key(extra: Iterable[str], suite: str, architecture: str) -> tuple[list[str], str]:
    packages = sorted({*PACKAGES, *extra})
    recipe = msgspec.json.encode([RECIPE, suite, architecture, packages])
    return packages, f"{suite}-{architecture}-{hashlib.sha256(recipe).hexdigest()[:16]}"


def check_root_kept(extra: Iterable[str], *, cache: Cache, suite: str = SUITE, architecture: str = "amd64") -> None:
    """Raises HostError where the root is not in the cache, and so takes the network."""
    packages, key = packages_and_key(extra, suite, architecture)
    if not cache.has("root", key):
        raise HostError(
            f"the guest root ({suite}, {len(packages)} packages) is not in the cache {cache.root}", GO_ONLINE
        )


def sources(suite: str, components: str = "main") -> list[str]:
    """Origin of a guest's packages, as lines of apt's sources. Raises HostError."""
    return [
        f"deb {debian_mirror()} {suite} {components}",
        f"deb {debian_mirror()} {suite}-updates {components}",
        f"deb {security_mirror()} {suite}-security {components}",
    ]


def _build(directory: Path, packages: list[str], suite: str, architecture: str) -> None:
    for tool in ("mmdebstrap", "sqfstar"):
        if shutil.which(tool) is None:
            raise HostError(f"{tool} is not installed", f"Install it: {install_command(tool)}. {BUNDLE}")
    tar, image = directory / "root.tar", directory / "root.sqfs"
    components = "main non-free" if NON_FREE & set(packages) else "main"
    hooks = [
        'rm -f "$1"/etc/machine-id "$1"/etc/resolv.conf "$1"/etc/hostname',
        # Not below /tmp: mmdebstrap's own apt settings are there until it ends, and apt without them is the host's.
        'rm -rf "$1"/var/cache/debconf/* "$1"/var/cache/ldconfig/* "$1"/var/lib/postgresql/*',
        'find "$1"/var/log -type f -delete',
        'dpkg-query --admindir="$1"/var/lib/dpkg -W -f \'${Package} ${Version}\\n\' >"$1"/kduel.packages',
        'mkdir -p "$1"/scratch "$1"/kduel',
    ]
    command = [
        *("mmdebstrap", "--variant=essential", "--mode=auto", f"--architectures={architecture}"),
        f"--include={','.join(packages)}", '--aptopt=Apt::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={path}" for path in USELESS), *(f"--customize-hook={hook}" for hook in hooks),
        f"--keyring={keyring()}", *(suite, str(tar)), *sources(suite, components),
    ]  # fmt: skip
    run_for_guest(command, "the guest root cannot be made", directory)
    # The image's own directory belongs to whoever packs it; in a user namespace that is root too.
    as_root = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    try:
        with tarfile.open(tar) as archive:
            busybox = archive.extractfile("./usr/bin/busybox")
            (directory / "busybox").write_bytes(busybox.read() if busybox else b"")
            (directory / "busybox").chmod(0o755)
            listing = archive.extractfile("./kduel.packages")
            lines = listing.read().decode().splitlines() if listing else []
        packages_found = dict(line.split(" ", 1) for line in lines)
        (directory / "packages.json").write_bytes(msgspec.json.encode(packages_found))
        run_for_guest(
            [*as_root, "sqfstar", "-comp", "lz4", "-no-progress", "-root-mode", "755", str(image), "dev/*"],
            "the guest root cannot be packed",
            directory,
            tar,
        )
    finally:
        tar.unlink(missing_ok=True)
    (directory / "sha256").write_text(hashlib.file_digest(image.open("rb"), "sha256").hexdigest() + "\n")


def run_for_guest(command: list[str], failure: str, into: Path, stdin: Path = NOTHING) -> None:
    """Run a program that makes what a guest consists of, in the cache. Raises HostError, with `failure` and what apt gave as the reason."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "LC_ALL": "C.UTF-8"}
    status, said = run_program(command, environment=environment, stdin=stdin)
    if status and "chroot mode" in said and (refused := explain_refusal()):
        raise HostError(f"{failure}: {refused.message}", refused.remedy)
    if status:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        # A full disk has many consequences, which are told first.
        telling = [line for line in lines if DISK_REFUSES.search(line)]
        telling += [line for line in lines if line.startswith(("E:", "Err:", "W: Failed"))]
        raise HostError(
            f"{failure}: {' / '.join((telling or lines)[:6])}",
            disk_remedy(said, into.parent, Path(tempfile.gettempdir())) or f"The command was: {shlex.join(command)}",
        )
