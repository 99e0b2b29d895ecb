"""OpenPGP signatures, checked by gpgv against keyrings that are files."""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kduel.core.errors import HostError, InputError, cannot_read
from kduel.core.host_packages import install_command
from kduel.core.temporary import temporary_directory

ARMOUR = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\n]+: [^\n]*\n)*\r?\n(.*?)(?:\n=[^\n]*)?\r?\n-----END", re.DOTALL
)


def check_signature(what: str, signed: Path, signature: Path | None, keyrings: Sequence[Path]) -> bytes:
    """The content of a clear-signed file; of one with a detached signature, which is `signature`, its whole content.

    Raises InputError for what these keys did not sign, HostError without gpgv.
    """
    with temporary_directory() as place:
        words = ["gpgv", "--status-fd", "2", "--homedir", str(place)]
        for number, keyring in enumerate(keyrings):
            binary = place / f"{number}.gpg"
            try:
                binary.write_bytes(dearmour(keyring.read_bytes()))
            except OSError as error:
                raise cannot_read(keyring, error, "Install the distribution's keys again.") from error
            words += ["--keyring", str(binary)]
        plain = place / "plain"
        words += ["--output", str(plain), str(signed)] if signature is None else [str(signature), str(signed)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        except FileNotFoundError as error:
            raise HostError("gpgv is not installed", f"Install it: {install_command('gpgv')}.") from error
        if done.returncode or "[GNUPG:] VALIDSIG" not in done.stderr:
            told = [line for line in done.stderr.splitlines() if line.startswith("gpgv: ")]
            raise InputError(
                f"{what} is not signed by a key of {', '.join(map(str, keyrings))}: {'; '.join(told[-2:])[:300]}",
                "Do not use it. If the distribution has new keys, install them.",
            )
        return (plain if signature is None else signed).read_bytes()


def dearmour(data: bytes) -> bytes:
    """Keys as gpgv reads them: the binary of one or more armoured blocks; what is binary as it is. Raises InputError."""
    if b"-----BEGIN PGP" not in data:
        return data
    try:
        return b"".join(base64.b64decode(block) for block in ARMOUR.findall(data))
    except binascii.Error as error:
        raise InputError(f"a file of keys is damaged: {error}", "Install the distribution's keys again.") from error
