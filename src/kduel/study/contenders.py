"""The contenders of a study: read from their tables, checked, named."""

import itertools
import math
import os
import re
import typing
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.core.text import did_you_mean
from kduel.core.validation import validation_message


def contender_tables(kernels: list[str], numbered: bool) -> str:
    """The [[contender]] tables of a suite's kernels as TOML; `numbered`: named, for one against itself."""
    tables = ["\n# From the command line:\n"]
    for number, spec in enumerate(kernels, 1):
        found = with_settings(spec)
        if numbered:
            found["name"] = f"{found.get('name') or short_name(Contender(**found))} #{number}"
        tables += ["[[contender]]\n", *(f"{key} = {as_toml(value)}\n" for key, value in found.items())]
    return "".join(tables)


def with_settings(spec: str) -> dict[str, Any]:
    """The keys of a contender that the command line gives in a word: `debian:6.12,cmdline=mitigations=off`, and any number of
    `,sysctl=KEY=VALUE`. A value reaches to the next of these keys: command lines have commas of their own."""
    once = "Give name=NAME, cmdline=WORDS, scheduler=NAME, policy=POLICY or modules=DIR once each, and sysctl=KEY=VALUE once for each sysctl."
    for key in re.findall(r",([a-z_]{5,})=", spec):
        if key not in SETTINGS and (near := did_you_mean(key, SETTINGS)):
            raise InputError(f"{spec}: a contender has no key `{key}`", f"{near}{once}")
    kernel, *rest = re.split(rf",(?=(?:{'|'.join(SETTINGS)})=)", spec)
    if given := re.search(r",(deadline|fifo|nice|rr|slice)=([^,]*)", kernel):
        raise InputError(
            f"{spec}: a contender has no key `{given[1]}`", f"A policy is given so: policy={given[1]}:{given[2]}."
        )
    found: dict[str, Any] = {"kernel": kernel}
    for setting in rest:
        key, _, value = setting.partition("=")
        name, equals, wanted = value.partition("=")
        unusable = not (name and equals) or name in found.get("sysctl", {}) if key == "sysctl" else key in found
        if not value or unusable:
            raise InputError(f"{spec}: {setting} is no setting of a contender", once)
        if key == "sysctl":
            found.setdefault("sysctl", {})[name] = wanted
        else:
            found[key] = value
    return found


def as_toml(value: str | bool | int | float | list[Any] | dict[str, str]) -> str:
    """A value, or a table of texts in one line: JSON of texts, numbers and lists of them is TOML, too."""
    if not isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return f"{{ {', '.join(f'{as_toml(key)} = {as_toml(text)}' for key, text in value.items())} }}"


def tables_of(contenders: list[Contender]) -> str:
    """The [[contender]] tables of contenders that set nothing but texts, as TOML."""
    tables = []
    for contender in contenders:
        texts = {key: value for key, value in msgspec.structs.asdict(contender).items() if value}
        lines = [f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in texts.items()]
        tables.append("".join(["\n[[contender]]\n", *lines]))
    return "".join(tables)


LONGEST_NAME = 200
"""Characters of a contender's name."""
SETTINGS = ("name", "cmdline", "sysctl", "scheduler", "policy", "modules")
"""The keys of a contender that a word of the command line may add to its kernel."""
CROSSED = ("kernel", "scheduler", "policy", "cmdline")
"""The keys of a contender for which a list makes a contender of every combination."""


