"""Recipes: how a tree is configured and for what it is built, as a specification states it after its commas.

debian-source:6.1,arch=arm64,config=tinyconfig+guest+EXT4_FS=y
"""

import gzip
import hashlib
import re
import shutil
import zlib
from importlib import resources
from pathlib import Path

from msgspec import Struct

from kduel.core.errors import HostError, InputError, unknown_name
from kduel.kernels.compile.make import Make
from kduel.kernels.compile.toolchain import TARGETS, Target, own_target

KEYS = ("arch", "config", "ccache", "patch")
OPTIONS = re.compile(r"(?P<place>.*?)(?P<options>(?:,[a-z]+=[^,]*)*)", re.DOTALL)
TARGET_NAME = re.compile(
    r"[A-Za-z0-9][\w.-]*(?:_def|def|tiny|allno|allyes|allmod)config|(?:def|tiny|allno|allyes|allmod)config"
)
OPTION = re.compile(r"(?:CONFIG_)?(?P<name>[A-Z0-9][A-Za-z0-9_]*)=(?P<value>.*)")
SETTING = re.compile(r"^(?:CONFIG_(\w+)=(.*)|# CONFIG_(\w+) is not set)$", re.MULTILINE)
PATCH = re.compile(rb"^--- .*\n\+\+\+ .*\n@@ ", re.MULTILINE)
RUNNING = "running"
BARE = ("tinyconfig", "allnoconfig")
"""Base configurations with nothing but what is requested."""
HELP = (
    "config= takes a beginning and what is added to it, joined by +: defconfig, tinyconfig, NAME_defconfig, running or "
    "a .config file; then guest (what KDuel's guests need), fragments as files, the tree's own NAME.config, or "
    "OPTION=y. For example config=tinyconfig+guest+EXT4_FS=y. What nothing of this names is off after tinyconfig and "
    "allnoconfig, and the tree's default after the others."
)


class KernelRecipe(Struct, frozen=True, kw_only=True):
    """Architecture and configuration of a build, and a file with what is changed in the source before."""

    arch: str
    config: str = "defconfig"
    ccache: bool = False
    patch: str = ""

    @property
    def target(self) -> Target:
        return TARGETS[self.arch]

    @property
    def parts(self) -> list[str]:
        """The beginning of the configuration, and what is added."""
        return self.config.split("+")

    def words(self) -> str:
        """Text in a specification; whether ccache helps is not part of it, since the kernel is the same."""
        parts = [str(Path(part).expanduser().resolve()) if is_file(part) else part for part in self.parts]
        patch = f",patch={Path(self.patch).expanduser().resolve()}" if self.patch else ""
        return f",arch={self.arch},config={'+'.join(parts)}{patch}"


def read_recipe(spec: str) -> tuple[str, KernelRecipe]:
    """A specification's place, and its recipe. Raises InputError that lists what there is."""
    match = OPTIONS.fullmatch(spec)
    assert match is not None
    given: dict[str, str] = {}
    for word in filter(None, match["options"].split(",")):
        key, _, value = word.partition("=")
        if key not in KEYS:
            raise unknown_name(f"{spec}: a kernel from source knows no {key}=", key, KEYS)
        if key in given or not value:
            raise InputError(f"{spec}: {key}= is there {'twice' if key in given else 'without a value'}", HELP)
        given[key] = value
    arch = given.get("arch", own_target())
    if arch not in TARGETS:
        raise InputError(f"{spec}: there is no arch={arch}", f"KDuel builds for {', '.join(TARGETS)}.")
    if given.get("ccache", "no") not in ("yes", "no"):
        raise InputError(f"{spec}: ccache={given['ccache']}", "Write ccache=yes, or leave it out.")
    recipe = KernelRecipe(
        arch=arch,
        config=given.get("config", "defconfig"),
        ccache=given.get("ccache") == "yes",
        patch=given.get("patch", ""),
    )
    if recipe.patch:
        read_patch(recipe.patch)
    for number, part in enumerate(recipe.parts):
        read_base(part) if number == 0 else read_addition(part, arch)
    return match["place"], recipe


def read_base(part: str) -> str | bytes:
    """A target of make, or the text of a whole .config. Raises InputError, HostError."""
    if part == RUNNING:
        import os

        release = os.uname().release
        for path in (
            Path("/proc/config.gz"),
            Path(f"/boot/config-{release}"),
            Path(f"/lib/modules/{release}/config"),
        ):
            if path.is_file():
                data = path.read_bytes()
                return gzip.decompress(data) if path.suffix == ".gz" else data
        raise HostError(
            f"the configuration of the running kernel {release} is neither in /proc/config.gz nor in /boot",
            "Give a .config as a file: config=FILE.",
        )
    if TARGET_NAME.fullmatch(part):
        return part
    return read_file(part)


