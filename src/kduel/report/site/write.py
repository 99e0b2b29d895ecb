"""Writing the site: pages that appear whole, in a directory of their own; files of others in it are left alone."""

import os
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct, field

from kduel.analysis.index import run_query
from kduel.core.errors import InputError
from kduel.core.temporary import temporary_directory
from kduel.core.untrusted import MalformedError, decode, read_whole
from kduel.core.version import full_version
from kduel.report.page.render import render_page
from kduel.report.site.content import pages
from kduel.report.site.parts import HEIGHT, WIDTH
from kduel.store.documents import document_bytes
from kduel.store.whole_files import as_disk_error, sync_tree, sync_tree_top, write_whole

MARK = "kduel-site.json"
"""The file that says which files of a directory are pages that KDuel wrote: those may be replaced or removed."""
FRESH = ".kduel-site-"
"""Begins the name of the directory in which new pages are made."""
ELSEWHERE = "Give another --output."
CHOOSE = "Free some space, correct the permissions, or name another place with --output."


class Site(Struct, kw_only=True):
    """The file MARK."""

    schema: int = 1
    kduel: str = field(default_factory=full_version)
    pages: list[str] = field(default_factory=list)


def write_site(place: Path, index: Path, out: Path) -> list[str]:
    """The names of the pages written to `out`, about the runs below `place`. Raises InputError, HostError. An earlier
    site is brought up to date: its pages are replaced one by one, and those that are no longer needed removed."""
    out = out.resolve()
    earlier = pages_of(out)
    found = pages(index, reports_of(place, index, out))
    names = [page.name for page in found]
    for name in names:
        if name not in earlier and os.path.lexists(out / name):
            raise InputError(f"{out / name} is there already, and KDuel did not write it", ELSEWHERE)
    with as_disk_error(out, CHOOSE):
        out.mkdir(parents=True, exist_ok=True)
        with temporary_directory(out, FRESH, as_disk_error(out, CHOOSE)) as fresh:
            for page in found:
                text = render_page("site.html", page=page, width=WIDTH, height=HEIGHT)
                (fresh / page.name).write_text(text, "utf-8", errors="backslashreplace")
            sync_tree(fresh)
            # Killed at any instant, the mark names every page of ours.
            write_mark(out, sorted({*names, *earlier}))
            for name in names:
                (fresh / name).replace(out / name)
        for name in earlier - set(names):
            (out / name).unlink(missing_ok=True)
        sync_tree_top(out)
        write_mark(out, names)
    return names


def write_mark(out: Path, names: list[str]) -> None:
    """Replace the file MARK. Raises OSError."""
    write_whole(out / MARK, document_bytes(Site(pages=names)))


def pages_of(out: Path) -> set[str]:
    """The pages of an earlier site in `out`, by its mark. Raises InputError where `out` is in other use."""
    if not out.exists() or (out.is_dir() and all(path.name.startswith(FRESH) for path in out.iterdir())):
        return set()
    foreign = InputError(f"{out} is there already and is no site of KDuel", ELSEWHERE)
    if not (out / MARK).is_file():
        raise foreign
    try:
        site = decode(read_whole(out / MARK), Site)
    except MalformedError:
        raise foreign from None
    if site.schema != Site().schema:
        raise InputError(f"{out} is a site of a later version of KDuel (schema {site.schema})", ELSEWHERE)
    # A mark that somebody else wrote must not lead out of the directory, nor to other files than pages.
    return {name for name in site.pages if Path(name).name == name and name.endswith(".html")}


def reports_of(place: Path, index: Path, out: Path) -> dict[str, str]:
    """By run, the address of its own page relative to the site, where it has one."""
    found = {}
    for (path,) in run_query(index, "SELECT path FROM run").rows:
        page = place / str(path) / "report/index.html"
        if page.is_file():
            found[str(path)] = quote(Path(os.path.relpath(page.resolve(), out.resolve())).as_posix(), safe="/")
    return found
