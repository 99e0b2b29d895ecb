"""Writing the site: a directory that appears whole, in place of an earlier site and of nothing else."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

from kduel import __version__
from kduel.analysis.index import ask
from kduel.core.errors import InputError
from kduel.report.html import templates
from kduel.report.site.content import pages
from kduel.report.site.parts import HEIGHT, WIDTH
from kduel.store.rundir import CHOOSE, told_as_disk_trouble

MARK = "kduel-site"
"""A file that says that the directory is a site of KDuel, which may be written anew."""


def write_site(place: Path, index: Path, out: Path) -> list[str]:
    """The names of the pages written to `out`, about the runs below `place`. Raises InputError, HostError."""
    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already and is no site of KDuel", "Give another --output.")
    found = pages(index, reports_of(place, index, out))
    template = templates().get_template("site.html")
    with told_as_disk_trouble(out, CHOOSE):
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{out.name[:40]}-", dir=out.parent))
        try:
            for page in found:
                text = template.render(page=page, version=__version__, width=WIDTH, height=HEIGHT)
                (fresh / page.name).write_text(text, "utf-8", errors="backslashreplace")
            (fresh / MARK).write_text(f"written by KDuel {__version__}\n")
            fresh.chmod(0o755)
            if out.exists():
                former = fresh / ".former"
                out.rename(former)
            fresh.rename(out)
            shutil.rmtree(out / ".former", ignore_errors=True)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return [page.name for page in found]


def reports_of(place: Path, index: Path, out: Path) -> dict[str, str]:
    """By run, the address of its own page relative to the site, where it has one."""
    found = {}
    for (path,) in ask(index, "SELECT path FROM run").rows:
        page = place / str(path) / "report/index.html"
        if page.is_file():
            found[str(path)] = quote(Path(os.path.relpath(page.resolve(), out.resolve())).as_posix(), safe="/")
    return found
