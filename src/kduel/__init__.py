"""KDuel: which Linux kernel or scheduler is faster, by how much, and whether you can be sure."""

# Nothing is imported here, not even for annotations: the command line starts with this file, Ctrl-C may come at once,
# and __main__ has to handle it first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from kduel.notebook import LoadedRun


def load(run: "str | Path") -> "LoadedRun":
    """A run's results, tables and plots, for scripts and notebooks. Raises InputError where `run` is none."""
    from kduel.notebook import load

    return load(run)
