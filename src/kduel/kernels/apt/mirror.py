"""Address of Debian's archive: from the environment, the host's own apt sources, or what the system ships."""

import os
import re
import shutil
from pathlib import Path

from kduel.core.errors import HostError
from kduel.core.supervised_process import run_text
from kduel.core.this_host import text_of

KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
)
OS_RELEASE = Path("/etc/os-release")
SHIPPED = (
    Path("/usr/share/debootstrap/scripts/sid"),
    Path("/usr/bin/mmdebstrap"),
    Path("/usr/share/python-apt/templates/Debian.info"),
)
"""Files of Debian's tools, on other distributions too, that name the archive's usual address."""
SHIPPED_ADDRESS = re.compile(r"\bhttps?://[\w.-]+(?:/[\w.-]+)*?/debian(?P<security>-security)?(?=/?['\"\s>])")


def debian_mirror() -> str:
    """The address of Debian's main archive, without a slash at its end: $KDUEL_DEBIAN_MIRROR, else what the host's
    apt uses on Debian, else Debian's tools' default. Raises HostError."""
    found = os.environ.get("KDUEL_DEBIAN_MIRROR") or _host_source(security=False) or shipped_address(security=False)
    if not found:
        raise HostError(
            "no Debian mirror is known on this host",
            "Name one in KDUEL_DEBIAN_MIRROR, or install debootstrap or mmdebstrap, which know the usual one.",
        )
    return found.rstrip("/")


def security_mirror() -> str:
    """Debian's security archive: $KDUEL_DEBIAN_SECURITY_MIRROR, else beside `debian_mirror` as `...-security`."""
    given = os.environ.get("KDUEL_DEBIAN_SECURITY_MIRROR")
    if not given and os.environ.get("KDUEL_DEBIAN_MIRROR"):
        given = f"{debian_mirror()}-security"
    found = given or _host_source(security=True) or shipped_address(security=True) or f"{debian_mirror()}-security"
    return found.rstrip("/")


def keyring() -> Path:
    """Debian's public keys: $KDUEL_DEBIAN_KEYRING, else those installed. Raises HostError where there are none."""
    given = os.environ.get("KDUEL_DEBIAN_KEYRING")
    if given and not Path(given).is_file():
        raise HostError(f"KDUEL_DEBIAN_KEYRING names no file: {given}", "Correct or unset it.")
    for path in [Path(given)] if given else KEYRINGS:
        if path.is_file():
            return path
    raise HostError(
        f"Debian's archive keys are not on this host ({KEYRINGS[0]})", "Install the package debian-archive-keyring."
    )


def _host_source(*, security: bool) -> str:
    """The archive that a Debian host's apt gets its own release from; empty on other systems."""
    lines = text_of(OS_RELEASE).splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    facts = {key: value.strip().strip("\"'") for key, _, value in pairs}
    if facts.get("ID") != "debian" or not shutil.which("apt-get"):
        return ""
    codename = facts.get("VERSION_CODENAME", "")
    releases = {codename, "stable", "oldstable", "testing", "unstable", "sid"} - {""}
    form = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    listed = run_text(
        ["apt-get", "indextargets", "--no-release-info", "--format", form, "Created-By: Packages"]
    ).stdout
    for line in listed.splitlines():
        address, release, component = (*line.split("|"), "", "")[:3]
        ending = "/debian-security" if security else "/debian"
        suite = release.removesuffix("-security").removesuffix("/updates")
        address = _first_of_mirror_list(address).rstrip("/")
        if component == "main" and suite in releases and address.endswith(ending):
            return address
    return ""


def _first_of_mirror_list(address: str) -> str:
    """apt's `mirror+file:/LIST` (as in Debian's cloud images) made an ordinary address; others as they are."""
    scheme, colon, rest = address.partition(":")
    if not colon or scheme != "mirror+file":
        return address
    lines = text_of(Path("/" + rest.lstrip("/").rstrip("/"))).splitlines()
    return next((line.split()[0] for line in lines if line.strip() and not line.startswith("#")), "")


def shipped_address(*, security: bool) -> str:
    for path in SHIPPED:
        for match in SHIPPED_ADDRESS.finditer(text_of(path)):
            if bool(match["security"]) == security:
                return match[0]
    return ""
