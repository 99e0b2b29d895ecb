"""RPM repositories: repodata/repomd.xml, which may be signed, and the list of packages that it names with its SHA-256."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.core.tar_stream import PIECE, BoundedStream, Readable
from kduel.kernels.files.decompress import decompress
from kduel.kernels.packages.distribution import RemotePackage
from kduel.kernels.packages.fetch import download
from kduel.kernels.packages.openpgp import check_signature

REPO = "{http://linux.duke.edu/metadata/repo}"
COMMON = "{http://linux.duke.edu/metadata/common}"
MOST_INDEX = 16 << 20
MOST_CHILDREN, LONGEST_TEXT, CHILD = 100, 1000, 2
Record = dict[str, tuple[dict[str, str], str]]
"""Attributes and text of an element's first child of each name, and under "" the element's own."""
NOTHING: tuple[dict[str, str], str] = {}, ""


def read_repository(
    base: str, names: Collection[str], place: Path, progress: Progress, *, keyrings: Sequence[Path] = ()
) -> list[RemotePackage]:
    """Packages of these names for x86_64; with `keyrings` signed. Raises HostError (unreadable), InputError."""
    index = download(f"{base}/repodata/repomd.xml", place / "repomd.xml", progress, most=MOST_INDEX)
    if keyrings:
        signature = download(f"{base}/repodata/repomd.xml.asc", place / "repomd.xml.asc", progress)
        check_signature(f"{base}/repodata/repomd.xml", index, signature, keyrings)
    try:
        address, digest = locate_primary(index)
        primary = download(f"{base}/{address}", place / "primary", progress, sha256=digest)
        with decompress(primary) as stream:
            return list(_packages(stream, base, names))
    except (ElementTree.ParseError, LookupError, ValueError, OSError) as error:
        raise HostError(
            f"the repository {base} cannot be read: {error}", "Try again later, or name another mirror."
        ) from error


def locate_primary(index: Path) -> tuple[str, str]:
    """Address of the list of packages, and its SHA-256. Raises ValueError, ParseError."""
    with index.open("rb") as stream:
        for data in read_records(stream, f"{REPO}data"):
            (checksum, digest), (location, _) = (
                data.get(f"{REPO}checksum", NOTHING),
                data.get(f"{REPO}location", NOTHING),
            )
            if data[""][0].get("type") == "primary" and location and digest:
                if checksum.get("type") != "sha256":
                    raise ValueError(f"its list of packages has a checksum of {checksum.get('type')}, not of SHA-256")
                return location["href"], digest
    raise ValueError("it names no list of packages")


def _packages(stream: BoundedStream, base: str, names: Collection[str]) -> Iterator[RemotePackage]:
    for package in read_records(stream, f"{COMMON}package"):
        name, arch, version, checksum, location, size = (
            package.get(f"{COMMON}{tag}", NOTHING)
            for tag in ("name", "arch", "version", "checksum", "location", "size")
        )
        if (
            name[1] in names
            and arch[1] == "x86_64"
            and version[0]
            and location[0]
            and size[0]
            and checksum[0].get("type") == "sha256"
        ):
            epoch = version[0].get("epoch", "0")
            yield RemotePackage(
                name=name[1],
                version=("" if epoch == "0" else f"{epoch}:") + f"{version[0]['ver']}-{version[0]['rel']}",
                address=f"{base}/{location[0]['href']}",
                sha256=checksum[1],
                size=size[0].get("package", ""),
            )


class RecordReader:
    """Target of a parser of XML, which keeps the children of each element `tag`, and makes no tree of the rest: that would take thirty
    times the memory of a list that nobody need have signed."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.done: list[Record] = []
        self.parts = 0
        self.depth = 0
        """Of the present element in a record: 1 is the record's own."""
        self.record: Record = {}
        self.child = ""

    def doctype(self, *_: object) -> None:
        """Raises ValueError: a document type may define what multiplies."""
        raise ValueError("it declares a document type")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.parts += 1
        if self.depth or tag == self.tag:
            self.depth += 1
        if self.depth == 1:
            self.record = {"": (attributes, "")}
        elif self.depth == CHILD and tag not in self.record and len(self.record) < MOST_CHILDREN:
            self.child = tag
            self.record[tag] = attributes, ""

    def data(self, text: str) -> None:
        self.parts += 1
        if self.child:
            attributes, before = self.record[self.child]
            self.record[self.child] = attributes, (before + text)[:LONGEST_TEXT]

    def end(self, _: str) -> None:
        self.child = ""
        if self.depth == 1:
            self.done.append(self.record)
        self.depth = max(0, self.depth - 1)


def read_records(stream: Readable, tag: str) -> Iterator[Record]:
    """Elements of an XML document in its order. Raises ValueError, ParseError, RefusedArchive."""
    reader = RecordReader(tag)
    parser = ElementTree.XMLParser(target=reader)
    while block := stream.read(PIECE):
        before = reader.parts
        parser.feed(block)
        if len(block) == PIECE and reader.parts == before:
            # The parser would read it anew with each block that comes.
            raise ValueError(f"it has a part of more than {PIECE} bytes")
        yield from reader.done
        reader.done.clear()
    parser.close()
    # From expat 2.6 on, what ends a short last block may be parsed only here.
    yield from reader.done
