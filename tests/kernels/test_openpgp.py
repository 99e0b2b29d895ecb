"""Signatures by gpgv: which ones are taken, and what of the file counts as signed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_kernels import end_agent, signing_key

from kduel.core.errors import InputError
from kduel.kernels.packages.openpgp import check_signature

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
        (TEXT, good + sign(other, "--detach-sign"), False),
        (TEXT, b"", False),
    ):
        file.write_bytes(content)
        signature.write_bytes(packets)
        if valid:
            assert check_signature("the file", file, signature, [own / "test.gpg"]) == content
        else:
            with pytest.raises(InputError, match="the file is not signed by a key of"):
                check_signature("the file", file, signature, [own / "test.gpg"])