def read_contenders(tables: list[dict[str, Any]], origin: str) -> list[Contender]:
    """The [[contender]] tables; a list for a key of CROSSED is a matrix."""
    contenders = []
    for number, table in enumerate(tables, 1):
        where = f"{origin}: contender[#{number}]"
        empty = [key for key in CROSSED if table.get(key) == []]
        if empty:
            raise InputError(f"{where}: {empty[0]} is an empty list", "Give a value, or a list with one at least.")
        for choice in combinations(table, CROSSED, f"{where}: "):
            for key, value in choice.items():
                if isinstance(value, str) and "\n" in value:
                    raise InputError(f"{where}: {key} holds a line break", "Write it in one line.")
            try:
                contender = msgspec.convert(choice, Contender, strict=True)
            except msgspec.ValidationError as error:
                known = ", ".join(Contender.__struct_fields__)
                raise InputError(f"{where}: {validation_message(error, Contender)}", f"Its keys: {known}.") from error
            texts = {key: value for key, value in msgspec.structs.asdict(contender).items() if isinstance(value, str)}
            for name in ("sysctl", "machine"):
                texts |= {f"{name} {key!r}": f"{key}={value}" for key, value in getattr(contender, name).items()}
            for key, value in texts.items():
                check_printable(key, value, where)
            check_name(contender.name, where)
            if table.get("name") == "":
                raise InputError(f'{where}: name = "" is no name', "Leave it out, or give one.")
            if len(table.get("name", "")) and choice is not table and choice != table:
                contender = msgspec.structs.replace(contender, name=f"{contender.name} {short_name(contender)}")
            contenders.append(contender)
    return name_all(contenders, origin)


def check_printable(key: str, value: str, where: str) -> None:
    """Raises InputError for a text that is shown in a line and holds a character that a terminal would obey or hide."""
    if not value.isprintable():
        raise InputError(
            f"{where}: {key} is {value[:LONGEST_NAME]!r}, with a character that cannot be shown",
            "Leave out control characters, line ends, tabs and other invisible characters.",
        )


def check_name(name: str, where: str) -> None:
    """Raises InputError for a name that is long, or that a person or a file system would take for another thing."""
    if len(name) > LONGEST_NAME:
        raise InputError(
            f"{where}: name has {len(name)} characters", f"Use at most {LONGEST_NAME}; title and text may be longer."
        )
    if name != name.strip() or (name and {"", ".", ".."} & set(re.split(r"[/\\]", name))):
        raise InputError(
            f"{where}: name = {name!r} looks like a path or has blanks at its ends",
            'Give a plain name, such as name = "6.12 with my patch".',
        )


def check_policies(contenders: list[Contender], origin: str) -> None:
    """Raises InputError naming file and contender for an unknown policy."""
    from kduel.schedulers.policy import parse_policy

    for contender in contenders:
        if contender.policy:
            try:
                parse_policy(contender.policy)
            except InputError as error:
                raise InputError(f"{origin}: {contender.name}: {error.message}", error.remedy) from error


COMMIT = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28}\b")
"""A whole commit, whose first digits a name has."""


def short_name(contender: Contender, parts: int = 1, *, recipe: bool = True) -> str:
    """Name of a contender where the study gives none; of a path, that many last parts; perhaps with its `recipe`."""
    kernel, *rest = contender.kernel.split(",")
    given = [
        word.partition("=")[::2] for word in rest if re.match(r"[a-z]+=", word) and not word.startswith("ccache=")
    ]
    options = [Path(value).name if key == "patch" else value for key, value in given]
    if not options and "/" not in contender.kernel:
        kernel = contender.kernel
    if "/" in kernel:
        kernel = "/".join([part for part in os.path.normpath(kernel).split("/") if part not in ("", "..")][-parts:])
    words = [
        COMMIT.sub(r"\1", kernel.replace(":", "-")),
        *(options if recipe else []),
        *contender.scheduler.split(),
        contender.policy,
        contender.cmdline,
    ]
    words += [f"{key}={value}" for key, value in (contender.sysctl | contender.machine).items()]
    return " ".join(word for word in words if word)


