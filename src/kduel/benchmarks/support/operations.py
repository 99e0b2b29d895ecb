"""The operations of kbench: what each does, by subsystem, and what it needs (operations.toml)."""

from kduel.core.toml import table_beside

_TABLE = table_beside(__file__)
ABOUT: dict[str, str] = {name: row["about"] for name, row in _TABLE.items()}
WORDS = ABOUT | {name: row["words"] for name, row in _TABLE.items() if "words" in row}
"""The same, where none leans on the words of the operation before."""
OPERATIONS = tuple(ABOUT)
ASKED_FOR = OPERATIONS[OPERATIONS.index("access") :]
"""Those that no suite counts, and no published atlas has: they are counted where a study or a command names them."""
GROUP_OF: dict[str, str] = {name: row["group"] for name, row in _TABLE.items() if "group" in row}
GROUPS = {group: tuple(name for name in GROUP_OF if GROUP_OF[name] == group) for group in GROUP_OF.values()}
"""The operations by subsystem, for reports."""
MODULES = {name: tuple(row["modules"]) for name, row in _TABLE.items() if "modules" in row}
"""Kernel modules that an operation loads where the kernel does not have them built in."""
