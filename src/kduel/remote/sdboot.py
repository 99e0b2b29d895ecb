"""systemd-boot's entries (loader/entries/*.conf): which one boots a kernel; a choice by set-oneshot holds once by design."""

from __future__ import annotations

import re
import shlex

from kduel.errors import HostError
from kduel.remote.grub import Entry

LIST = (
    'p=$(bootctl -x) || exit; for f in "$p"/loader/entries/*.conf; do '
    '[ ! -e "$f" ] || { echo "entry:${f##*/}"; cat "$f"; echo; }; done'
)
"""Shell that prints every entry behind its name."""


class BootEntry(Entry, frozen=True):
    """An entry that knows its release, which images of kernel-install do not tell by their name."""

    version: str = ""
    text: str = ""

    @property
    def release(self) -> str:
        return self.version or super().release


def entries(listing: str) -> list[Entry]:
    """The entries that LIST printed and that boot Linux."""
    found: list[Entry] = []
    for part in re.split(r"^entry:", listing, flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        fields = dict(re.findall(r"^(title|version|linux)[ \t]+(\S.*?)[ \t]*$", text, re.MULTILINE))
        options = " ".join(re.findall(r"^options[ \t]+(\S.*?)[ \t]*$", text, re.MULTILINE))
        if "linux" in fields:
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


def own_entry(like: BootEntry, name: str, words: str) -> tuple[BootEntry, str]:
    """An entry as `like` with further words on the command line; and shell that writes it."""
    file = f"{name}.conf"
    text = re.sub(r"^title.*$", f"title {name}", like.text.strip(), flags=re.MULTILINE) + f"\noptions {words}\n"
    script = f'printf %s {shlex.quote(text)} >"$(bootctl -x)/loader/entries/{file}" && sync'
    made = BootEntry(
        path=file, title=name, image=like.image, cmdline=f"{like.cmdline} {words}", version=like.version, text=text
    )
    return made, script


FORGET = 'rm -f "$(bootctl -x)"/loader/entries/kduel-*.conf'
"""Shell that takes KDuel's own entries away."""
