"""OpenPGP signatures, checked by gpgv against keyrings that are files."""

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import Path

from kduel.core.errors import HostError, InputError, cannot_read
from kduel.core.host_packages import install_command
from kduel.core.supervised_process import run_text
from kduel.core.temporary import temporary_directory

ARMOUR = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\n]+: [^\n]*\n)*\r?\n(.*?)(?:\n=[^\n]*)?\r?\n-----END", re.DOTALL
)

WRONG = {
    "BADSIG": "the signature does not fit",
    "EXPSIG": "the signature has expired",
    "EXPKEYSIG": "the key has expired",
    "REVKEYSIG": "the key was revoked",
}
HARMLESS = {
    "NEWSIG", "GOODSIG", "VALIDSIG", "SIG_ID", "KEY_CONSIDERED", "NO_PUBKEY", "PLAINTEXT", "PLAINTEXT_LENGTH", "PROGRESS",
    "VERIFICATION_COMPLIANCE_MODE", "NOTATION_NAME", "NOTATION_DATA", "NOTATION_FLAGS", "POLICY_URL", "TRUST_UNDEFINED",
    "KEYEXPIRED",
}  # fmt: skip
"""A key that has another subkey which expired included."""
NO_PUBLIC_KEY = "9"
MISSING_KEY, SOME_FAILED = 2, ["FAILURE", "gpg-exit"]
"""Exit status, and words for it, where one of several keys is not there."""


def check_signature(what: str, signed: Path, signature: Path | None, keyrings: Sequence[Path]) -> bytes:
    """The content of a signed file, clear or with a detached `signature`. Raises InputError, HostError (no gpgv)."""
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
            done = run_text(words)
        except FileNotFoundError as error:
            raise HostError("gpgv is not installed", f"Install it: {install_command('gpgv')}.") from error
        if why := why_not_signed(done.stderr, done.returncode):
            told = [line for line in done.stderr.splitlines() if line.startswith("gpgv: ")]
            raise InputError(
                f"{what} is not signed by a key of {', '.join(map(str, keyrings))}: {why} ({'; '.join(told[-2:])[:300]})",
                "Do not use it. If the distribution has new keys, install them.",
            )
        return (plain if signature is None else signed).read_bytes()


def why_not_signed(status: str, returned: int) -> str:
    """Empty where gpgv's status lines tell of one good signature at least, and of nothing that they need not tell then: a
    signature by a key that is not there may stand beside it. GnuPG's doc/DETAILS has the words."""
    lines = [line.split()[1:] for line in status.splitlines() if line.startswith("[GNUPG:] ")]
    said = [words[0] for words in lines if words]
    for word in said:
        if word in WRONG:
            return WRONG[word]
    missing = [words for words in lines if words[:1] == ["ERRSIG"] and words[6:7] == [NO_PUBLIC_KEY]]
    others = [
        words[0]
        for words in lines
        if words and words[0] not in HARMLESS and words not in missing and not (missing and words[:2] == SOME_FAILED)
    ]
    if others:
        return f"gpgv says {others[0]}"
    good = said.count("GOODSIG")
    if good != said.count("VALIDSIG") or said.count("NEWSIG") not in (0, good + len(missing)):
        return "gpgv says nothing of one of its signatures"
    if returned and not (missing and returned == MISSING_KEY):
        return "gpgv failed"
    if said.count("PLAINTEXT") > 1:
        return "several texts are signed"
    return "" if good else "there is no signature by one of them"


def dearmour(data: bytes) -> bytes:
    """Keys as gpgv reads them: the binary of one or more armoured blocks; what is binary as it is. Raises InputError."""
    if b"-----BEGIN PGP" not in data:
        return data
    try:
        return b"".join(base64.b64decode(block) for block in ARMOUR.findall(data))
    except binascii.Error as error:
        raise InputError(f"a file of keys is damaged: {error}", "Install the distribution's keys again.") from error
