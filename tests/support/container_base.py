"""A base image that is made here, as no registry of images can be reached: Debian, with how this host reaches the network."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from kduel.kernels.apt.mirror import debian_mirror, keyring, security_mirror

KEPT = ("/etc/pip.conf", "/etc/resolv.conf", "/etc/hosts", "/usr/local/share/ca-certificates")
VARIABLES = re.compile(r"(PIP_\w+|SSL_CERT_\w+|\w+_CA_BUNDLE|\w+_proxy)", re.IGNORECASE)


class Buildah:
    """buildah with images and containers in a directory of its own, by chroot: no daemon, no service of the host."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')

    def __call__(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        options = ["--root", self.place / "root", "--runroot", self.place / "run", "--storage-driver", "vfs"]
        command = ["buildah", *options, *words]
        environment = os.environ | {"BUILDAH_ISOLATION": "chroot"}
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0 or not check, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    def make_base(self, name: str) -> None:
        """An image of bookworm with apt, like Debian's own slim one."""
        tar = self.place / "base.tar"
        mirror, security = debian_mirror(), security_mirror()
        subprocess.run(
            [
                *("mmdebstrap", "--quiet", "--variant=apt", "--mode=auto", f"--keyring={keyring()}", "bookworm", tar),
                *(f"deb {mirror} bookworm main", f"deb {security} bookworm-security main"),
            ],
            check=True,
        )
        container = self("from", "scratch").stdout.strip()
        self("add", container, tar, "/")
        tar.unlink()
        policy = ("--signature-policy", self.place / "policy.json")
        for path in map(Path, (*KEPT, os.environ.get("PIP_FIND_LINKS", "/none"))):
            if path.exists():
                self("add", container, path.resolve(), path)
        for variable, value in os.environ.items():
            if VARIABLES.fullmatch(variable):
                self("config", "--env", f"{variable}={value}", container)
                if Path(value).is_absolute() and Path(value).exists():
                    self("add", container, Path(value).resolve(), value)
        self("commit", "--quiet", *policy, container, name)
        self("rm", container)
