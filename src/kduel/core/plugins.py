"""Finding plug-ins (modules of a built-in package, entry points of others), and reading their settings."""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from kduel.core.errors import HostError, InputError, unknown_name
from kduel.core.validation import keys_of_inner, validation_message

T = TypeVar("T", bound=msgspec.Struct)

PACKAGES = {"findings": "kduel.judge.lint.findings", "imported": "kduel.store.imported"}
"""Where built-in plug-ins lie, if not in the folder of their kind's name."""


def named_plugin(kind: str, what: str, name: str) -> Any:
    """The plug-in of a kind with that name; `what` is the kind in a message. Raises InputError that lists all."""
    found = plugins(kind)
    if name not in found:
        raise unknown_name(f"there is no {what} {name!r}", name, sorted(found))
    return found[name]


def argument_of(cls: type, generic: type) -> Any:
    """The `S` of a class declared as `class cls(generic[S])`, or with an open subclass; None for any other."""
    bases = [base for base in vars(cls).get("__orig_bases__", ()) if issubclass(get_origin(base) or object, generic)]
    return next((found for base in bases if not isinstance(found := get_args(base)[0], TypeVar)), None)


def convert_table(table: dict[str, Any], kind: type[T], what: str, keys: str) -> T:
    """A table of a study as a struct; `what` has it, `keys` is the word for its keys. Raises InputError."""
    try:
        return msgspec.convert(table, kind, strict=True)
    except msgspec.ValidationError as error:
        inner = keys_of_inner(error, kind)
        known = ", ".join(inner[1] if inner else kind.__struct_fields__) or "none"
        asked = f"The keys of {inner[0]}: {known}." if inner else f"Its {keys}: {known}."
        raise InputError(f"{what}: {validation_message(error, kind)}", asked) from error


@cache
def entry_points_by_group() -> Any:
    """The entry points of all installed distributions, to select from: reading them takes longer than many a command."""
    return entry_points()


@cache
def plugins(kind: str) -> dict[str, Any]:
    """The plug-ins of a kind ("benchmarks", "findings", "fleets", "imported", "kernels", "machines", "report"), by
    name: `PLUGIN` of each module of `kduel.<kind>`, and entry points of that group. Raises HostError where one
    fails."""
    package = importlib.import_module(PACKAGES.get(kind, f"kduel.{kind}"))
    found: dict[str, Any] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if module_info.ispkg:
            continue
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        plugin = getattr(module, "PLUGIN", None)
        if plugin is not None:
            found[plugin.name] = plugin
    for entry in entry_points_by_group().select(group=f"kduel.{kind}"):
        try:
            plugin = entry.load()
        except Exception as error:
            raise HostError(
                f"the plug-in {entry.name!r} ({entry.value}) does not load: {error}",
                "Repair or uninstall the package that offers it.",
            ) from error
        if not isinstance(getattr(plugin, "name", None), str):
            raise HostError(
                f"the plug-in {entry.name!r} ({entry.value}) has no name: it is no plug-in of {entry.group}",
                "Repair or uninstall the package that offers it.",
            )
        if found.get(plugin.name, plugin) is not plugin:
            raise HostError(
                f"two plug-ins are called {plugin.name!r} ({entry.value} is the second one)",
                "Uninstall one of the packages, or have it renamed.",
            )
        found[plugin.name] = plugin
    return dict(sorted(found.items()))
