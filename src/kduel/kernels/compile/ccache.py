"""ccache across trees: its key holds the paths of the compiler's command, so that these must not name the tree."""

from pathlib import Path

from kduel.core.errors import HostError
from kduel.core.supervised_process import run_text


def stand_in(tree: Path, held: Path) -> tuple[Path, dict[str, str]]:
    """A tree of links to the files of `tree` in the directory `held`, which also takes the objects, and ccache's
    settings, by which every path is relative to the objects: what two commits share is compiled once (ccache(1), "Compiling in
    different directories"). Raises HostError."""
    links = held / "linux"
    done = run_text(["cp", "-as", f"{tree}/.", links])
    if done.returncode:
        raise HostError(
            f"{tree} cannot be linked: {done.stderr.strip()[:300]}", "Free some space, or leave out ccache=yes."
        )
    return links, {"CCACHE_BASEDIR": str(held), "CCACHE_NOHASHDIR": "true"}
