"""Facts that a list of packages gives about one, checked before anything is named or fetched by them."""

import re

from kduel.core.errors import HostError
from kduel.core.text import visible

MOST = 8 << 30
"""Bytes of a package, or of a file whose size is not known before."""
FORMS = {
    "name": re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}"),
    "version": re.compile(r"(?:[0-9]{1,9}:)?[A-Za-z0-9][A-Za-z0-9_.+~^-]{0,99}"),
    "architecture": re.compile(r"[a-z0-9_-]{1,30}"),
    "SHA-256": re.compile(r"[0-9a-f]{64}"),
    "file": re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+~^%:-]{0,200}\.(?:deb|rpm|pkg\.tar\.[a-z0-9]{1,5})"),
    "size": re.compile(r"0{0,20}[1-9][0-9]{0,10}"),
}
"""No list need be signed, and a signed one may be wrong."""


def check_listed(mirror: str, name: str, **facts: str) -> None:
    """Raises HostError for what a list cannot truly have. The keys are those of FORMS, with `sha256` for the SHA-256."""
    for what, value in {"name": name, **facts}.items():
        told = what.replace("sha256", "SHA-256")
        if FORMS[told].fullmatch(value) is None or (told == "size" and int(value) > MOST):
            raise HostError(
                f"the list of packages of {mirror} is damaged: the {told} of {visible(name[:60], 60)} is "
                f"{visible(value[:60], 60)!r}",
                "Try again later, or name another mirror.",
            )
