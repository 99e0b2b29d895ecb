"""Ubuntu's kernels: `ubuntu:RELEASE[-VERSION]`. Its lists are signed, and name the packages' SHA-256."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.kernels.apt.mirror import SHIPPED
from kduel.kernels.apt.unpack import unpack as unpack_debs
from kduel.kernels.files.decompress import decompress
from kduel.kernels.packages.distribution import Distribution, RemotePackage, SplitKernel
from kduel.kernels.packages.fetch import AbsentError, download
from kduel.kernels.packages.openpgp import check_signature

LIST = "main/binary-amd64/Packages.xz"
NAME = re.compile(r"linux-(?:image|modules|modules-extra)-\d\S*?-\d+-generic")


class Ubuntu(Distribution):
    """A mirror has `dists/` and `pool/`."""

    name = "ubuntu"
    title = "Ubuntu"
    summary = "ubuntu:RELEASE[-VERSION]: Ubuntu's generic kernels, such as ubuntu:noble or ubuntu:noble-6.8"
    release = re.compile(r"(?P<release>[a-z]+)(?:-(?P<version>\d[\w.+~-]*))?")
    example = "ubuntu:noble or ubuntu:noble-6.8"
    keys: ClassVar[tuple[str, ...]] = ("/usr/share/keyrings/ubuntu-archive-keyring.gpg",)
    keys_package = "ubuntu-keyring"
    unpack = staticmethod(unpack_debs)

    def host_mirror(self) -> str:
        """Mirror that apt uses on Ubuntu; elsewhere what Debian's tools name as the usual one."""
        places = [*Path("/etc/apt").glob("sources.list.d/ubuntu.sources"), Path("/etc/apt/sources.list"), *SHIPPED]
        for path in places:
            with suppress(OSError):
                if match := re.search(
                    r"\bhttps?://[\w.-]+(?:/[\w.-]+)*?/ubuntu(?=/?['\"\s])", path.read_text("utf-8")
                ):
                    return match[0]
        return ""

    def list_packages(self, release: str, mirror: str, place: Path, progress: Progress) -> list[RemotePackage]:
        """From the release, its updates and its security updates, each by its signed InRelease."""
        found = self._suite(release, mirror, place, progress)
        for part in ("updates", "security"):
            with suppress(AbsentError):
                found += self._suite(f"{release}-{part}", mirror, place, progress)
        return list({(one.name, one.version): one for one in found}.values())

    def kernels_of(self, release: str, offered: Sequence[RemotePackage]) -> list[SplitKernel]:
        """The image, its modules, and those that are kept apart: their names have the same ABI."""
        named = {(one.name, one.version): one for one in offered}
        return [
            SplitKernel(
                version=version,
                packages=tuple(
                    named[key]
                    for part in ("image", "modules", "modules-extra")
                    if (key := (name.replace("linux-image-", f"linux-{part}-"), version)) in named
                ),
            )
            for name, version in named
            if name.startswith("linux-image-")
        ]

    def _suite(self, suite: str, mirror: str, place: Path, progress: Progress) -> list[RemotePackage]:
        base = f"{mirror}/dists/{suite}"
        signed = download(f"{base}/InRelease", place / "InRelease", progress)
        text = check_signature(f"{base}/InRelease", signed, None, self.keyrings()).decode("utf-8", errors="replace")
        fields = dict(re.findall(r"^(Suite|Codename): (\S+)$", text, re.MULTILINE))
        if suite not in fields.values():
            raise HostError(f"{base}/InRelease is that of {fields.get('Suite', 'no suite')}", "Name another mirror.")
        digest = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(LIST)}$", text, re.MULTILINE)
        if digest is None:
            raise HostError(f"{base}/InRelease names no {LIST}", "Name another mirror.")
        packages = download(f"{base}/{LIST}", place / "Packages.xz", progress, sha256=digest[1])
        with decompress(packages) as stream:
            return list(_packages(stream.read().decode("utf-8", errors="replace"), mirror))


def _packages(text: str, mirror: str) -> Iterator[RemotePackage]:
    for stanza in text.split("\n\n"):
        match = NAME.match(stanza.removeprefix("Package: "))
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", stanza, re.MULTILINE))
        if match and match[0] == fields.get("Package") and {"Version", "Size", "SHA256", "Filename"} <= fields.keys():
            yield RemotePackage(
                name=fields["Package"],
                version=fields["Version"],
                address=f"{mirror}/{fields['Filename']}",
                sha256=fields["SHA256"],
                size=fields["Size"],
            )


PLUGIN = Ubuntu()