def read_addition(part: str, arch: str) -> bytes:
    """The settings that a part adds; of the tree's fragments (NAME.config) their name. Raises InputError."""
    if part == "guest":
        folder = resources.files("kduel.kernels.compile") / "fragments"
        return b"".join((folder / name).read_bytes() for name in ("guest.config", f"guest.{arch}.config"))
    if match := OPTION.fullmatch(part):
        return f"CONFIG_{match['name']}={match['value']}\n".encode()
    if is_tree_fragment(part):
        return part.encode()
    return read_file(part)


def is_file(part: str) -> bool:
    """True if a part is the path of a file here."""
    known = part in (RUNNING, "guest") or TARGET_NAME.fullmatch(part) or OPTION.fullmatch(part)
    return not known and not is_tree_fragment(part)


def is_tree_fragment(part: str) -> bool:
    """True if this names a fragment that the kernel's tree has: a NAME.config that is no file here."""
    return "/" not in part and part.endswith(".config") and not Path(part).exists()


def read_file(part: str) -> bytes:
    """A configuration's file. Raises InputError."""
    path = Path(part).expanduser()
    if "/" not in part and not path.exists():
        raise InputError(f"{part!r} is neither a configuration that KDuel knows nor a file", HELP)
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the configuration {part} cannot be read: {error}", HELP) from error
    if not SETTING.search(text.decode("utf-8", errors="replace")):
        raise InputError(f"{part} holds no setting of a kernel's configuration (CONFIG_...=)", HELP)
    return text


def read_patch(name: str) -> bytes:
    """A patch. Raises InputError for what is none."""
    try:
        data = Path(name).expanduser().read_bytes()
    except OSError as error:
        raise InputError(
            f"the patch {name} cannot be read: {error.strerror}", "Check the path after patch=."
        ) from error
    if not PATCH.search(data):
        raise InputError(
            f"{name} is no patch: no line begins with ---, +++ and @@", "Make one with diff -u or git diff."
        )
    return data


def fingerprint(recipe: KernelRecipe) -> str:
    """SHA-256 of the whole recipe, contents of its files included."""
    stamp = hashlib.sha256(recipe.arch.encode())
    for number, part in enumerate(recipe.parts):
        found = read_base(part) if number == 0 else read_addition(part, recipe.arch)
        stamp.update(b"\0" + (found.encode() if isinstance(found, str) else found))
    if recipe.patch:
        stamp.update(b"\0" + read_patch(recipe.patch))
    return stamp.hexdigest()


def configure(recipe: KernelRecipe, make: Make) -> list[str]:
    """Leave a complete .config in the build directory. Returns the requested settings that were not accepted: this
    tree has no such option, or lacks what it depends on. Raises Unbuildable, InputError, HostError."""
    dotconfig = make.build / ".config"
    first = read_base(recipe.parts[0])
    if isinstance(first, str):
        make.run(first)
    else:
        dotconfig.write_bytes(first)
    asked: dict[str, str] = {}
    for part in recipe.parts[1:]:
        if is_tree_fragment(part):
            make.run(part)
            continue
        given = read_settings(read_addition(part, recipe.arch).decode("utf-8", errors="replace"))
        dotconfig.write_text(merge_settings(dotconfig.read_text("utf-8", errors="replace"), given), "utf-8")
        asked |= given
    if recipe.parts[0] in BARE:
        # olddefconfig would add the defaults of all that an addition makes visible: IPv6 and mice, with NET and TTY.
        whole = shutil.copy(dotconfig, make.build / "asked.config")
        make.run(f"KCONFIG_ALLCONFIG={whole}", "allnoconfig")
    else:
        make.run("olddefconfig")
    have = read_settings(dotconfig.read_text("utf-8", errors="replace"))
    return [f"{name}={value}" for name, value in asked.items() if have.get(name, "n") != value]


def read_settings(text: str) -> dict[str, str]:
    """Option, without CONFIG_, to y, m, n or its value; the last one counts."""
    return {match[1] or match[3]: match[2] if match[1] else "n" for match in SETTING.finditer(text)}


def merge_settings(config: str, given: dict[str, str]) -> str:
    """A configuration with some settings replaced: they come last, since kconfig takes the last of a choice."""
    kept = [line for line in config.splitlines() if not ((m := SETTING.match(line)) and (m[1] or m[3]) in given)]
    added = [
        f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}" for name, value in given.items()
    ]
    return "\n".join([*kept, *added, ""])
