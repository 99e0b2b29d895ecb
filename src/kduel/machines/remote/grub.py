"""GRUB's menu as the machine has it: which entry boots a kernel, and whether a choice holds for one boot only."""

import re
import shlex

import msgspec
from msgspec import Struct

from kduel.core.errors import HostError

ENTRY = re.compile(r"""^\s*(menuentry|submenu)\s+(['"])(.*?)\2(.*)\{\s*$""")
IDENTITY = re.compile(r"""(?:--id|\$menuentry_id_option)[ =](['"]?)([^'"\s{]+)\1""")
KERNEL = re.compile(r"^\s*linux(?:16|efi)?\s+(\S+)\s*(.*)$")


class MenuEntry(Struct, frozen=True):
    """A menu entry that boots Linux."""

    path: str
    """As grub-reboot takes it: `submenu>entry`."""
    title: str
    image: str
    """The kernel's file, as GRUB names it."""
    cmdline: str
    body: tuple[str, ...] = ()
    """Its lines between the braces."""

    @property
    def release(self) -> str:
        """The release, by the image's name."""
        return self.image.rsplit("/", 1)[-1].removeprefix("vmlinuz-").removeprefix("vmlinux-")


def entries(config: str) -> list[MenuEntry]:
    """The entries of a grub.cfg, in its order. `}` in the first column or indented ends what was opened last."""
    found: list[MenuEntry] = []
    open_blocks: list[tuple[str, str, str]] = []
    body: list[str] = []
    for line in config.splitlines():
        inside = any(block[0] == "menuentry" for block in open_blocks)
        if match := ENTRY.match(line):
            identity = IDENTITY.search(match[4])
            open_blocks.append((match[1], match[3], identity[2] if identity else match[3]))
            body = []
            continue
        if line.rstrip().endswith("{"):
            open_blocks.append(("", "", ""))
        elif line.strip() == "}" and open_blocks:
            if open_blocks.pop()[0] == "menuentry":
                found = [msgspec.structs.replace(e, body=e.body or tuple(body)) for e in found]
                continue
        elif (match := KERNEL.match(line)) and inside:
            names = [name for kind, _, name in open_blocks if kind]
            title = next(title for kind, title, _ in reversed(open_blocks) if kind == "menuentry")
            found.append(MenuEntry(">".join(names), title, match[1], match[2]))
        if inside:
            body.append(line.strip())
    return found


def entry_of(config: str, release: str) -> MenuEntry:
    """The entry that boots a release, no recovery entry. Raises HostError that lists what there is."""
    known = entries(config)
    for entry in known:
        if (
            entry.release == release
            and "recovery" not in entry.title.lower()
            and "single" not in entry.cmdline.split()
        ):
            return entry
    listed = ", ".join(dict.fromkeys(entry.release for entry in known)) or "none"
    raise HostError(
        f"GRUB has no entry that boots {release}; it has {listed}", "Install that kernel there, then run update-grub."
    )


def check_once(config: str) -> None:
    """Raises HostError unless a choice by grub-reboot is forgotten before it is booted, so that a bad one ends with it."""
    if "next_entry" not in config or not re.search(r"^\s*save_env next_entry", config, re.MULTILINE):
        raise HostError(
            "GRUB's configuration there does not clear next_entry: a kernel that does not boot would be chosen at every boot",
            'Run update-grub there (its grub-reboot support writes "save_env next_entry"), or use boot = "kexec".',
        )


CUSTOM = "/boot/grub/custom.cfg"
BEGIN, END = "# entries of KDuel", "# end of KDuel"
"""What lies between them in CUSTOM is ours, made for a run and taken away after it."""


def own_entry(like: MenuEntry, name: str, release: str, words: str) -> tuple[MenuEntry, str]:
    """An entry as `like`, for another release or with further words on the command line; and its text for CUSTOM."""
    lines = []
    for line in like.body:
        if match := KERNEL.match(line):
            line = line.replace(match[1], rename_release(match[1], like.release, release))
            line = f"{line} {words}".rstrip()
        elif line.startswith("initrd"):
            line = rename_release(line, like.release, release)
        lines.append(f"  {line}")
    made = MenuEntry(name, name, rename_release(like.image, like.release, release), f"{like.cmdline} {words}".strip())
    return made, "\n".join([f"menuentry '{name}' --id '{name}' {{", *lines, "}"])


def rename_release(text: str, old: str, new: str) -> str:
    """Paths of another release."""
    return text.replace(f"-{old}", f"-{new}")


def check_custom(config: str) -> None:
    """Raises HostError unless the menu takes up CUSTOM."""
    if "custom.cfg" not in config:
        raise HostError(
            f"GRUB's menu there does not include {CUSTOM}, where KDuel would put entries of its own",
            'Run update-grub there (its 41_custom does it), or use boot = "kexec".',
        )


def custom_script(texts: list[str]) -> str:
    """Shell that puts the entries into CUSTOM in place of KDuel's former ones; without entries it takes them away."""
    keep = f"[ ! -e {CUSTOM} ] || sed '/^{BEGIN}$/,/^{END}$/d' {CUSTOM} >$n"
    ours = "\n".join([BEGIN, *texts, END]) + "\n" if texts else ""
    return (
        f"set -e; n={CUSTOM}.kduel-new; : >$n; {keep}; printf %s {shlex.quote(ours)} >>$n; "
        f"if [ -s $n ]; then mv $n {CUSTOM}; else rm -f $n {CUSTOM}; fi; sync"
    )
