"""RPM repositories: repodata/repomd.xml, which may be signed, and the list of packages that it names with its SHA-256."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.core.tar_stream import BoundedStream
from kduel.kernels.files.decompress import decompress
from kduel.kernels.packages.distribution import RemotePackage
from kduel.kernels.packages.fetch import download
from kduel.kernels.packages.openpgp import check_signature

REPO = "{http://linux.duke.edu/metadata/repo}"
COMMON = "{http://linux.duke.edu/metadata/common}"


def read_repository(
    base: str, names: Collection[str], place: Path, progress: Progress, *, keyrings: Sequence[Path] = ()
) -> list[RemotePackage]:
    """Packages of these names for x86_64; with `keyrings` signed. Raises HostError (unreadable), InputError."""
    index = download(f"{base}/repodata/repomd.xml", place / "repomd.xml", progress)
    if keyrings:
        signature = download(f"{base}/repodata/repomd.xml.asc", place / "repomd.xml.asc", progress)
        check_signature(f"{base}/repodata/repomd.xml", index, signature, keyrings)
    try:
        address, digest = locate_primary(index)
        primary = download(f"{base}/{address}", place / "primary", progress, sha256=digest)
        with decompress(primary) as stream:
            return list(_packages(stream, base, names))
    except (ElementTree.ParseError, KeyError, ValueError, OSError) as error:
        raise HostError(
            f"the repository {base} cannot be read: {error}", "Try again later, or name another mirror."
        ) from error


def locate_primary(index: Path) -> tuple[str, str]:
    """Address of the list of packages, and its SHA-256. Raises ValueError, ParseError."""
    for data in ElementTree.parse(index).getroot().iter(f"{REPO}data"):
        checksum, location = data.find(f"{REPO}checksum"), data.find(f"{REPO}location")
        if data.get("type") == "primary" and location is not None and checksum is not None and checksum.text:
            if checksum.get("type") != "sha256":
                raise ValueError(f"its list of packages has a checksum of {checksum.get('type')}, not of SHA-256")
            return location.attrib["href"], checksum.text
    raise ValueError("it names no list of packages")


def _packages(stream: BoundedStream, base: str, names: Collection[str]) -> Iterator[RemotePackage]:
    for _, element in ElementTree.iterparse(stream):
        if element.tag != f"{COMMON}package":
            continue
        name = element.findtext(f"{COMMON}name")
        version, checksum = element.find(f"{COMMON}version"), element.find(f"{COMMON}checksum")
        location, size = element.find(f"{COMMON}location"), element.find(f"{COMMON}size")
        if (
            name in names
            and element.findtext(f"{COMMON}arch") == "x86_64"
            and not (version is None or checksum is None or location is None or size is None)
            and checksum.get("type") == "sha256"
        ):
            epoch = version.get("epoch", "0")
            yield RemotePackage(
                name=name or "",
                version=("" if epoch == "0" else f"{epoch}:") + f"{version.attrib['ver']}-{version.attrib['rel']}",
                address=f"{base}/{location.attrib['href']}",
                sha256=checksum.text or "",
                size=size.get("package", ""),
            )
        element.clear()
