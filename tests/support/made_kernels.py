"""Small but real things to test with: kernel images, modules, packages, and a signed archive that serves them."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HEADERS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("headers.json").read_text())["kernels"]


def elf(
    *, sections: Sequence[tuple[str, bytes]] = (), notes: bytes = b"", bits: int = 64, big: bool = False
) -> bytes:
    """An ELF file with these sections and, if given, a PT_NOTE segment."""
    order = ">" if big else "<"
    head, wide = (64, "Q") if bits == 64 else (52, "I")
    names = b"\0"
    body, placed = b"", []
    for name, data in [*sections, (".shstrtab", b"")]:
        at = len(names)
        names += name.encode() + b"\0"
        placed.append((at, head + 56 + len(body), len(data)))
        body += data
    placed[-1] = (placed[-1][0], head + 56 + len(body), len(names))
    notes_at = head + 56 + len(body) + len(names)
    body += names + notes
    table = head + 56 + len(body)
    ident = b"\x7fELF" + bytes([bits // 32, 2 if big else 1, 1]) + bytes(9)
    segments = 1 if notes else 0
    header = ident + struct.pack(
        order + f"HHI{wide}{wide}{wide}IHHHHHH",
        *(2, 62, 1, 0, head, table, 0, head, 56, segments, 64 if bits == 64 else 40, len(placed) + 1, len(placed)),
    )
    segment = struct.pack("<IIQQQQQQ", 4, 4, notes_at, 0, 0, len(notes), len(notes), 4) if notes else bytes(56)
    result = header + segment + body + bytes(64 if bits == 64 else 40)
    for name_at, offset, size in placed:
        fields = (name_at, 1, 0, 0, offset, size, 0, 0, 1, 0)
        result += struct.pack(order + ("IIQQQQIIQQ" if bits == 64 else "IIIIIIIIII"), *fields)
    return result


def vmlinux(release: str, *, pvh: bool = True, config: bytes = b"") -> bytes:
    """What a bzImage unpacks to, as far as anyone here looks: banner, PVH note, IKCONFIG."""
    note = struct.pack("<III", 4, 8, 18) + b"Xen\0" + bytes(8) if pvh else b""
    other = struct.pack("<III", 4, 5, 1) + b"GNU\0" + bytes(8)
    banner = f"Linux version {release} (somebody@somewhere) #1 SMP".encode()
    text = banner + (b"IKCFG_ST" + config + b"IKCFG_ED" if config else b"")
    return elf(sections=[(".rodata", text)], notes=other + note)


def bzimage(release: str = "", *, like: str = "6.12.117+deb13-cloud-amd64", payload: bytes | None = None) -> bytes:
    """A file with the setup header of one of Debian's kernels. `payload` replaces the compressed kernel."""
    real = HEADERS[like]
    data = bytearray(int(real["size"]))
    header = bytes.fromhex(real["header"])
    data[0x1F1 : 0x1F1 + len(header)] = header
    banner = real["banner"].replace(like, release or like).encode() + b"\0"
    data[real["banner_at"] : real["banner_at"] + len(banner)] = banner
    if payload is None:
        payload = with_length(lzma.compress(vmlinux(release or like)), vmlinux(release or like))
    start = (data[0x1F1] + 1) * 512 + struct.unpack_from("<I", data, 0x248)[0]
    struct.pack_into("<I", data, 0x24C, len(payload))
    return bytes(data[:start]) + payload


def with_length(compressed: bytes, plain: bytes) -> bytes:
    """As the kernel's build does for all formats but gzip."""
    return compressed + struct.pack("<I", len(plain))


def module(release: str, *, depends: str = "", more: Sequence[str] = (), **shape: Any) -> bytes:
    """A module's ELF with a .modinfo."""
    lines = [*more, f"depends={depends}", f"vermagic={release} SMP mod_unload "]
    info = b"".join(line.encode() + b"\0" for line in lines)
    return elf(sections=[(".text", b"\x90" * 7), (".modinfo", info)], **shape)


