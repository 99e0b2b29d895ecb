"""Small repositories of other distributions, made with their own tools and signed by a key of ours.

Kernels are pretended ones (made_kernels); packages and lists are what rpmbuild, rpmsign, createrepo_c, repo-add, dpkg-deb and
apt-ftparchive make.
"""

from __future__ import annotations

import subprocess
import tarfile
import threading
from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from made_kernels import deb, kernel_files, signing_key

SPEC = """Name: {name}
Version: {version}
Release: {release}
Summary: for a test
License: none
%global _build_id_links none
%global __os_install_post %{{nil}}
%global _binary_payload {payload}
%description
For a test.
%install
cp -r {tree}/. %{{buildroot}}/
%files
{files}
"""


class Served:
    """A directory on loopback."""

    def __init__(self, root: Path) -> None:
        self.root = root

        class Quiet(SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0),
            lambda *words: Quiet(*words, directory=str(root)),  # type: ignore[arg-type]
        )
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Served:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def quietly(*command: object, cwd: Path | None = None) -> None:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def gpg(home: Path, *words: object) -> None:
    signing_key(home)
    quietly(
        "gpg",
        "--homedir",
        home,
        "--batch",
        "--yes",
        "--quiet",
        "--pinentry-mode",
        "loopback",
        "--passphrase",
        "",
        *words,
    )


def armoured(home: Path) -> Path:
    """The public key as distributions of RPMs ship theirs."""
    signing_key(home)
    path = home / "test.asc"
    gpg(home, "--armor", "--output", path, "--export")
    return path


def rpm(
    into: Path,
    home: Path,
    name: str,
    version: str,
    files: dict[str, bytes],
    *,
    payload: str = "w3.zstdio",
    signed: bool = True,
) -> Path:
    """A package by rpmbuild, signed by rpmsign."""
    base, _, release = version.partition("-")
    into.mkdir(parents=True, exist_ok=True)
    tree = into.parent / f"tree-{name}-{version}"
    for path, data in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    spec = tree.with_suffix(".spec")
    listed = "\n".join(f"/{path}" for path in files)
    spec.write_text(SPEC.format(name=name, version=base, release=release, payload=payload, tree=tree, files=listed))
    top = tree.with_suffix(".top")
    define = [
        "--define",
        f"_topdir {top}",
        "--define",
        f"_rpmdir {into}",
        "--define",
        "_build_name_fmt %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
    ]
    quietly("rpmbuild", "-bb", "--target", "x86_64", *define, spec)
    package = into / f"{name}-{version}.x86_64.rpm"
    if signed:
        signing_key(home)
        quietly(
            "rpmsign", "--addsign", "--define", "__gpg /usr/bin/gpg", "--define", f"_gpg_path {home}", "--define", "_gpg_name test@example.org",
            "--define", "_gpg_sign_cmd_extra_args --pinentry-mode loopback --passphrase ''", package,
        )  # fmt: skip
    return package


def split(release: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """A kernel's files as Fedora lays them out: with the image, and with the modules."""
    modules = f"lib/modules/{release}"
    files = {path.removeprefix("usr/"): data for path, data in kernel_files(release).items()}
    image = {
        f"{modules}/vmlinuz": files[f"boot/vmlinuz-{release}"],
        f"{modules}/config": files[f"boot/config-{release}"],
        f"{modules}/modules.builtin": files[f"{modules}/modules.builtin"],
    }
    return image, {path: data for path, data in files.items() if path.endswith(".ko")}


def repomd(directory: Path, home: Path, *, signed: bool) -> None:
    """The metadata of the packages in a directory."""
    quietly("createrepo_c", "--quiet", directory)
    if signed:
        gpg(
            home,
            "--armor",
            "--detach-sign",
            "--output",
            directory / "repodata/repomd.xml.asc",
            directory / "repodata/repomd.xml",
        )


def pacman_package(into: Path, home: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """A package as makepkg makes it, which refuses to run as root: its .PKGINFO, a tar, zstd and a signature."""
    into.mkdir(parents=True, exist_ok=True)
    tree = into.parent / f"tree-{name}-{version}"
    info = f"pkgname = {name}\npkgbase = {name}\npkgver = {version}\npkgdesc = for a test\nsize = 1\narch = x86_64\n"
    for path, data in {".PKGINFO": info.encode(), **files}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    package = into / f"{name}-{version}-x86_64.pkg.tar.zst"
    with tarfile.open(package.with_suffix(""), "w") as tar:
        for path in [".PKGINFO", *files]:
            tar.add(tree / path, path)
    quietly("zstd", "-q", "--rm", package.with_suffix(""), "-o", package)
    gpg(home, "--detach-sign", "--output", f"{package}.sig", package)
    return package


def ubuntu_suite(mirror: Path, home: Path, suite: str, packages: list[Path]) -> None:
    """A suite by apt-ftparchive, with a signed InRelease."""
    pool, lists = mirror / "pool" / suite, mirror / "dists" / suite
    (lists / "main/binary-amd64").mkdir(parents=True, exist_ok=True)
    pool.mkdir(parents=True, exist_ok=True)
    for package in packages:
        (pool / package.name).write_bytes(package.read_bytes())
    options = ["-o", f"APT::FTPArchive::Release::Suite={suite}", "-o", "APT::FTPArchive::Release::Origin=Ubuntu"]
    listed = subprocess.run(
        ["apt-ftparchive", "packages", f"pool/{suite}"], cwd=mirror, check=True, capture_output=True
    )
    (lists / "main/binary-amd64/Packages").write_bytes(listed.stdout)
    quietly("xz", "--force", "--keep", lists / "main/binary-amd64/Packages")
    made = subprocess.run(["apt-ftparchive", *options, "release", "."], cwd=lists, check=True, capture_output=True)
    (lists / "Release").write_bytes(made.stdout)
    gpg(home, "--clearsign", "--output", lists / "InRelease", lists / "Release")


@cache
def ubuntu_kernel(into: Path, version: str, abi: str) -> tuple[Path, Path]:
    """Image and modules as Ubuntu splits them: the configuration is with the modules."""
    release = f"{abi}-generic"
    files = kernel_files(release)
    image = {path: data for path, data in files.items() if "vmlinuz" in path}
    rest = {path: data for path, data in files.items() if path.startswith(("boot/config", "usr/lib/modules"))}
    return (
        deb(into, f"linux-image-{release}", version, image),
        deb(
            into,
            f"linux-modules-{release}",
            version,
            {path.removeprefix("usr/"): data for path, data in rest.items()},
        ),
    )
