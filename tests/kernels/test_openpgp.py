"""Signatures by gpgv: which ones are taken, and what of the file counts as signed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_kernels import end_agent, signing_key

from kduel.core.errors import InputError
from kduel.kernels.packages.openpgp import check_signature, why_not_signed

TEXT = b"Suite: noble\n"


def sign(home: Path, how: str) -> bytes:
    """TEXT with a signature around it, or the signature alone, by the key in `home`."""
    words = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    return subprocess.run([*words, how, "--output", "-"], input=TEXT, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory, need: Callable[..., str]) -> Iterator[list[Path]]:
    """Directories of two keys, the distribution's and another's, with their public parts as keyrings."""
    need("gpg")
    need("gpgv")
    homes = [tmp_path_factory.mktemp(name) for name in ("own", "other")]
    for home in homes:
        signing_key(home)
    yield homes
    for home in homes:
        end_agent(home)


def test_a_text_before_or_after_the_signed_one_does_not_count(keys: list[Path], tmp_path: Path) -> None:
    file, own = tmp_path / "InRelease", keys[0]
    signed = sign(own, "--clear-sign")
    for data in (signed, b"Suite: evil\n" + signed, signed + b"Suite: evil\n"):
        file.write_bytes(data)
        assert check_signature("the list", file, None, [own / "test.gpg"]) == TEXT


def test_a_text_that_is_not_wholly_signed_is_refused(keys: list[Path], tmp_path: Path) -> None:
    """Where another one follows, gpgv calls the first one valid before it fails on the second."""
    file, own = tmp_path / "InRelease", keys[0]
    signed, forged = (sign(home, "--clear-sign") for home in keys)
    for data in (signed + forged, signed.replace(b"noble", b"evil"), forged, sign(own, "--store"), TEXT):
        file.write_bytes(data)
        with pytest.raises(InputError, match="the list is not signed by a key of"):
            check_signature("the list", file, None, [own / "test.gpg"])


def test_a_detached_signature_is_for_the_whole_file(keys: list[Path], tmp_path: Path) -> None:
    file, signature, (own, other) = tmp_path / "file", tmp_path / "file.sig", keys
    good = sign(own, "--detach-sign")
    for content, packets, valid in (
        (TEXT, good, True),
        (TEXT + b"more", good, False),
        (TEXT, good + sign(other, "--detach-sign"), True),
        (TEXT, sign(other, "--detach-sign"), False),
        (TEXT, b"", False),
    ):
        file.write_bytes(content)
        signature.write_bytes(packets)
        if valid:
            assert check_signature("the file", file, signature, [own / "test.gpg"]) == content
        else:
            with pytest.raises(InputError, match="the file is not signed by a key of"):
                check_signature("the file", file, signature, [own / "test.gpg"])


@pytest.fixture
def home(tmp_path: Path, keys: list[Path]) -> Path:
    """A directory of GnuPG's own for keys that are of one test."""
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    return place


def gpg(home: Path, *words: object) -> bytes:
    always = ["--batch", "--quiet", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""]
    command = ["gpg", "--homedir", str(home), *always, *map(str, words)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def test_an_expired_or_revoked_key_signs_nothing(home: Path, tmp_path: Path) -> None:
    then = ("--faked-system-time", "20200101T000000!")
    file, ring = tmp_path / "file", tmp_path / "ring.gpg"
    file.write_bytes(TEXT)
    try:
        gpg(home, *then, "--quick-gen-key", "expired", "ed25519", "sign", "1y")
        gpg(home, "--quick-gen-key", "revoked", "ed25519", "sign", "never")
        (tmp_path / "expired.sig").write_bytes(gpg(home, *then, "-u", "expired", "-o", "-", "--detach-sign", file))
        (tmp_path / "revoked.sig").write_bytes(gpg(home, "-u", "revoked", "-o", "-", "--detach-sign", file))
        ring.write_bytes(gpg(home, "--export"))
        assert check_signature("the file", file, tmp_path / "revoked.sig", [ring]) == TEXT
        listed = gpg(home, "--with-colons", "--list-keys", "revoked").decode()
        (own,) = [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")][:1]
        certificate = (home / "openpgp-revocs.d" / f"{own}.rev").read_text().replace(":-----BEGIN", "-----BEGIN")
        (tmp_path / "certificate").write_text(certificate)
        gpg(home, "--import", tmp_path / "certificate")
        ring.write_bytes(gpg(home, "--export"))
        for name, why in (("expired", "the key has expired"), ("revoked", "the key was revoked")):
            with pytest.raises(InputError, match=why):
                check_signature("the file", file, tmp_path / f"{name}.sig", [ring])
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)


def test_one_of_two_signatures_suffices(home: Path, tmp_path: Path) -> None:
    """As a release that is signed by an old key and a new one, of which a host has one."""
    file, ring, signature = tmp_path / "file", tmp_path / "ring.gpg", tmp_path / "file.sig"
    file.write_bytes(TEXT)
    try:
        for name in ("known", "unknown", "third"):
            gpg(home, "--quick-gen-key", name, "ed25519", "sign", "never")
        signature.write_bytes(gpg(home, "-u", "=unknown", "-u", "=known", "-o", "-", "--detach-sign", file))
        ring.write_bytes(gpg(home, "--export", "=known"))
        assert check_signature("the file", file, signature, [ring]) == TEXT
        clear = tmp_path / "clear"
        clear.write_bytes(gpg(home, "-u", "=unknown", "-u", "=known", "-o", "-", "--clear-sign", file))
        assert check_signature("the file", clear, None, [ring]) == TEXT
        clear.write_bytes(clear.read_bytes() + clear.read_bytes())
        with pytest.raises(InputError, match="is not signed by a key of"):
            check_signature("the file", clear, None, [ring])
        ring.write_bytes(gpg(home, "--export", "=third"))
        with pytest.raises(InputError, match="no signature by one of them"):
            check_signature("the file", file, signature, [ring])
        ring.write_bytes(gpg(home, "--export", "=known"))
        file.write_bytes(TEXT + b"more")
        with pytest.raises(InputError, match="does not fit"):
            check_signature("the file", file, signature, [ring])
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)