def deb(into: Path, name: str, version: str, files: dict[str, bytes], depends: str = "") -> Path:
    """A package, by the real dpkg-deb; one that is there by that name already is taken as it is."""
    target = into / f"{name}_{version.replace(':', '%3a')}_amd64.deb"
    if target.exists():
        return target
    place = into / f"build-{name}-{version}"
    (place / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: Nobody <n@example.org>\n"
    control += (f"Depends: {depends}\n" if depends else "") + "Description: for a test\n"
    (place / "DEBIAN/control").write_text(control)
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Zxz", "-z0", place, target], check=True, stdout=-3)
    return target


@cache
def control_of(package: Path) -> str:
    """The control fields of a package, as dpkg-deb prints them."""
    return subprocess.run(["dpkg-deb", "-f", package], check=True, capture_output=True, text=True).stdout


def kernel_files(release: str) -> dict[str, bytes]:
    """What an undivided kernel package holds."""
    modules = f"usr/lib/modules/{release}"
    return {
        f"boot/vmlinuz-{release}": bzimage(release),
        f"boot/config-{release}": b"CONFIG_PVH=y\n",
        f"boot/System.map-{release}": b"stub",
        f"{modules}/modules.builtin": b"kernel/fs/ext4/ext4.ko\n",
        f"{modules}/kernel/drivers/block/virtio_blk.ko": module(release),
        f"usr/share/doc/linux-image-{release}/copyright": b"words",
    }


@cache
def signing_key(home: Path) -> Path:
    """A key for signing, and its public part as a keyring."""
    home.chmod(0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-gen-key", "Test <test@example.org>", "ed25519"], check=True, capture_output=True)
    keyring = home / "test.gpg"
    keyring.write_bytes(subprocess.run([*gpg, "--export"], check=True, capture_output=True).stdout)
    return keyring


def end_agent(home: Path) -> None:
    """End the agent that gpg starts for a directory and leaves running."""
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


class Mirror:
    """A signed archive on loopback. `add` packages, then `publish`; `asked` is what was fetched.

    A path that ends in `held` is not answered until `let_go` is set.
    """

    def __init__(self, root: Path, home: Path, built: Path) -> None:
        self.root = root
        self.built = built
        self.home = home
        self.keyring = signing_key(home)
        self.stanzas: dict[str, list[str]] = {}
        self.published = time.time() - 3600
        self.asked: list[str] = []
        self.held = ""
        self.holding = threading.Event()
        self.let_go = threading.Event()
        (root / "debian/pool").mkdir(parents=True)
        mirror = self

        class Handler(SimpleHTTPRequestHandler):
            def log_request(self, code: object = "-", size: object = "-") -> None:
                mirror.asked.append(self.path)

            def do_GET(self) -> None:
                if mirror.held and self.path.endswith(mirror.held):
                    mirror.holding.set()
                    mirror.let_go.wait(60)
                super().do_GET()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0),
            lambda *words: Handler(*words, directory=str(root)),  # type: ignore[arg-type]
        )
        self.address = f"http://127.0.0.1:{self.server.server_port}/debian"

    def __enter__(self) -> Mirror:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def fetched(self, ending: str) -> int:
        return sum(path.endswith(ending) for path in self.asked)

    def add(self, suite: str, package: Path, *, fields: str = "") -> None:
        """Offer a package in a suite; `fields` are further lines of its stanza."""
        pooled = self.root / "debian/pool" / package.name
        pooled.write_bytes(package.read_bytes())
        control = control_of(package)
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        stanza = f"{control}{fields}Filename: pool/{package.name}\nSize: {package.stat().st_size}\nSHA256: {digest}\n"
        self.stanzas.setdefault(suite, []).append(stanza)

    def add_kernel(self, suite: str, version: str, abi: str, suffix: str = "amd64", meta: str = "") -> None:
        """An undivided kernel, with the metapackage that points to it."""
        release = f"{abi}-{suffix}"
        needs = "kmod, linux-base (>= 4.3~)"
        self.add(suite, deb(self.built, f"linux-image-{release}", version, kernel_files(release), needs))
        points_to = f"linux-image-{release} (= {version})"
        self.add(suite, deb(self.built, meta or f"linux-image-{suffix}", version, {}, points_to))

    def publish(self, *, signed: bool = True, valid_for: timedelta = timedelta(days=7)) -> None:
        """Write and sign the indexes of all suites."""
        for suite, stanzas in self.stanzas.items():
            area = "debian-security" if suite.endswith("-security") else "debian"
            if area != "debian" and not (self.root / area).exists():
                (self.root / area).mkdir()
                (self.root / area / "pool").symlink_to("../debian/pool")
            place = self.root / area / "dists" / suite
            packages = place / "main/binary-amd64/Packages"
            packages.parent.mkdir(parents=True, exist_ok=True)
            packages.write_text("\n".join(stanzas) + "\n")
            data = packages.read_bytes()
            packages.with_suffix(".xz").write_bytes(lzma.compress(data))
            now = datetime.now(UTC)
            form = "%a, %d %b %Y %H:%M:%S UTC"
            release = f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\nDate: {now - timedelta(days=30):{form}}\n"
            release += f"Valid-Until: {now + valid_for:{form}}\nArchitectures: amd64\nComponents: main\nSHA256:\n"
            for file in (packages, packages.with_suffix(".xz")):
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                release += f" {digest} {file.stat().st_size} {file.relative_to(place)}\n"
            (place / "Release").write_text(release)
            if signed:
                self._sign(place)
            # HTTP tells a file's age in whole seconds: two lists of one second would be one list to apt.
            self.published += 2
            for file in (*place.glob("*Release"), packages, packages.with_suffix(".xz")):
                os.utime(file, (self.published, self.published))

    def _sign(self, place: Path) -> None:
        gpg = [
            "gpg",
            "--homedir",
            str(self.home),
            "--batch",
            "--yes",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
        ]
        subprocess.run(
            [*gpg, "--clearsign", "--output", place / "InRelease", place / "Release"], check=True, capture_output=True
        )
