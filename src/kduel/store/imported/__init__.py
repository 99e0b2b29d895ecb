"""Results that were measured elsewhere: brought into a run's directory as they are, and read from there for ever.

The directory holds `import.json` and, under `imported/`, the original files; all else is derived. A format is one
module here, or one behind an entry point of the group `kduel.store.imported`, that offers `PLUGIN`, a `ForeignFormat`."""

from kduel.store.imported.support.store import Source, bring_in, contenders, declared_keys, environments, read

__all__ = ["Source", "bring_in", "contenders", "declared_keys", "environments", "read"]
