"""systemd-boot's entries (loader/entries/*.conf): which one boots a kernel; a choice by set-oneshot holds once by design."""

import re
import shlex

from kduel.core.errors import HostError
from kduel.machines.remote.grub import MenuEntry

OWN = "-kduel-"
"""Begins the names of KDuel's own entries: a minus sign sorts behind all else, and the entry that is listed first is the default."""

NOTHING = 17

LIST = (
    'p=$(bootctl -x) || exit; for f in "$p"/loader/entries/*.conf; do '
    '[ ! -e "$f" ] || { echo "entry:${f##*/}"; cat "$f"; echo; }; done'
)
"""Shell that prints every entry behind its name."""


class BootEntry(MenuEntry, frozen=True):
    """An entry with its release, which the names of kernel-install's images do not contain."""

    version: str = ""
    text: str = ""

    @property
    def release(self) -> str:
        return self.version or super().release


def entries(listing: str) -> list[MenuEntry]:
    """The entries that LIST printed and that boot Linux; not those of KDuel's own."""
    found: list[MenuEntry] = []
    for part in re.split(r"^entry:", listing, flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        fields = dict(re.findall(r"^(title|version|linux)[ \t]+(\S.*?)[ \t]*$", text, re.MULTILINE))
        options = " ".join(re.findall(r"^options[ \t]+(\S.*?)[ \t]*$", text, re.MULTILINE))
        if "linux" in fields and not name.startswith(OWN):
            found.append(
                BootEntry(
                    path=name.strip(),
                    title=fields.get("title", name.strip()),
                    image=fields["linux"],
                    cmdline=options,
                    version=fields.get("version", ""),
                    text=text,
                )
            )
    return found


def entry_of(listing: str, release: str) -> BootEntry:
    """The entry that boots a release. Raises HostError that lists what there is."""
    known = [entry for entry in entries(listing) if isinstance(entry, BootEntry)]
    for entry in known:
        if entry.release == release:
            return entry
    listed = ", ".join(dict.fromkeys(entry.release for entry in known)) or "none"
    raise HostError(
        f"systemd-boot has no entry that boots {release}; it has {listed}", "Install it there with kernel-install."
    )


def own_entry(like: BootEntry, number: int, words: str) -> tuple[BootEntry, str]:
    """An entry as `like` with further words, and shell that writes it; without a sort key it is no default."""
    file = f"{OWN}{number}.conf"
    kept = [line for line in like.text.strip().splitlines() if not re.match(r"(title|sort-key)\s", line)]
    text = "\n".join([f"title {file}", *kept, f"options {words}", ""])
    script = f'printf %s {shlex.quote(text)} >"$(bootctl -x)/loader/entries/{file}" && sync'
    made = BootEntry(
        path=file, title=file, image=like.image, cmdline=f"{like.cmdline} {words}", version=like.version, text=text
    )
    return made, script


FORGET = f'rm -f "$(bootctl -x)"/loader/entries/{OWN}*.conf'
"""Shell that takes KDuel's own entries away."""
CHOICE = "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
REMOVE = (
    f'set -- "$(bootctl -x)"/loader/entries/{OWN}*.conf; s={NOTHING}; [ ! -e "$1" ] || {{ rm -f "$@"; s=0; }}; '
    f"[ ! -e {CHOICE} ] || {{ bootctl set-oneshot '' && s=0; }}; sync; exit $s"
)
"""As FORGET, with the choice of an entry for the next boot; its status is NOTHING where there is neither."""