def name_all(contenders: list[Contender], origin: str) -> list[Contender]:
    """Every contender with a name of its own. Raises InputError where two would have the same."""
    # What all share does not distinguish them.
    recipe = len({c.kernel.partition(",")[2] for c in contenders}) > 1
    named = [c if c.name else msgspec.structs.replace(c, name=short_name(c, recipe=recipe)) for c in contenders]
    # old/bzImage and new/bzImage are distinguished by as much of their paths as it takes.
    for parts in range(2, max((c.kernel.count("/") for c in contenders), default=0) + 2):
        held = Counter(c.name for c in named)
        named = [
            c
            if given.name or held[c.name] == 1
            else msgspec.structs.replace(c, name=short_name(given, parts, recipe=recipe))
            for given, c in zip(contenders, named, strict=True)
        ]
    held = Counter(c.name for c in named)
    named = [
        msgspec.structs.replace(c, name=f"{c.name} {os.path.normpath(c.modules)}")
        if c.modules and not given.name and held[c.name] > 1
        else c
        for given, c in zip(contenders, named, strict=True)
    ]
    seen: set[str] = set()
    for contender in named:
        # An é as one character looks the same as an e with a combining accent.
        shown = unicodedata.normalize("NFC", contender.name)
        if shown in seen:
            raise InputError(
                f"{origin}: two contenders are called {shown!r}",
                "Give each a name of its own. To run one kernel against itself: kduel run --aa 2 KERNEL.",
            )
        seen.add(shown)
    used = [
        (contender.name, as_used(given)) for given, contender in zip(contenders, named, strict=True) if not given.name
    ]
    for (one, first), (other, second) in itertools.combinations(used, 2):
        if first == second:
            raise InputError(
                f"{origin}: {one!r} and {other!r} are one contender, written in two ways",
                "Make them differ. To run one kernel against itself: kduel run --aa 2 KERNEL.",
            )
    return named


def as_used(contender: Contender) -> Contender:
    """A contender whose files, directories, command line and sysctls are written in one way."""
    from kduel.schedulers.knobs import sysctl_file

    return msgspec.structs.replace(
        contender,
        kernel=real_path(contender.kernel) if {"/", ":"} & {*contender.kernel} else contender.kernel,
        modules=real_path(contender.modules) if contender.modules else "",
        cmdline=contender.cmdline.strip(),
        sysctl={sysctl_file(key): value for key, value in contender.sysctl.items()},
    )


def real_path(name: str) -> str:
    """A file's path without links, after its source's name (`tree:DIR`); `name` itself where there is none."""
    source, path = re.fullmatch(r"([a-z-]+:)?(.*)", name, re.DOTALL).groups("")  # type: ignore[union-attr]
    try:
        return f"{source}{Path(path).expanduser().resolve(strict=True)}"
    except (OSError, RuntimeError, ValueError):  # Not there, or ~ of a user that is not; a path that none can be.
        return name


MOST_COMBINATIONS = 1 << 16
"""Far more than anybody would boot, and few enough to be counted out."""


def combine(choices: Sequence[Sequence[Any]], what: str) -> Iterator[tuple[Any, ...]]:
    """Every combination of one of each. Raises InputError saying `what` makes too many, before the first."""
    if (count := math.prod(map(len, choices))) > MOST_COMBINATIONS:
        raise InputError(
            f"{what} make {count_text(count)} combinations ({MOST_COMBINATIONS:,} are allowed)", "Leave out values."
        )
    return itertools.product(*choices)


def count_text(count: int) -> str:
    """A number in words; Python writes none of more than 4,300 digits."""
    return f"{count:,}" if count < 1 << 64 else "more than 2^64"


def combinations(table: dict[str, Any], keys: typing.Iterable[str], where: str = "") -> list[dict[str, Any]]:
    """The table once for every combination of what its `keys` list. Raises InputError, with `where` first, for too many."""
    spread = [key for key in keys if isinstance(table.get(key), list)]
    if not spread:
        return [table]
    chosen = combine([table[key] for key in spread], f"{where}the lists of {', '.join(spread)}")
    return [{**table, **dict(zip(spread, values, strict=True))} for values in chosen]
