"""What a hostile guest sends in place of its results: bytes for the results port, made by hand."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile

ZEROS = 250 << 20
HIJACK = """\
# The results port is held by the first process, which nobody can kill: its handle is taken over.
hijack() {
    handle=$(ls -l /proc/1/fd | sed -n 's/.* \\([0-9]*\\) -> .*vport.*/\\1/p' | head -n 1)
    perl -MPOSIX -e '$f = syscall(438, syscall(434, 1, 0), $ARGV[0] + 0, 0); POSIX::dup2($f, 1) or die "$!";
        exec "sh", "-c", $ARGV[1]' "$handle" "$1"
}
"""


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A tar's header block."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.USTAR_FORMAT)


def deep_tree(members: int = 300, depth: int = 250) -> bytes:
    """Few members, each far below others' directories: 75,000 directories."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for number in range(members):
            tar.addfile(tarfile.TarInfo(f"{number:03}/" + "/".join("d" * depth)))
    return out.getvalue()


def pathological_header(digits: int = 2_000_000) -> bytes:
    """An extended header in which Python 3.11.7's tarfile looks for a length for hours."""
    return header("x", digits, tarfile.XHDTYPE) + b"0" * digits + bytes(-digits % 512) + header("a", 0) + bytes(1024)


def sealed(archive: bytes) -> bytes:
    """A whole envelope."""
    digest = hashlib.sha256(archive).hexdigest()
    return f"KDUEL BEGIN {len(archive)} {digest}\n".encode() + archive + b"\nKDUEL END\n"


def large_envelope() -> tuple[bytes, int, bytes]:
    """A whole envelope with one file of zeros: what comes before them, how many they are, and what comes after."""
    head, tail = header("zeros", ZEROS), bytes(-ZEROS % 512 + 1024)
    digest = hashlib.sha256(head)
    for _ in range(ZEROS >> 20):
        digest.update(bytes(1 << 20))
    digest.update(tail)
    begin = f"KDUEL BEGIN {len(head) + ZEROS + len(tail)} {digest.hexdigest()}\n".encode()
    return begin + head, ZEROS, tail + b"\nKDUEL END\n"


def shell(data: bytes) -> str:
    """A command that prints the data."""
    return f"echo {base64.b64encode(gzip.compress(data, 9)).decode()} | base64 -d | gunzip -c"
