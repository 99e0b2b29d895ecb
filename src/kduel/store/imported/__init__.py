"""Results that were measured elsewhere: `import.json` and the original files under `imported/`; all else is derived.
A format is one module here, or behind an entry point `kduel.store.imported`, with a `PLUGIN`, a `ForeignFormat`."""

from kduel.store.imported.support.store import Source, bring_in, contenders, declared_keys, environments, read

__all__ = ["Source", "bring_in", "contenders", "declared_keys", "environments", "read"]
