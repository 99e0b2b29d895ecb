"""Lists of packages that nobody need have signed: what is wrong with one is an error of the mirror, within bounds."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.kernels.files.listed import check_listed
from kduel.kernels.packages.repomd import read_repository

PACKAGE = (
    '<package type="rpm"><name>kernel-core</name><arch>x86_64</arch><version epoch="0" ver="6.14" rel="1.fc42"/>'
    '<checksum type="sha256" pkgid="YES">abc</checksum><size package="12"/><location href="a.rpm"/>'
    "<format><name>not of the package</name></format></package>"
)
LIST = f'<metadata xmlns="http://linux.duke.edu/metadata/common">{PACKAGE}</metadata>'
INDEX = (
    '<repomd xmlns="http://linux.duke.edu/metadata/repo"><data type="other"/><data type="primary">'
    '<checksum type="sha256">{digest}</checksum><location href="primary.gz"/></data></repomd>'
)


def read(place: Path, packages: str, index: str = INDEX) -> list[str]:
    """Names and versions in a repository with this list and index."""
    import hashlib

    mirror = place / "mirror"
    (mirror / "repodata").mkdir(parents=True)
    data = gzip.compress(packages.encode())
    (mirror / "primary.gz").write_bytes(data)
    (mirror / "repodata/repomd.xml").write_text(index.replace("{digest}", hashlib.sha256(data).hexdigest()))
    found = read_repository(f"file://{mirror}", ["kernel-core"], place, Progress())
    return [f"{one.name} {one.version} {one.sha256} {one.size}" for one in found]


def test_a_list_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, LIST.replace("</metadata>", f"{PACKAGE.replace('64', 'i686')}</metadata>")) == [
        "kernel-core 6.14-1.fc42 abc 12"
    ]


ODD = {
    "an encoding that nobody has": '<?xml version="1.0" encoding="foo"?>',
    "one that is none of text": '<?xml version="1.0" encoding="rot13"?>',
    "a document type": '<!DOCTYPE a [<!ENTITY a "x">]>',
    "a part without end": f"<!--{'x' * (5 << 20)}-->",
    "nothing": "<",
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("of", ["list", "index"])
def test_an_odd_document_is_an_error_of_the_mirror(what: str, of: str, tmp_path: Path) -> None:
    given = (ODD[what] + LIST, INDEX) if of == "list" else (LIST, ODD[what] + INDEX)
    with pytest.raises(HostError, match="cannot be read"):
        read(tmp_path, *given)


def test_a_list_of_small_parts_takes_little_memory(tmp_path: Path) -> None:
    """A tree of it would take thirty times its size, of a file that takes little to send."""
    many = LIST.replace("<package", f"{'<a/>' * 200_000}<package", 1).replace(
        "<format>", f"<format>{'<a/>' * 200_000}"
    )
    tracemalloc.start()
    assert read(tmp_path, many)
    assert tracemalloc.get_traced_memory()[1] < 12 << 20
    tracemalloc.stop()


def test_a_size_of_many_noughts_is_none() -> None:
    with pytest.raises(HostError, match="the size of linux is"):
        check_listed("a mirror", "linux", size="0" * 5000 + "1")