def test_an_expired_signature_signs_nothing(home: Path, tmp_path: Path) -> None:
    """By a key that has not expired; nor does a good one beside it help."""
    then = ("--faked-system-time", "20200101T000000!")
    file, ring, signature = tmp_path / "file", tmp_path / "ring.gpg", tmp_path / "file.sig"
    file.write_bytes(TEXT)
    try:
        gpg(home, *then, "--quick-gen-key", "own", "ed25519", "sign", "never")
        ring.write_bytes(gpg(home, "--export"))
        old = gpg(home, *then, "--default-sig-expire", "1d", "-o", "-", "--detach-sign", file)
        good = gpg(home, "-o", "-", "--detach-sign", file)
        signature.write_bytes(good)
        assert check_signature("the file", file, signature, [ring]) == TEXT
        for packets in (old, old + good):
            signature.write_bytes(packets)
            with pytest.raises(InputError, match="the signature has expired"):
                check_signature("the file", file, signature, [ring])
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)


GOOD = "NEWSIG\nGOODSIG A own\nVALIDSIG A 2026-11-28"
MISSING = "NEWSIG\nERRSIG B 22 8 00 1795828477 9 B\nNO_PUBKEY B"
UNSUPPORTED = "NEWSIG\nERRSIG B 99 8 00 1795828477 4 B"


@pytest.mark.parametrize(
    ("says", "returned", "why"),
    [
        (f"{GOOD}", 0, ""),
        (f"{MISSING}\n{GOOD}", 2, ""),
        (f"{MISSING}\n{GOOD}\nFAILURE gpg-exit 33554433", 2, ""),
        (f"{MISSING}\n{GOOD}", 1, "gpgv failed"),
        (f"{GOOD}", 2, "gpgv failed"),
        (f"NO_PUBKEY B\n{GOOD}", 2, "gpgv failed"),
        (f"{MISSING}\n{GOOD}\nFAILURE verify 58", 2, "gpgv says FAILURE"),
        (f"{GOOD}\nFAILURE gpg-exit 33554433", 0, "gpgv says FAILURE"),
        (f"{MISSING}\n{UNSUPPORTED}\n{GOOD}", 2, "gpgv says ERRSIG"),
        (f"{MISSING}\nNEWSIG\n{GOOD}", 2, "nothing of one"),
        (f"{GOOD}\nGOODSIG A own", 0, "nothing of one"),
        (f"PLAINTEXT 74 0\n{GOOD}\nPLAINTEXT 74 0", 0, "several texts"),
        (f"{GOOD}\nBADARMOR", 0, "gpgv says BADARMOR"),
        (MISSING, 2, "no signature by one"),
        ("", 0, "no signature by one"),
    ],
)
def test_what_gpgv_says_is_accounted_for(says: str, returned: int, why: str) -> None:
    """Lines as its status has them; a key that is not there excuses what it explains, and nothing besides."""
    status = "".join(f"[GNUPG:] {line}\n" for line in says.splitlines())
    told = why_not_signed(status, returned)
    assert (why in told) if why else told == ""
